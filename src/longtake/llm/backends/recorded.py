"""A model that repeats the replies of a recorded run."""

from __future__ import annotations

import re
import threading
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from longtake.config.entries import RecordedEntry
from longtake.errors import ConfigError, ModelError, unknown
from longtake.llm.backend import Backend, Opening
from longtake.llm.chat import Card, Chat, Message, Options, Reply, ToolCall, describe, request_hash
from longtake.tracing import events
from longtake.tracing import trace as traces
from longtake.tracing.events import ChatCalled, RunStarted

_MATERIAL = re.compile(r'<material name="(?!problem")[^"]*">\n(.*?)\n</material>', re.DOTALL)
"""Quoted material, except for what we ourselves said was wrong with a reply."""


class RecordedBackend(Backend[RecordedEntry]):
    """Models of recorded runs."""

    name = "recorded"
    settings = RecordedEntry
    tries = 1
    at_once = 0
    # a recording is itself a store of replies
    keeps_replies = False

    def host(self, model: Opening[RecordedEntry]) -> str:  # noqa: ARG002 - nothing leaves
        """The replies are in a file on this machine."""
        return ""

    def open(self, model: Opening[RecordedEntry]) -> Chat:
        """The model that had the entry's role in the trace."""
        key = f"models.{model.name}"
        if not model.entry.trace:
            raise ConfigError(f"{key}.trace is not set; name a trace file", key=f"{key}.trace")
        path = Path(model.entry.trace).expanduser()
        recorded = traces.read(path).events
        # a file may hold more than one run
        cards: dict[str, Mapping[str, Any]] = {}
        for event in recorded:
            if isinstance(event, RunStarted):
                cards.update(event.cards)
        card = card_from(_card_of(cards, model.entry.role, f"{key}.role", path))
        calls = [event for event in recorded if isinstance(event, ChatCalled)]
        return RecordedChat(card, Recording(calls))


def _card_of(
    cards: Mapping[str, Mapping[str, Any]], role: str, key: str, path: Path
) -> Mapping[str, Any]:
    """The card of a role, or the only card: the hash of a request depends on the card."""
    if role:
        if role not in cards:
            raise unknown("role", role, cards, where=str(path))
        return cards[role]
    # the roles of a run often share one model
    distinct = list({str(card): card for card in cards.values()}.values())
    if len(distinct) != 1:
        roles = ", ".join(cards) or "none"
        raise ConfigError(f"{key} is not set; roles in {path}: {roles}", key=key)
    return distinct[0]


class Recording:
    """Replies of a recorded run, found by the hash of their whole request.

    Prompts are reworded from one version to the next, and then no hash matches. In such a recording
    (``reworded``), a request also matches the call that showed the same model the same pictures
    and the same quoted material under the same prompt; failing that, the next call of that prompt
    with the same pictures. An event says so each time.
    """

    def __init__(self, calls: Sequence[ChatCalled], *, reworded: bool = False) -> None:
        self._lock = threading.Lock()
        # a failed call has no reply to repeat
        self._calls = [call for call in calls if call.error is None]
        self._used: set[int] = set()
        self._reworded = reworded
        self._places: dict[Hashable, list[int]] = defaultdict(list)
        for place, call in enumerate(self._calls):
            for _, key in self._keys(call.request, call.model, call.prompt, call.messages):
                self._places[key].append(place)

    def take(
        self, request: str, model: str, prompt: str, messages: Iterable[Mapping[str, Any]]
    ) -> ChatCalled | None:
        """The next reply to a request; the last one serves all repeats."""
        with self._lock:
            for label, key in self._keys(request, model, prompt, messages):
                places = self._places.get(key)
                if places:
                    place = next((p for p in places if p not in self._used), places[-1])
                    self._used.add(place)
                    if label:
                        events.note(label, model=model, prompt=prompt)
                    return self._calls[place]
        return None

    def _keys(
        self, request: str, model: str, prompt: str, messages: Iterable[Mapping[str, Any]]
    ) -> Iterator[tuple[str, Hashable]]:
        """Keys from the strictest to the loosest, each with the event that its use is worth."""
        yield "", request
        if not self._reworded:
            return
        turns = [_Turn(message) for message in messages]
        pictures = tuple(turn.pictures for turn in turns)
        material = tuple(turn.material for turn in turns)
        yield "matched_by_material", (model, prompt, pictures, material)
        yield "matched_by_order", (model, prompt, pictures)


class _Turn:
    """What a message holds besides our own words."""

    def __init__(self, message: Mapping[str, Any]) -> None:
        parts = message.get("parts", ())
        text = "".join(part.get("text", "") for part in parts)
        # the model's own turns are material as a whole
        by_model = message["role"] == "assistant"
        self.pictures = tuple(part["image"] for part in parts if "image" in part)
        self.material = (text,) if by_model else tuple(_MATERIAL.findall(text))


class RecordedChat:
    """Answers from a recording, and refuses what was not asked then."""

    def __init__(self, card: Card, recording: Recording) -> None:
        self._card, self._recording = card, recording

    @property
    def card(self) -> Card:
        """The card as it was when the run was recorded."""
        return self._card

    def complete(self, messages: Sequence[Message], options: Options) -> Reply:
        """The recorded reply to this request."""
        request = request_hash(self._card, messages, options)
        described = [describe(message) for message in messages]
        call = self._recording.take(request, self._card.name, options.prompt, described)
        if call is None:
            asked = options.prompt or "request"
            detail = f"the recording holds no reply to this {asked}: the run has changed"
            raise ModelError(self._card.name, "unavailable", detail)
        tools = tuple(
            ToolCall(str(t["id"]), str(t["name"]), str(t["arguments"])) for t in call.tools
        )
        reply = Reply(call.reply, call.thinking, tools, call.usage, call.finish, model=call.model)
        return replace(reply, odds=call.odds)


def card_from(plain: Mapping[str, Any]) -> Card:
    """A card from the plain data of a trace."""
    return TypeAdapter(Card).validate_python(dict(plain))
