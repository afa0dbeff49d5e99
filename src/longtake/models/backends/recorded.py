"""A model that says what it said before."""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter

from longtake.errors import ModelError
from longtake.events import ChatCalled
from longtake.models.chat import Card, Message, Options, Reply, ToolCall, request_hash


class Recording:
    """Replies of a recorded run, found by the hash of their whole request."""

    def __init__(self, calls: Sequence[ChatCalled]) -> None:
        self._lock = threading.Lock()
        self._replies: dict[str, deque[ChatCalled]] = defaultdict(deque)
        for call in calls:
            if call.error is None:
                self._replies[call.request].append(call)

    def take(self, request: str) -> ChatCalled | None:
        """The next reply to a request; the last one stands for all repeats."""
        with self._lock:
            kept = self._replies.get(request)
            if not kept:
                return None
            return kept.popleft() if len(kept) > 1 else kept[0]


class RecordedChat:
    """Answers from a recording, and refuses what was not asked then."""

    def __init__(self, card: Card, recording: Recording) -> None:
        self._card, self._recording = card, recording

    @property
    def card(self) -> Card:
        """As it was when the run was recorded."""
        return self._card

    def complete(self, messages: Sequence[Message], options: Options) -> Reply:
        """The recorded reply to this very request."""
        call = self._recording.take(request_hash(self._card, messages, options))
        if call is None:
            detail = f"the recording holds no reply to this {options.prompt or 'request'}: the run has changed"
            raise ModelError(self._card.name, "unavailable", detail)
        tools = tuple(
            ToolCall(str(t["id"]), str(t["name"]), str(t["arguments"])) for t in call.tools
        )
        return Reply(call.reply, call.thinking, tools, call.usage, model=call.model)


def card_from(plain: Mapping[str, Any]) -> Card:
    """A card from the plain data of a trace."""
    return TypeAdapter(Card).validate_python(dict(plain))
