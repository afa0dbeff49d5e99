"""A backend whose models repeat the last line of what they are told."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from longtake.config.entries import ModelEntry
from longtake.config.overlay import number
from longtake.llm.backend import Backend, ModelRequest
from longtake.llm.chat import HERE, Card, Chat, Message, Options, Reply, request_hash
from longtake.types import Usage


@dataclass(frozen=True)
class EchoEntry(ModelEntry):
    """The fields of ``[models.NAME]`` with ``backend = "echo"``."""

    letter: str = "B"
    """The option it chooses."""
    address: str = ""
    """The host that it says it talks to; empty: none."""
    volume: int = number(5, least=0, most=11)
    """How loud it is."""


class EchoBackend(Backend[EchoEntry]):
    """Models that need no server."""

    name = "echo"
    settings = EchoEntry
    tries = 3
    at_once = 4

    def host(self, model: ModelRequest[EchoEntry]) -> str:
        """The declared host."""
        return model.entry.address

    def open(self, model: ModelRequest[EchoEntry]) -> Chat:
        """The model."""
        return EchoChat(Card(model.name, price=HERE, options=model.options), model.entry)

    def from_name(self, rest: str) -> EchoEntry:
        """``echo/A`` always chooses A."""
        return EchoEntry(backend=self.name, letter=rest)


class EchoChat:
    """Chooses a fixed letter, for the reason it was given last."""

    def __init__(self, card: Card, entry: EchoEntry) -> None:
        self._card, self._entry = card, entry

    @property
    def card(self) -> Card:
        """What is known about it."""
        return self._card

    def complete(self, messages: Sequence[Message], options: Options) -> Reply:
        """Answer with the letter."""
        lines = messages[-1].text.strip().splitlines()
        reason = next(line for line in lines if line.startswith(("Choose", "The answer")))
        reply = json.dumps({"reason": reason, "choice": self._entry.letter})
        usage = Usage(calls=1, tokens_in=len(lines), tokens_out=1, cost=0.0)
        return Reply(reply, usage=usage, model=request_hash(self._card, messages, options)[:8])
