"""A model that gives fixed replies: for tests and examples."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from longtake.config.entries import ScriptedEntry
from longtake.errors import ModelError
from longtake.llm.backend import Backend, Opening
from longtake.llm.chat import (
    HERE,
    Card,
    Chat,
    Message,
    Options,
    Reply,
    estimate,
    estimate_messages,
    images,
    price_of,
)
from longtake.llm.structured.cleanup import split_thinking
from longtake.types import Usage

Line: TypeAlias = str | Reply | Exception
Script: TypeAlias = Callable[[Sequence[Message], Options], Line] | Iterable[Line]


class ScriptedBackend(Backend[ScriptedEntry]):
    """Models whose replies are in the configuration."""

    name = "scripted"
    settings = ScriptedEntry
    tries = 1
    at_once = 0
    # the same request must get the next reply, not the last one again
    keeps_replies = False

    def host(self, model: Opening[ScriptedEntry]) -> str:  # noqa: ARG002 - nothing leaves
        """The replies are here already."""
        return ""

    def open(self, model: Opening[ScriptedEntry]) -> Chat:
        """A chat that gives the entry's replies in order."""
        entry = model.entry
        card = Card(
            model.name,
            context=entry.context or None,
            max_pixels=entry.max_pixels,
            # free unless the entry sets prices, as tests of budgets do
            price=price_of(model.name, entry) or HERE,
            options=model.options,
        )
        return ScriptedChat(entry.replies, card=card)

    def state(self, model: Opening[ScriptedEntry]) -> str:
        """How much it can say."""
        return f"{len(model.entry.replies)} replies"


class ScriptedChat:
    """Answers from a function of the messages, or from a list, in order.

    An exception in the script is raised. When a list runs out, asking is an error; no reply is
    invented.
    """

    def __init__(self, script: Script, *, card: Card | None = None) -> None:
        self._card = card or Card("scripted")
        self._lines = None if callable(script) else iter(script)
        self._act = script if callable(script) else None
        self._lock = threading.Lock()
        self.asked: list[tuple[tuple[Message, ...], Options]] = []
        """What it was asked, in order."""

    @property
    def card(self) -> Card:
        """What is known about it."""
        return self._card

    def complete(self, messages: Sequence[Message], options: Options) -> Reply:
        """Return the next line of the script."""
        # several threads may ask, and each line is given once
        with self._lock:
            self.asked.append((tuple(messages), options))
            line = next(self._lines, None) if self._lines is not None else None
        if self._act is not None:
            line = self._act(messages, options)
        if line is None:
            detail = f"the script ended after {len(self.asked) - 1} replies"
            raise ModelError(self._card.name, "unavailable", detail)
        if isinstance(line, Exception):
            raise line
        return self._reply(messages, line) if isinstance(line, str) else line

    def _reply(self, messages: Sequence[Message], written: str) -> Reply:
        thinking, text = split_thinking(written)
        tokens_in, tokens_out = estimate_messages(messages), estimate(written)
        price = self._card.price
        cost = None if price is None else price.of(tokens_in, 0, tokens_out)
        usage = Usage(1, tokens_in, 0, tokens_out, sum(1 for _ in images(messages)), 0.0, cost)
        return Reply(text, thinking, (), usage, "stop", self._card.model or self._card.name)
