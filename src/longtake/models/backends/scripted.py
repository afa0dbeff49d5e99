"""A model that says what it was given to say: for tests, examples and replays."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from longtake.errors import ModelError
from longtake.models.chat import Card, Message, Options, Reply, images
from longtake.models.replies.thinking import split_thinking
from longtake.models.tokens import estimate, estimate_messages
from longtake.types import Usage

Line: TypeAlias = str | Reply | Exception
Script: TypeAlias = Callable[[Sequence[Message], Options], Line] | Iterable[Line]


class ScriptedChat:
    """Answers from a function of the messages, or from a list, in order.

    An exception in the script is raised. A list that has run out is an error, never an invented reply.
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
        """What is known of it."""
        return self._card

    def complete(self, messages: Sequence[Message], options: Options) -> Reply:
        """The next line of the script."""
        with self._lock:
            self.asked.append((tuple(messages), options))
            line = next(self._lines, None) if self._lines is not None else None
        if self._act is not None:
            line = self._act(messages, options)
        if line is None:
            raise ModelError(
                self._card.name,
                "unavailable",
                f"the script ended after {len(self.asked) - 1} replies",
            )
        if isinstance(line, Exception):
            raise line
        return self._reply(messages, line) if isinstance(line, str) else line

    def _reply(self, messages: Sequence[Message], said: str) -> Reply:
        thinking, text = split_thinking(said)
        tokens_in, tokens_out = estimate_messages(messages), estimate(said)
        price = self._card.price
        cost = None if price is None else price.of(tokens_in, 0, tokens_out)
        usage = Usage(1, tokens_in, 0, tokens_out, sum(1 for _ in images(messages)), 0.0, cost)
        return Reply(text, thinking, (), usage, "stop", self._card.model or self._card.name)
