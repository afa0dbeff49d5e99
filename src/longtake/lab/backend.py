"""Simulated models by name: ``lab/acuity=0.8``."""

from __future__ import annotations

from dataclasses import replace

from longtake.entries import LabEntry
from longtake.lab.acuity import LabChat, parse
from longtake.models.backend import Backend, Opening
from longtake.models.chat import Chat
from longtake.models.layers import Carded


class LabBackend(Backend[LabEntry]):
    """The laboratory's models."""

    name = "lab"
    settings = LabEntry
    # a simulated model does not fail in ways that pass
    tries = 1
    at_once = 0

    def host(self, model: Opening[LabEntry]) -> str:  # noqa: ARG002 - nothing leaves
        """The simulation runs in this process."""
        return ""

    def open(self, model: Opening[LabEntry]) -> Chat:
        """The model with the entry's parameters."""
        chat = LabChat(parse(model.entry.model))
        if model.name.startswith("lab/"):
            return chat
        # an entry of the configuration has a name of its own
        card = replace(chat.card, name=model.name, model=chat.card.name)
        return Carded(chat, card)

    def from_name(self, rest: str) -> LabEntry:
        """``lab/acuity=0.8`` is the entry with ``model = "acuity=0.8"``."""
        return LabEntry(model=rest)
