"""Finds out what a model can do by asking it."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from longtake.errors import ModelError
from longtake.models.chat import Chat, Image, Message, Options, say
from longtake.types import Frame

QUESTION = "Which of these is an animal: a stone, a horse, a spoon?"
SCHEMA = {
    "type": "object",
    "properties": {"animal": {"type": "string", "enum": ["stone", "horse", "spoon"]}},
    "required": ["animal"],
    "additionalProperties": False,
}


@runtime_checkable
class Endpointed(Protocol):
    """A chat that knows what its endpoint offers."""

    def offers(self, feature: str) -> bool:
        """Whether a feature has not been refused."""

    def context(self) -> int | None:
        """The context length the endpoint reports."""


@dataclass(frozen=True)
class Report:
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
    context: int | None = None
    problem: str = ""


def probe(chat: Chat) -> Report:
    """Ask a few short questions and report."""
    name = chat.card.name
    try:
        # the first call may load the model, and would be timed with it
        chat.complete([say("user", "Reply with the word yes.")], Options(max_tokens=8))
        began = time.monotonic()
        typed = Options(max_tokens=64, schema=SCHEMA, prompt="probe")
        reply = chat.complete([say("user", QUESTION)], typed)
    except ModelError as error:
        return Report(name, reachable=False, problem=str(error))
    seconds = time.monotonic() - began
    offered = chat.offers("schema") if isinstance(chat, Endpointed) else None
    return Report(
        name,
        reachable=True,
        seconds=round(seconds, 3),
        # a server may drop the schema and the model still happen to reply in JSON
        json_schema=_fits(reply.text) and offered is not False,
        reply=reply.text,
        vision=_sees(chat),
        context=_context(chat),
    )


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
        picture = Image(Frame(0.0, np.full((224, 224, 3), rgb, np.uint8)))
        question = "Which colour fills this picture? Reply with one word."
        message: Message = say("user", picture, question)
        try:
            # enough for models that think before they reply
            said = chat.complete([message], Options(max_tokens=512)).text.lower()
        except ModelError:
            return False
        if colour not in said:
            return False
    return True


def _context(chat: Chat) -> int | None:
    if not isinstance(chat, Endpointed):
        return chat.card.context
    try:
        return chat.context() or chat.card.context
    except ModelError:
        return chat.card.context
