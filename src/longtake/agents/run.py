"""The run of a method on one question: its models, its budget, its end.

Work checks its stop flag in every loop, but loading a model or recognising a minute of speech takes
seconds of native code. Work that can be cancelled therefore runs on a separate thread
(:func:`on_time`). A thread that does not end shortly after its time is abandoned, and ends at its
next check.
"""

from __future__ import annotations

import hashlib
import queue
import random
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar

from longtake._util.cancellation import Ended, Stop, in_background, leave_behind, stopping
from longtake.config import BudgetSettings
from longtake.errors import BudgetSpent, ConfigError, unknown
from longtake.llm.budget import REAL, Clock, Ledger
from longtake.llm.chat import Chat
from longtake.llm.middleware import Budgeted, Traced
from longtake.types import Answer, Usage

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Agent:
    """A member of a team: a model with a name."""

    name: str
    chat: Chat
    temperature: float | None = None
    """Set by the team file; ``None`` leaves it to the method."""
    max_new_tokens: int | None = None
    """Most tokens in a reply; likewise."""


AGENT_ROLES = {"planner": "llm", "grounder": "llm", "perceiver": "llm", "reflector": "llm"}
"""Roles of single agents, and the role whose model they share unless they have their own."""


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
        """Whether answers are to be checked against the film, for methods that do so themselves."""
        self.odds = False
        """Whether a calibration needs the odds of letters, which may take another call."""
        self._stop = stop or Stop()
        self._watched = stop is not None
        _refuse_unpriced([*models.values(), *(agent.chat for agent in team)], self.ledger.limits)
        self._models = {role: self._counted(chat) for role, chat in models.items()}
        self.team = tuple(replace(agent, chat=self._counted(agent.chat)) for agent in team)

    def __getitem__(self, role: str) -> Chat:
        if role not in self._models:
            role = AGENT_ROLES.get(role, role)
        if role not in self._models:
            raise unknown("role", role, self._models)
        return self._models[role]

    def __contains__(self, role: str) -> bool:
        return role in self._models

    @property
    def names(self) -> Mapping[str, str]:
        """The name of the model in each role; agents appear as ``team.NAME``."""
        return {key: chat.card.name for key, chat in self._by_key.items()}

    @property
    def chats(self) -> list[Chat]:
        """Every model of the run."""
        return list(self._by_key.values())

    @property
    def cards(self) -> Mapping[str, Mapping[str, Any]]:
        """Each model's card as plain data, by the keys of :attr:`names`."""
        return {key: asdict(chat.card) for key, chat in self._by_key.items()}

    @property
    def _by_key(self) -> dict[str, Chat]:
        return self._models | {f"team.{agent.name}": agent.chat for agent in self.team}

    @property
    def usage(self) -> Usage:
        """What has been used so far; its seconds count from the start of the run."""
        return replace(self.ledger.spent, seconds=round(self.ledger.elapsed(), 3))

    def propose(self, answer: Answer, *, complete: bool = False) -> None:
        """Record the best answer so far.

        A ``complete`` answer is not marked as cut short when the budget ends the run.
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
        return on_time(act, self.ledger, self._stop, watched=self._watched)

    def random(self, *words: object) -> random.Random:
        """A random generator seeded by the run's seed and these words."""
        # the separator keeps ("ab", "c") and ("a", "bc") apart
        text = "\x1f".join(map(str, (self.seed, *words)))
        digest = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()
        return random.Random(digest)

    def _counted(self, chat: Chat) -> Chat:
        # tracing is outermost, so that calls the budget refuses are recorded too
        return Traced(Budgeted(chat, self.ledger))


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

    def __init__(self, whole: Run, propose: Callable[[Answer], None]) -> None:
        """``propose`` is called with each proposal."""
        self.ledger = whole.ledger
        self.seed = whole.seed
        self.checks, self.odds = whole.checks, whole.odds
        self._stop, self._watched = whole._stop, whole._watched
        self._propose = propose
        self._before = whole.usage
        self._models, self.team = whole._models, whole.team

    @property
    def usage(self) -> Usage:
        """What this stage has used so far."""
        return super().usage - self._before

    def propose(self, answer: Answer, *, complete: bool = False) -> None:  # noqa: ARG002
        """Pass the proposal to the whole run, which decides what is complete."""
        self._propose(answer)


def on_time(act: Callable[[], R], ledger: Ledger, stop: Stop | None, *, watched: bool) -> R:
    """The result of ``act``; raises the error of ``stop`` if it is set or the time is up.

    ``watched``: whether ``stop`` may be set. Work needs a separate thread only if it is watched,
    has a time limit, or is part of work that may be cancelled.
    """
    around = stopping.get()
    stop = Stop(stop, around)
    try:
        if not watched and around is None and ledger.limits.seconds is None:
            with stop.in_force():
                return act()
        return _apart(act, ledger, stop)
    finally:
        stop.release()


def _apart(act: Callable[[], R], ledger: Ledger, stop: Stop) -> R:
    """The result of work on a separate thread."""
    ends: queue.SimpleQueue[Ended] = queue.SimpleQueue()
    done = threading.Event()

    def end(ended: Ended) -> None:
        ends.put(ended)
        done.set()

    thread = in_background(act, stop, end)
    try:
        # short enough to be unnoticeable
        while not done.wait(0.05):
            limit = ledger.limits.seconds
            if limit is not None and ledger.elapsed() >= limit:
                stop.set(ledger.out_of_time)
            if stop.is_set:
                break
        # the work may still end by itself, with its own answer
        if not done.wait(0.4):
            leave_behind(thread)
            stop.check()
    except BaseException:
        # such as Ctrl-C: the result is no longer wanted
        stop.set()
        raise
    result: R = ends.get().value()
    return result
