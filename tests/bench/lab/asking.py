"""Helpers that put questions to simulated models, for the tests in this folder."""

import json
from typing import Any

from longtake._util.timecode import clock
from longtake.llm.chat import Image, Message, Options, say
from longtake_bench.lab.model import LabChat
from longtake_bench.lab.profile import LabModel

CHOICE = {
    "type": "object",
    "properties": {
        "reason": {"type": "string"},
        "choice": {"type": "string", "enum": list("ABCD")},
        "confidence": {"type": "integer", "minimum": 1, "maximum": 3},
    },
}
WORDS = {
    "type": "object",
    "properties": {
        "reason": {"type": "string"},
        "answer": {"type": "string"},
        "confidence": {"type": "integer"},
    },
}


def model(**parameters: Any) -> LabChat:
    """A model that does not hallucinate unless told to."""
    return LabChat(LabModel(**{"hallucination": 0.0, **parameters}))


def shown(question: Any, frames: Any = (), notes: str = "") -> list[Message]:
    """A question after pictures and notes, as methods present it."""
    parts: list[Any] = []
    for frame in frames:
        parts += [f"[{clock(frame.time)}]", Image(frame)]
    options = "\n".join(
        f"{letter}. {text}" for letter, text in zip("ABCD", question.options, strict=False)
    )
    return [say("user", *parts, f"{notes}\nQuestion: {question.text}\n{options}\n")]


def fields(*names: str, **nodes: Any) -> dict[str, Any]:
    """A schema with these fields; fields given by name alone are strings."""
    texts = {name: {"type": "string"} for name in names}
    return {"type": "object", "properties": {**texts, **nodes}}


def reply(chat: LabChat, messages: list[Message], schema: Any) -> Any:
    """The reply as data."""
    return json.loads(chat.complete(messages, Options(schema=schema)).text)


def answered(chat: LabChat, question: Any, frames: Any = (), notes: str = "") -> tuple[bool, int]:
    """Whether the answer is right, and the stated confidence."""
    said = reply(chat, shown(question, frames, notes), CHOICE if question.options else WORDS)
    if question.options:
        return said["choice"] == question.answer, said["confidence"]
    return said["answer"] == question.answer_text, said["confidence"]


def spoken_in(script: Any, segments: Any) -> str:
    """The narrator's lines within the given segments, as subtitles."""
    lines = []
    for line in script.subtitles():
        if any(line.segment.overlap(segment) > 0 for segment in segments):
            lines.append(f"[{clock(line.segment.start)}] {line.text}")
    return "\n".join(lines)
