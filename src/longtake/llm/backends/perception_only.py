"""Perception as a captioner: it describes pictures and does nothing else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from longtake.config.entries import SensesEntry
from longtake.errors import ConfigError, ModelError
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
from longtake.llm.chat import HERE, Card, Chat, Message, Options, Reply, images
from longtake.types import Usage

LABELS = ("May show", "Text", "Said")


class PerceptionOnlyBackend(Backend[SensesEntry]):
    """A film's own perception."""

    name = "senses"
    settings = SensesEntry
    tries = 1
    at_once = 0
    # the film's store already keeps what was recognised
    keeps_replies = False
    perceives = True

    def host(self, model: Opening[SensesEntry]) -> str:  # noqa: ARG002 - nothing leaves
        """Perception runs on this machine."""
        return ""

    def open(self, model: Opening[SensesEntry]) -> Chat:
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

    def state(self, model: Opening[SensesEntry]) -> str:
        """What it sees."""
        return f"sees {', '.join(model.entry.channels) or 'all channels'}"


class PerceptionOnlyChat:
    """Describes what perception recognises in a picture, and understands nothing else."""

    def __init__(self, card: Card, describer: FrameDescriber, channels: Sequence[str] = ()) -> None:
        self._describer = describer
        self._channels = check_channels(channels)
        revision = f"{describer.revision}|{','.join(self._channels)}"
        self._card = replace(card, vision=True, price=HERE, revision=revision)

    @property
    def card(self) -> Card:
        """What is known about it."""
        return self._card

    def complete(self, messages: Sequence[Message], options: Options) -> Reply:
        """Return the pictures in words, as the caption that the schema asks for."""
        # perception cannot answer anything, and must not be taken for a model that abstains
        if "caption" not in (options.schema or {}).get("properties", {}):
            detail = "only describes pictures; name a language model for this role"
            raise ModelError(self._card.name, "refused", detail)
        left = TimeLeft(self._card.name, options.deadline)
        captions = []
        for image in images(messages):
            left.check()
            seen = self._describer.describe(image.frame, self._channels)
            captions.append(tell(seen, self._channels))
        usage = Usage(calls=1, frames=len(captions))
        return Reply(json.dumps({"caption": " ".join(captions)}), usage=usage)


def tell(seen: Description, channels: Sequence[str]) -> str:
    """Return what was recognised in a sentence or two; empty channels are not mentioned."""
    texts = seen.texts()
    sentences = []
    for channel, label, limit in zip(CHANNELS, LABELS, LIMITS, strict=True):
        if channel in channels and texts[channel]:
            # the label and a full stop make it a sentence
            words = shorten(texts[channel], limit).rstrip(".")
            sentences.append(f"{label}: {words}.")
    return " ".join(sentences)
