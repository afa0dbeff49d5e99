"""Models whose replies exist beforehand: written down for tests, or recorded in a run."""

from __future__ import annotations

import re
import threading
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from pydantic import TypeAdapter

from longtake.config.entries import ScriptedEntry
from longtake.errors import ModelError
from longtake.llm.backend import HereBackend, ModelRequest
from longtake.llm.chat import (
    HERE,
    Card,
    Chat,
    Message,
    Options,
    Reply,
    ToolCall,
    describe,
    price_of,
    request_hash,
)
from longtake.llm.openai_protocol import estimated_usage
from longtake.llm.structured.reader import split_thinking
from longtake.tracing import events
from longtake.tracing.events import ChatCalled

_MATERIAL = re.compile(r'<material name="(?!problem")[^"]*">\n(.*?)\n</material>', re.DOTALL)
"""Quoted material, except for our explanation of what was wrong with a reply."""


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
        pictures, material = [], []
        for message in messages:
            parts = message.get("parts", ())
            pictures.append(tuple(part["image"] for part in parts if "image" in part))
            text = "".join(part.get("text", "") for part in parts)
            # the model's turns are material as a whole
            by_model = message["role"] == "assistant"
            material.append((text,) if by_model else tuple(_MATERIAL.findall(text)))
        yield "matched_by_material", (model, prompt, tuple(pictures), tuple(material))
        yield "matched_by_order", (model, prompt, tuple(pictures))


class RecordedChat:
    """Answers from a recording, and refuses what was not asked then."""

    def __init__(self, card: Card, recording: Recording) -> None:
        self.card, self._recording = card, recording

    def complete(self, messages: Sequence[Message], options: Options) -> Reply:
        """The recorded reply to this request."""
        request = request_hash(self.card, messages, options)
        described = [describe(message) for message in messages]
        call = self._recording.take(request, self.card.name, options.prompt, described)
        if call is None:
            asked = options.prompt or "request"
            detail = f"the recording holds no reply to this {asked}: the run has changed"
            raise ModelError(self.card.name, "unavailable", detail)
        tools = tuple(
            ToolCall(str(t["id"]), str(t["name"]), str(t["arguments"])) for t in call.tools
        )
        reply = Reply(call.reply, call.thinking, tools, call.usage, call.finish, model=call.model)
        return replace(reply, odds=call.odds)


def card_from(plain: Mapping[str, Any]) -> Card:
    """A card from the plain data of a trace."""
    return TypeAdapter(Card).validate_python(dict(plain))


Line: TypeAlias = str | Reply | Exception
Script: TypeAlias = Callable[[Sequence[Message], Options], Line] | Iterable[Line]


class ScriptedBackend(HereBackend[ScriptedEntry]):
    """Models whose replies are in the configuration."""

    name = "scripted"
    settings = ScriptedEntry
    # the same request must get the next reply, not the last one again
    keeps_replies = False

    def open(self, model: ModelRequest[ScriptedEntry]) -> Chat:
        """A chat that gives the entry's replies in order."""
        # free unless the entry sets prices, as tests of budgets do
        card = model.card(price=price_of(model.name, model.entry) or HERE)
        return ScriptedChat(model.entry.replies, card=card)

    def state(self, model: ModelRequest[ScriptedEntry]) -> str:
        """How many replies it has."""
        return f"{len(model.entry.replies)} replies"


class ScriptedChat:
    """Answers from a function of the messages, or from a list, in order.

    An exception in the script is raised. When a list runs out, asking is an error; no reply is
    invented.
    """

    def __init__(self, script: Script, *, card: Card | None = None) -> None:
        self.card = card or Card("scripted")
        self._lines = None if callable(script) else iter(script)
        self._act = script if callable(script) else None
        self._lock = threading.Lock()
        self.asked: list[tuple[tuple[Message, ...], Options]] = []
        """What it was asked, in order."""

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
            raise ModelError(self.card.name, "unavailable", detail)
        if isinstance(line, Exception):
            raise line
        return self._reply(messages, line) if isinstance(line, str) else line

    def _reply(self, messages: Sequence[Message], written: str) -> Reply:
        thinking, text = split_thinking(written)
        usage = estimated_usage(self.card, messages, written, 0.0)
        return Reply(text, thinking, (), usage, "stop", self.card.model or self.card.name)
