"""A text model made to see: pictures become words before it is asked.

Each picture is replaced by its time, what is in it, the text on screen and the words spoken nearby, as far
as the entry's channels go. The words come from the film and are quoted as such.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace

from longtake.errors import ConfigError, ModelError, unknown
from longtake.models.chat import (
    Card,
    Chat,
    Image,
    Message,
    Options,
    Part,
    Reply,
    Text,
    Unavailable,
    images,
)
from longtake.models.prices import HERE
from longtake.models.tokens import Counts
from longtake.models.witness import Description, Witness
from longtake.prompts.material import quote
from longtake.timecode import clock
from longtake.types import Usage

CHANNELS = ("tags", "onscreen", "speech")
"""Things in the picture, text in the picture, words spoken around it."""
LABELS = ("in the picture", "text on screen", "spoken around this time")
LIMITS = (80, 160, 160)
"""Characters told of each channel: thirty-two pictures then fit a context of 8192 tokens."""
PICTURE_TOKENS = 200
"""The most that one picture told in words comes to."""


class SocraticChat:
    """A text model that sees through a witness."""

    def __init__(
        self, card: Card, llm: Chat, witness: Witness, channels: Sequence[str] = ()
    ) -> None:
        for channel in channels:
            if channel not in CHANNELS:
                raise unknown("channel", channel, CHANNELS)
        self._llm = llm
        self._witness = witness
        self._channels = tuple(channels) or CHANNELS
        inner = llm.card
        if inner.vision and inner.name == card.name:
            raise ConfigError(f"{card.name} cannot see through itself", key="llm")
        self._card = replace(
            inner,
            name=card.name,
            vision=True,
            options=card.options,
            max_pixels=card.max_pixels,
            picture_tokens=PICTURE_TOKENS,
            revision=f"{inner.revision}|{witness.revision}|{','.join(self._channels)}",
        )

    @property
    def card(self) -> Card:
        """The text model's card, with sight."""
        return self._card

    def complete(self, messages: Sequence[Message], options: Options) -> Reply:
        """Describe the pictures and ask."""
        frames = sum(1 for _ in images(messages))
        left = _Left(self._card.name, options.deadline)
        told = [
            replace(message, parts=tuple(self._tell(part, left) for part in message.parts))
            for message in messages
        ]
        reply = self._llm.complete(told, replace(options, deadline=left.check()))
        return replace(reply, usage=replace(reply.usage, frames=frames))

    def count(self, text: str) -> int | None:
        """The text model's own count of tokens, where it offers one."""
        return self._llm.count(text) if isinstance(self._llm, Counts) else None

    def _tell(self, part: Part, left: _Left) -> Part:
        if not isinstance(part, Image):
            return part
        left.check()
        seen = self._witness.describe(part.frame, self._channels)
        found = (", ".join(seen.tags), " | ".join(seen.onscreen), " ".join(seen.speech))
        lines = [
            f"{label}: {shorten(words, limit) or 'nothing recognised'}"
            for channel, label, limit, words in zip(CHANNELS, LABELS, LIMITS, found, strict=True)
            if channel in self._channels
        ]
        return Text(
            "\n"
            + quote("\n".join(lines), f"picture at {clock(part.time)}".replace(":", "-"))
            + "\n"
        )


class SensesChat:
    """Perception as a captioner: it tells what it recognises in a picture, and understands nothing else."""

    def __init__(self, card: Card, witness: Witness, channels: Sequence[str] = ()) -> None:
        self._witness = witness
        self._channels = tuple(channels) or CHANNELS
        revision = f"{witness.revision}|{','.join(self._channels)}"
        self._card = replace(card, vision=True, price=HERE, revision=revision)

    @property
    def card(self) -> Card:
        """What is known of it."""
        return self._card

    def complete(self, messages: Sequence[Message], options: Options) -> Reply:
        """The pictures in words, as the caption that the schema asks for."""
        if "caption" not in (options.schema or {}).get("properties", {}):
            detail = "describes pictures and does nothing else; name a language model for this role"
            raise ModelError(self._card.name, "refused", detail)
        shown, told, left = list(images(messages)), [], _Left(self._card.name, options.deadline)
        for image in shown:
            left.check()
            told.append(tell(self._witness.describe(image.frame, self._channels), self._channels))
        return Reply(
            json.dumps({"caption": " ".join(told)}), usage=Usage(calls=1, frames=len(shown))
        )


class _Left:
    """Time that is left of a call. Reading a picture takes seconds, so it is looked at before each."""

    def __init__(self, model: str, deadline: float | None) -> None:
        self._model = model
        self._end = None if deadline is None else time.monotonic() + deadline

    def check(self) -> float | None:
        """Seconds that are left, ``None`` where there is no end; raises where there are none."""
        if self._end is None:
            return None
        left = self._end - time.monotonic()
        if left <= 0:
            raise Unavailable(
                self._model, "the time was up while pictures were being described", out_of_time=True
            )
        return left


def tell(seen: Description, channels: Sequence[str]) -> str:
    """What was recognised, in a sentence or two, empty where nothing was; silent channels are not mentioned."""
    found = {
        "tags": ", ".join(seen.tags),
        "onscreen": " | ".join(seen.onscreen),
        "speech": " ".join(seen.speech),
    }
    labels = {"tags": "May show", "onscreen": "Text", "speech": "Said"}
    parts = [
        f"{labels[channel]}: {shorten(found[channel], limit).rstrip('.')}."
        for channel, limit in zip(CHANNELS, LIMITS, strict=True)
        if channel in channels and found[channel]
    ]
    return " ".join(parts)


def shorten(text: str, limit: int) -> str:
    """A text without its middle where it is longer than ``limit`` characters; line breaks become spaces."""
    flat = " ".join(text.split())
    if len(flat) <= limit:
        return flat
    half = (limit - 3) // 2
    return f"{flat[:half]} … {flat[-half:]}"
