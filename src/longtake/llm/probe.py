"""``longtake models probe``: a few questions that show what a model and its server can do."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from longtake.errors import ModelError
from longtake.llm.capabilities import Capabilities, capabilities_of
from longtake.llm.chat import Chat, Image, Message, Options, say
from longtake.types import Frame

QUESTION = "Which of these is an animal: a stone, a horse, a spoon?"
COLOUR = "Which colour fills this picture? Reply with one word."
SCHEMA = {
    "type": "object",
    "properties": {"animal": {"type": "string", "enum": ["stone", "horse", "spoon"]}},
    "required": ["animal"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class ProbeReport:
    """What a probe found; ``None`` is unknown."""

    model: str
    reachable: bool
    seconds: float | None = None
    """Time of one short reply, after another that may have loaded the model."""
    json_schema: bool | None = None
    """Whether a schema was accepted and followed."""
    reply: str = ""
    """The reply that should follow the schema."""
    vision: bool | None = None
    """Whether it named the colours of pictures."""
    drops_pictures: bool = False
    """Whether its server accepts pictures and leaves them out."""
    context: int | None = None
    problem: str = ""
    letters: bool | None = None
    """Whether letters can be asked for by log-probability."""
    reading: float | None = None
    """Prompt tokens per second."""
    writing: float | None = None
    """Reply tokens per second."""


def probe(chat: Chat) -> ProbeReport:
    """Ask a few short questions and report."""
    name, capabilities = chat.card.name, capabilities_of(chat)
    # the server may have changed since it was asked last
    if capabilities is not None:
        capabilities.forget()
    try:
        # the first call may load the model, and would be timed with it
        chat.complete([say("user", "Reply with the word yes.")], Options(max_tokens=8))
        began = time.monotonic()
        typed = Options(max_tokens=64, schema=SCHEMA, prompt="probe")
        reply = chat.complete([say("user", QUESTION)], typed)
        seconds = time.monotonic() - began
        vision = _sees(chat)
        report = ProbeReport(
            name,
            reachable=True,
            seconds=round(seconds, 3),
            reply=reply.text,
            vision=vision,
            drops_pictures=vision is False and _drops_pictures(chat),
            context=_context(chat),
            json_schema=_fits(reply.text),
        )
        if capabilities is None:
            return report
        return _with_capabilities(report, chat, capabilities)
    except ModelError as error:
        return ProbeReport(name, reachable=False, problem=str(error))


def _with_capabilities(report: ProbeReport, chat: Chat, capabilities: Capabilities) -> ProbeReport:
    """The report with what was learned about the endpoint."""
    if report.drops_pictures:
        capabilities.learn(vision=False)
    prompt = "Which is an animal?\nA. a stone\nB. a horse\nReply with the letter only."
    chat.complete([say("user", prompt)], Options(max_tokens=1, letters=("A", "B")))
    reading, writing = _speeds(chat)
    capabilities.learn(reading=reading, writing=writing)
    if not report.json_schema:
        capabilities.refuse(report.model, "schema", f"the reply does not follow it: {report.reply}")
    return replace(
        report,
        json_schema=not capabilities.has_refused("schema"),
        letters=capabilities.known.letters,
        reading=reading,
        writing=writing,
    )


def _speeds(chat: Chat) -> tuple[float | None, float | None]:
    """Prompt and reply tokens per second; a new prompt each time, so that no cache has read it."""
    unread = f"{time.time()} " + " ".join(f"word{number}" for number in range(100))
    began = time.monotonic()
    read = chat.complete([say("user", unread)], Options(max_tokens=1)).usage.tokens_in
    middle = time.monotonic()
    counting = "Count from 1 to 50, separated by commas."
    written = chat.complete([say("user", counting)], Options(max_tokens=32)).usage
    ended = time.monotonic()
    return _rate(read, middle - began), _rate(written.tokens_out, ended - middle)


def _rate(tokens: int, seconds: float) -> float | None:
    return round(tokens / seconds, 1) if tokens and seconds > 0 else None


def _fits(text: str) -> bool:
    try:
        value = json.loads(text)
    except ValueError:
        return False
    return isinstance(value, dict) and value.get("animal") in ("stone", "horse", "spoon")


def _sees(chat: Chat) -> bool | None:
    """Whether it names the colours of two pictures; a model that refuses pictures cannot see."""
    if chat.card.vision is False:
        return False
    # two colours, because a blind model may guess one
    for colour, rgb in (("red", (220, 20, 20)), ("blue", (20, 20, 220))):
        message: Message = say("user", _filled(rgb), COLOUR)
        try:
            # enough for models that think before they reply
            answer_text = chat.complete([message], Options(max_tokens=512)).text.lower()
        except ModelError:
            return False
        if colour not in answer_text:
            return False
    return True


def _drops_pictures(chat: Chat) -> bool:
    """Whether a prompt does not grow with a picture, as with text models of ``transformers``."""
    prompts = say("user", COLOUR), say("user", _filled((20, 220, 20)), COLOUR)
    try:
        plain, shown = (chat.complete([each], Options(max_tokens=1)).usage for each in prompts)
    except ModelError:
        return False  # refused with an error, so not dropped
    return 0 < shown.tokens_in <= plain.tokens_in


def _filled(rgb: tuple[int, int, int]) -> Image:
    return Image(Frame(0.0, np.full((224, 224, 3), rgb, np.uint8)))


def _context(chat: Chat) -> int | None:
    ask: Callable[[], int | None] | None = getattr(chat, "context", None)
    try:
        reported = ask() if ask is not None else None
    except ModelError:
        reported = None
    return reported or chat.card.context
