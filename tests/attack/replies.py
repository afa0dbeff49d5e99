"""What reads a model's words and a server's bodies, as readers of a file."""

import json
from contextlib import suppress
from pathlib import Path

from pydantic import BaseModel

from longtake.llm.chat import Card, Reply, say
from longtake.llm.http import Response
from longtake.llm.openai_protocol import read_reply
from longtake.llm.structured.ask import ReplyForm
from longtake.llm.structured.json_text import NotJson, parse, values
from longtake.llm.structured.reader import UnreadableReply, parse_reply
from longtake.llm.structured.schema import Brief, Letter
from longtake.types import Question

QUESTION = Question("Which?", ("red", "green", "blue"))


class Vote(BaseModel):
    """One of each kind of field."""

    choice: Letter
    confidence: int
    reason: Brief = ""
    moments: list[int] = []


SOUND = (
    '```json\n{"choice": "B", "confidence": 2, "reason": "a \\"sign\\"", "moments": [1, 2]}\n```'
)
BODY = json.dumps(
    {
        "model": "m",
        "choices": [{"finish_reason": "stop", "message": {"content": SOUND, "tool_calls": []}}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4},
    }
)


def reply(folder: Path) -> object:
    """A reply in the form of a vote, read in every way that a step reads it."""
    text = _text(folder / "reply.txt")
    form = ReplyForm.of(Vote, {"question": QUESTION})
    try:
        parse_reply(text, Vote, QUESTION)
        return form.read(Reply(text))
    except UnreadableReply:
        return None


def loose(folder: Path) -> object:
    """Every object and list in a text, and the text itself."""
    text = _text(folder / "loose.txt")
    read: list[object] = []
    for reader in (values, lambda text: values(text, "["), parse):
        with suppress(NotJson):
            read.append(reader(text))
    return read


def body(folder: Path) -> object:
    """A server's body."""
    response = Response(200, _text(folder / "body.json"), "m")
    return read_reply(Card("m"), response.json(), [say("user", "hello")], 0.1)


def _text(file: Path) -> str:
    return file.read_bytes().decode("utf-8", "replace")
