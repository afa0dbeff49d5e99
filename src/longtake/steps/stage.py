"""A stage of a run: another method at work for the same question, models and budget.

What its models tell about pictures is noted, so that later stages need not look again, and a
request that an earlier stage made is not paid for twice.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from longtake import events
from longtake.errors import LongtakeError
from longtake.models.chat import Chat, Message, Options, Reply, images, request_hash
from longtake.models.layers import Layer
from longtake.steps.run import Run
from longtake.timecode import parse_time
from longtake.types import Answer, Line, Segment, Usage

DESCRIBING = ("caption", "description", "observation", "findings")
"""Fields of replies that say what pictures show."""


class Notebook:
    """What models told about pictures, in the order in which they did, and every reply."""

    def __init__(self) -> None:
        self._lines: dict[Line, None] = {}
        self._replies: dict[str, Reply] = {}
        self._lock = threading.Lock()  # stages ask from several threads

    @property
    def lines(self) -> list[Line]:
        """Everything noted, in time order, each once."""
        with self._lock:
            return sorted(self._lines, key=lambda line: line.segment)

    def known(self, key: str) -> Reply | None:
        """The reply to the same request, if it was made before."""
        with self._lock:
            return self._replies.get(key)

    def keep(self, key: str, messages: Sequence[Message], reply: Reply) -> None:
        """Remember a reply, and what it says about the pictures of its request."""
        times = [image.time for image in images(messages)]
        told = _descriptions(reply.text, Segment(min(times), max(times))) if times else []
        with self._lock:
            self._replies[key] = reply
            self._lines.update(dict.fromkeys(told))


class Noting(Layer):
    """A model whose replies go to a notebook, and which is not asked the same twice."""

    def __init__(self, inner: Chat, notebook: Notebook) -> None:
        super().__init__(inner)
        self._notebook = notebook

    def complete(self, messages: Sequence[Message], options: Options) -> Reply:
        """Look into the notebook first, ask second."""
        key = request_hash(self.card, messages, options)
        known = None if options.temperature else self._notebook.known(key)
        if known is not None:
            events.note("asked_before", prompt=options.prompt)
            return replace(known, usage=Usage(), cached=True)
        reply = self.inner.complete(messages, options)
        self._notebook.keep(key, messages, reply)
        return reply


class StageRun(Run):
    """A run inside a run: the same models, budget and seed; its own proposals and usage."""

    def __init__(
        self, whole: Run, notebook: Notebook | None, propose: Callable[[Answer], None]
    ) -> None:
        """Without a ``notebook`` nothing is handed over; ``propose`` is told each proposal."""
        self.ledger = whole.ledger
        self.seed = whole.seed
        self.checks = whole.checks
        self._stop, self._may_end = whole._stop, whole._may_end
        self._propose = propose
        self._before = whole.usage

        def noting(chat: Chat) -> Chat:
            return chat if notebook is None else Noting(chat, notebook)

        self._models = {role: noting(chat) for role, chat in whole._models.items()}
        self.team = tuple(replace(agent, chat=noting(agent.chat)) for agent in whole.team)

    @property
    def usage(self) -> Usage:
        """What this stage has used so far."""
        return subtract(super().usage, self._before)

    def propose(self, answer: Answer, *, complete: bool = False) -> None:  # noqa: ARG002
        """Tell the whole run, which decides itself what is complete."""
        self._propose(answer)


def subtract(after: Usage, before: Usage) -> Usage:
    """What was used in between."""
    cost = None
    if after.cost is not None and before.cost is not None:
        cost = after.cost - before.cost
    return Usage(
        after.calls - before.calls,
        after.tokens_in - before.tokens_in,
        after.tokens_cached - before.tokens_cached,
        after.tokens_out - before.tokens_out,
        after.frames - before.frames,
        round(after.seconds - before.seconds, 3),
        cost,
    )


def _descriptions(reply: str, shown: Segment) -> list[Line]:
    """What a reply in JSON says about pictures; other replies are left alone."""
    try:
        return list(_described(json.loads(reply), shown))
    except (ValueError, RecursionError):
        return []


def _described(value: Any, shown: Segment) -> Iterator[Line]:
    if isinstance(value, list):
        for each in value:
            yield from _described(each, shown)
    elif isinstance(value, dict):
        # an event of a timeline names its own time
        moment = _named(value, shown)
        for name, part in value.items():
            if name in DESCRIBING and isinstance(part, str) and part.strip():
                yield Line(moment, part.strip())
            else:
                yield from _described(part, moment)


def _named(value: Mapping[str, Any], shown: Segment) -> Segment:
    """The time that a description names, within what was shown; else all that was shown."""
    try:
        start = parse_time(str(value["start"]))
        end = parse_time(str(value.get("end", value["start"])))
    except (KeyError, ValueError, LongtakeError):
        return shown
    inside = shown.start <= start <= end <= shown.end + 1
    return Segment(start, end) if inside else shown
