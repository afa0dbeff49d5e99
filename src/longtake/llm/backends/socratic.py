"""A text model that sees by reading: pictures become words before it is asked.

Each picture is replaced by its time, what is in it, the text on screen and the words spoken nearby,
as far as the entry's channels go. These words come from the film and are quoted as material.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from longtake._util.timecode import clock
from longtake.config.entries import SocraticEntry
from longtake.errors import ConfigError
from longtake.llm.backend import (
    CHANNELS,
    LIMITS,
    Backend,
    Description,
    FrameDescriber,
    Opening,
    TimeLeft,
    check_channels,
    shorten,
)
from longtake.llm.capabilities import Capabilities, HasCapabilities, capabilities_of
from longtake.llm.chat import Card, Chat, Counts, Image, Message, Options, Part, Reply, Text, images
from longtake.prompts.quoting import quote

LABELS = ("in the picture", "text on screen", "spoken around this time")


class SocraticBackend(Backend[SocraticEntry]):
    """Text models that read what perception recognises."""

    name = "socratic"
    settings = SocraticEntry
    # the text model inside is retried and limited already
    tries = 1
    at_once = 0
    perceives = True

    def host(self, model: Opening[SocraticEntry]) -> str:
        """Where the text model's messages go."""
        return model.models.host(self._llm(model))

    def open(self, model: Opening[SocraticEntry]) -> Chat:
        """The text model with eyes."""
        entry = model.entry
        llm = model.models.open(self._llm(model))
        if model.describer is None:
            raise ConfigError(
                f"{model.name} sees through a film's perception, and no film is given here",
                key=model.name,
            )
        card = Card(model.name, options=model.options, max_pixels=entry.max_pixels)
        return SocraticChat(card, llm, model.describer, model.channels or entry.channels)

    def needs(self, model: Opening[SocraticEntry]) -> tuple[str, ...]:
        """The text model."""
        return (self._llm(model),)

    def state(self, model: Opening[SocraticEntry]) -> str:
        """What it sees."""
        return f"sees {', '.join(model.entry.channels) or 'all channels'}"

    def _llm(self, model: Opening[SocraticEntry]) -> str:
        key = f"models.{model.name}.llm"
        llm = model.entry.llm
        if not llm:
            raise ConfigError(f"{key} is not set; name the text model", key=key)
        # one that reads pictures already would be given none
        if isinstance(model.models.entry(llm), SocraticEntry):
            raise ConfigError(f"{key} must name a text model", key=key)
        return llm


class SocraticChat:
    """A text model that sees through a describer."""

    def __init__(
        self, card: Card, llm: Chat, describer: FrameDescriber, channels: Sequence[str] = ()
    ) -> None:
        self._llm = llm
        self._describer = describer
        self._channels = check_channels(channels)
        self._base_card = card

    @property
    def card(self) -> Card:
        """The text model's card, with vision."""
        inner, base = self._llm.card, self._base_card
        return replace(
            inner,
            name=base.name,
            vision=True,
            options=base.options,
            max_pixels=base.max_pixels,
            # the most that one picture takes in words, by the limits of the channels
            picture_tokens=200,
            revision=f"{inner.revision}|{self._describer.revision}|{','.join(self._channels)}",
        )

    @property
    def capabilities(self) -> Capabilities | None:
        """How the text model's endpoint is asked."""
        return capabilities_of(self._llm)

    def discover(self) -> None:
        """Let the text model learn what its endpoint tells."""
        if isinstance(self._llm, HasCapabilities):
            self._llm.discover()

    def complete(self, messages: Sequence[Message], options: Options) -> Reply:
        """Describe the pictures, then ask the text model."""
        left = TimeLeft(self._base_card.name, options.deadline)
        described = []
        for message in messages:
            parts = tuple(self._in_words(part, left) for part in message.parts)
            described.append(replace(message, parts=parts))
        reply = self._llm.complete(described, replace(options, deadline=left.check()))
        # the text model saw no picture, but this model did
        frames = sum(1 for _ in images(messages))
        return replace(reply, usage=replace(reply.usage, frames=frames))

    def count(self, text: str) -> int | None:
        """The text model's own token count, if it offers one."""
        return self._llm.count(text) if isinstance(self._llm, Counts) else None

    def _in_words(self, part: Part, left: TimeLeft) -> Part:
        if not isinstance(part, Image):
            return part
        left.check()
        seen = self._describer.describe(part.frame, self._channels)
        # a label is an identifier, and colons are not allowed in one
        label = f"picture at {clock(part.time)}".replace(":", "-")
        return Text(f"\n{quote(self._lines(seen), label)}\n")

    def _lines(self, seen: Description) -> str:
        texts = seen.texts()
        lines = []
        for channel, label, limit in zip(CHANNELS, LABELS, LIMITS, strict=True):
            if channel in self._channels:
                # silence is said too: a missing line would look like a channel that was not read
                words = shorten(texts[channel], limit) or "nothing recognised"
                lines.append(f"{label}: {words}")
        return "\n".join(lines)
