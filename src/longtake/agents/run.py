"""The run of a method on one question: its models, its budget, its end.

Work checks its stop flag in every loop, but one loaded model or one minute of speech takes seconds
of native code. Work that can be ended therefore has a thread of its own (:func:`on_time`). If it
has not ended shortly after its time, the thread is left behind: it ends by itself at its next
check.
"""

from __future__ import annotations

import hashlib
import json
import queue
import random
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar

from longtake._util.cancellation import Ended, Stop, in_background, leave_behind, stopping
from longtake._util.timecode import parse_time
from longtake.config import BudgetSettings
from longtake.errors import BudgetSpent, ConfigError, LongtakeError, unknown
from longtake.llm.budget import REAL, Clock, Ledger
from longtake.llm.chat import Chat, Message, Options, Reply, images, request_hash
from longtake.llm.middleware import Budgeted, Middleware, Traced
from longtake.tracing import events
from longtake.types import Answer, Line, Segment, Usage

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Agent:
    """A member of a team: a model under a name of its own."""

    name: str
    chat: Chat
    channels: tuple[str, ...] = ()
    """What it perceives; empty means everything."""
    temperature: float | None = None
    """Set by the team file; ``None`` leaves it to the method."""
    max_new_tokens: int | None = None
    """Most tokens in a reply; likewise."""


class Run:
    """The run of a method on one question.

    ::

        run["llm"]              the model in a role
        run.team                the agents, in the configured order
        run.propose(answer)     the best answer so far, returned if the budget ends the run
        run.random("preview")   a generator that depends on the seed and these words only
        run.cancel()            ends the run from any thread, with the best answer so far
    """

    def __init__(
        self,
        models: Mapping[str, Chat],
        *,
        team: Sequence[Agent] = (),
        budget: BudgetSettings | None = None,
        seed: int = 0,
        clock: Clock = REAL,
        ledger: Ledger | None = None,
        stop: Stop | None = None,
    ) -> None:
        """``ledger`` replaces budget and clock; ``stop`` ends the run when it is set."""
        self.ledger = ledger or Ledger(budget, clock=clock)
        self.seed = seed
        self.checks = True
        """Whether answers are checked against the film; for methods that do so themselves."""
        self._stop = stop or Stop()
        # without a limit and without anyone to cancel it, a run needs no thread of its own
        self._may_end = may_end(self.ledger, stop)
        _refuse_unpriced([*models.values(), *(agent.chat for agent in team)], self.ledger.limits)
        self._models = {role: self._counted(chat) for role, chat in models.items()}
        self.team = tuple(replace(agent, chat=self._counted(agent.chat)) for agent in team)

    def __getitem__(self, role: str) -> Chat:
        if role not in self._models:
            raise unknown("role", role, self._models)
        return self._models[role]

    def __contains__(self, role: str) -> bool:
        return role in self._models

    @property
    def names(self) -> Mapping[str, str]:
        """The name of the model in each role; agents appear as ``team.NAME``."""
        roles = {role: chat.card.name for role, chat in self._models.items()}
        return roles | {f"team.{agent.name}": agent.chat.card.name for agent in self.team}

    @property
    def chats(self) -> list[Chat]:
        """Every model of the run."""
        return [*self._models.values(), *(agent.chat for agent in self.team)]

    @property
    def cards(self) -> Mapping[str, Mapping[str, Any]]:
        """Each model's card as plain data, by the keys of :attr:`names`."""
        roles = {role: asdict(chat.card) for role, chat in self._models.items()}
        return roles | {f"team.{agent.name}": asdict(agent.chat.card) for agent in self.team}

    @property
    def usage(self) -> Usage:
        """What has been used so far; its seconds count from the start of the run."""
        return replace(self.ledger.spent, seconds=round(self.ledger.elapsed(), 3))

    def propose(self, answer: Answer, *, complete: bool = False) -> None:
        """Record the best answer so far; ``complete`` if more of the budget might only improve it.

        A complete answer is not marked as cut short when the budget ends the run.
        """
        self.ledger.best, self.ledger.complete = answer, complete

    def check(self) -> None:
        """Raise :class:`BudgetSpent` if the time is up; call it during long work between calls."""
        self.ledger.remaining_seconds()

    def cancel(self) -> None:
        """End the run, including what it decodes, recognises or waits for."""
        self._stop.set()

    def on_time(self, act: Callable[[], T]) -> T:
        """The result of ``act``, unless the run is cancelled or its time is up."""
        stop = Stop(self._stop, stopping.get())
        try:
            return on_time(
                act, self.ledger, stop, apart=self._may_end or stopping.get() is not None
            )
        finally:
            stop.release()

    def random(self, *words: object) -> random.Random:
        """A random generator seeded by the run's seed and these words."""
        # the separator keeps ("ab", "c") and ("a", "bc") apart
        text = "\x1f".join(map(str, (self.seed, *words)))
        digest = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()
        return random.Random(digest)

    def _counted(self, chat: Chat) -> Chat:
        # tracing is outermost, so that calls the budget refuses are recorded too
        return Traced(Budgeted(chat, self.ledger))


def may_end(ledger: Ledger, stop: Stop | None) -> bool:
    """Whether a time limit or somebody else can end a run before its method does."""
    return stop is not None or ledger.limits.seconds is not None


def settle(spent: BudgetSpent) -> Answer:
    """The answer of a run that ran out of budget: the best so far, or an empty one."""
    if spent.best is not None and spent.complete:
        return spent.best
    return replace(spent.best or Answer(), status="budget_spent")


def _refuse_unpriced(chats: Sequence[Chat], limits: BudgetSettings) -> None:
    """Reject a cost limit that cannot be checked because a price is unknown."""
    if limits.cost is None:
        return
    unpriced = sorted({chat.card.name for chat in chats if chat.card.price is None})
    if unpriced:
        raise ConfigError(
            f"budget.cost is set, but the price of {', '.join(unpriced)} is unknown; "
            "set price_in and price_out in the model's entry, or limit tokens or calls instead",
            key="budget.cost",
        )


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
            return chat if notebook is None else NotingChat(chat, notebook)

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


class NotingChat(Middleware):
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
        descriptions = _descriptions(reply.text, Segment(min(times), max(times))) if times else []
        with self._lock:
            self._replies[key] = reply
            self._lines.update(dict.fromkeys(descriptions))


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


def on_time(act: Callable[[], R], ledger: Ledger, stop: Stop, *, apart: bool) -> R:
    """The result of ``act``; raises the error of ``stop`` if it is set or the time is up.

    ``apart`` says whether the work gets a thread of its own, without which it ends only where it
    checks its flag.
    """
    if not apart:
        with stop.in_force():
            return act()
    ends: queue.SimpleQueue[Ended] = queue.SimpleQueue()
    done = threading.Event()

    def end(ended: Ended) -> None:
        ends.put(ended)
        done.set()

    thread = in_background(act, stop, end)
    try:
        # often enough that nobody notices the delay
        while not done.wait(0.05):
            limit = ledger.limits.seconds
            if limit is not None and ledger.elapsed() >= limit:
                stop.set(ledger.out_of_time)
            if stop.is_set:
                break
        # work has a moment to end by itself, with an answer of its own
        if not done.wait(0.4):
            leave_behind(thread)
            stop.check()
    except BaseException:
        # Ctrl-C, for one: what the thread does is no longer wanted
        stop.set()
        raise
    result: R = ends.get().value()
    return result
