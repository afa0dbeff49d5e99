"""Models that see through a film's perception: pictures become words.

For :class:`SocraticChat`, a text model, each picture is replaced by its time, what is in it, the
text on screen and the words spoken nearby, as far as the entry's channels go. These words come from
the film and are quoted as material. :class:`PerceptionOnlyChat` has no text model: it describes
pictures and does nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from longtake._util.timecode import clock
from longtake.config.entries import SensesEntry, SocraticEntry
from longtake.errors import ConfigError, ModelError
from longtake.llm.backend import (
    CHANNELS,
    Backend,
    Description,
    FrameDescriber,
    HereBackend,
    ModelRequest,
    TimeLeft,
    check_channels,
)
from longtake.llm.chat import HERE, Card, Chat, Image, Message, Options, Part, Reply, Text, images
from longtake.llm.middleware import Middleware
from longtake.prompts import quote
from longtake.types import Usage

LABELS = {
    "tags": "in the picture",
    "onscreen": "text on screen",
    "speech": "spoken around this time",
}


class SocraticBackend(Backend[SocraticEntry]):
    """Text models that read what perception recognises."""

    name = "socratic"
    settings = SocraticEntry
    # the text model inside is retried and limited already
    tries = 1
    at_once = 0
    perceives = True

    def host(self, model: ModelRequest[SocraticEntry]) -> str:
        """Where the text model's messages go."""
        return model.models.host(self._llm(model))

    def open(self, model: ModelRequest[SocraticEntry]) -> Chat:
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

    def needs(self, model: ModelRequest[SocraticEntry]) -> tuple[str, ...]:
        """The text model."""
        return (self._llm(model),)

    def state(self, model: ModelRequest[SocraticEntry]) -> str:
        """What it sees."""
        return f"sees {', '.join(model.entry.channels) or 'all channels'}"

    def _llm(self, model: ModelRequest[SocraticEntry]) -> str:
        key = f"models.{model.name}.llm"
        llm = model.entry.llm
        if not llm:
            raise ConfigError(f"{key} is not set; name the text model", key=key)
        # one that reads pictures already would be given none
        if isinstance(model.models.entry(llm), SocraticEntry):
            raise ConfigError(f"{key} must name a text model", key=key)
        return llm


class SocraticChat(Middleware):
    """A text model that sees through a describer."""

    def __init__(
        self, card: Card, llm: Chat, describer: FrameDescriber, channels: Sequence[str] = ()
    ) -> None:
        super().__init__(llm)
        self._describer = describer
        self._channels = check_channels(channels)
        self._base_card = card

    @property
    def card(self) -> Card:
        """The text model's card, with vision."""
        inner, base = self.inner.card, self._base_card
        return replace(
            inner,
            name=base.name,
            vision=True,
            options=base.options,
            max_pixels=base.max_pixels,
            # the maximum for one picture in words, by the limits of the channels
            picture_tokens=200,
            revision=f"{inner.revision}|{self._describer.revision}|{','.join(self._channels)}",
        )

    def complete(self, messages: Sequence[Message], options: Options) -> Reply:
        """Describe the pictures, then ask the text model."""
        left = TimeLeft(self._base_card.name, options.deadline)
        described = []
        for message in messages:
            parts = tuple(self._in_words(part, left) for part in message.parts)
            described.append(replace(message, parts=parts))
        reply = self.inner.complete(described, replace(options, deadline=left.check()))
        # the text model saw no picture, but this model did
        frames = len(images(messages))
        return replace(reply, usage=replace(reply.usage, frames=frames))

    def _in_words(self, part: Part, left: TimeLeft) -> Part:
        if not isinstance(part, Image):
            return part
        left.check()
        seen = self._describer.describe(part.frame, self._channels)
        # a label is an identifier, and colons are not allowed in one
        label = f"picture at {clock(part.time)}".replace(":", "-")
        lines = []
        for channel, words in seen.lines(self._channels).items():
            # a missing line would look like a channel that was not read
            lines.append(f"{LABELS[channel]}: {words or 'nothing recognised'}")
        material = "\n".join(lines)
        return Text(f"\n{quote(material, label)}\n")


CAPTION_LABELS = ("May show", "Text", "Said")


class PerceptionOnlyBackend(HereBackend[SensesEntry]):
    """A film's perception, without a language model."""

    name = "senses"
    settings = SensesEntry
    # the film's store already keeps what was recognised
    keeps_replies = False
    perceives = True

    def open(self, model: ModelRequest[SensesEntry]) -> Chat:
        """The perception of one film."""
        if model.describer is None:
            raise ConfigError(
                f"{model.name} is a film's perception, and no film is given here: "
                "it describes pictures and answers no question",
                key=model.name,
            )
        entry = model.entry
        card = Card(model.name, options=model.options)
        return PerceptionOnlyChat(card, model.describer, model.channels or entry.channels)

    def state(self, model: ModelRequest[SensesEntry]) -> str:
        """What it sees."""
        return f"sees {', '.join(model.entry.channels) or 'all channels'}"


class PerceptionOnlyChat:
    """Describes what perception recognises in a picture, and understands nothing else."""

    def __init__(self, card: Card, describer: FrameDescriber, channels: Sequence[str] = ()) -> None:
        self._describer = describer
        self._channels = check_channels(channels)
        revision = f"{describer.revision}|{','.join(self._channels)}"
        self.card = replace(card, vision=True, price=HERE, revision=revision)

    def complete(self, messages: Sequence[Message], options: Options) -> Reply:
        """Return the pictures in words, as the caption that the schema asks for."""
        # perception cannot answer anything, and must not be taken for a model that abstains
        if "caption" not in (options.schema or {}).get("properties", {}):
            detail = "only describes pictures; name a language model for this role"
            raise ModelError(self.card.name, "refused", detail)
        left = TimeLeft(self.card.name, options.deadline)
        captions = []
        for image in images(messages):
            left.check()
            seen = self._describer.describe(image.frame, self._channels)
            captions.append(tell(seen, self._channels))
        usage = Usage(calls=1, frames=len(captions))
        return Reply(json.dumps({"caption": " ".join(captions)}), usage=usage)


def tell(seen: Description, channels: Sequence[str]) -> str:
    """Return what was recognised in a sentence or two; empty channels are not mentioned."""
    labels = dict(zip(CHANNELS, CAPTION_LABELS, strict=True))
    sentences = []
    for channel, words in seen.lines(channels).items():
        if words:
            # the label and a full stop make it a sentence
            sentences.append(f"{labels[channel]}: {words.rstrip('.')}.")
    return " ".join(sentences)
