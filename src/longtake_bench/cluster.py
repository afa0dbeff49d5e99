"""Questions of a benchmark on many workers, within limits that hold for all of them together.

The limits are calls at once per endpoint, and the cost of the run. One :class:`Limits` object
serves all workers, in a separate process or as an actor. Workers wait for it in short calls, so
that one that is cancelled or dies leaves no call behind.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from longtake._util.cancellation import check_stop
from longtake._util.process_pool import Notice, WorkerBackend, WorkerPool, worker_name
from longtake.cluster.backends import with_notes
from longtake.errors import BudgetSpent
from longtake.llm.middleware import Gate, make_gate
from longtake_bench.benchmarks import BenchmarkQuestion, VideoSource
from longtake_bench.runner import FilmQuestions, Row, Solver, answer_one, by_video, rows_of

TURN = 1.0
"""Seconds that one call waits for a place; meanwhile the caller cannot notice a cancellation."""


class Limits:
    """Gates by endpoint, and what the run may spend; called from many threads.

    Workers hold a proxy of it, wherever it is.
    """

    def __init__(self, money: float | None = None, spent: float = 0.0) -> None:
        self._money, self._spent = money, spent
        self._gates: dict[str, Gate] = {}
        self._places: dict[str, list[tuple[str, int]]] = defaultdict(list)
        self._lock = threading.Lock()

    def enter(self, worker: str, endpoint: str, limit: int, seconds: float) -> int | None:
        """Wait for a place; the limit of an endpoint is that of its first caller."""
        with self._lock:
            gate = self._gates.setdefault(endpoint, Gate(limit))
        entered = gate.enter(seconds)
        if entered is not None:
            with self._lock:
                self._places[worker].append((endpoint, entered))
        return entered

    def leave(
        self, worker: str, endpoint: str, entered: int, overloaded: bool, worked: bool
    ) -> None:
        """Give a place back, and adjust the endpoint's limit to how the call went."""
        with self._lock:
            # after :meth:`forget` it has been given back already
            if (endpoint, entered) not in self._places[worker]:
                return
            self._places[worker].remove((endpoint, entered))
        self._gates[endpoint].leave(entered, overloaded=overloaded, worked=worked)

    def forget(self, worker: str) -> None:
        """Give back the places of a worker that has died."""
        with self._lock:
            places = self._places.pop(worker, [])
        for endpoint, entered in places:
            self._gates[endpoint].leave(entered, overloaded=False, worked=False)

    def reserve(self, cost: float) -> bool:
        """Set money aside. What a dead worker has reserved counts as spent: it may have been."""
        with self._lock:
            if self._money is not None:
                left = self._money - self._spent
                if left <= 0 or cost > left:
                    return False
            self._spent += cost
            return True

    def book(self, reserved: float, used: float) -> None:
        """Replace what was set aside by what was used."""
        with self._lock:
            self._spent += used - reserved

    def spent(self) -> float:
        """What has been used or set aside so far."""
        return self._spent


class SharedGate(Gate):
    """The gate of an endpoint, kept by the limits of the cluster."""

    def __init__(self, shared: Limits, endpoint: str, limit: int) -> None:
        super().__init__(limit)
        self._shared, self._endpoint, self._worker = shared, endpoint, worker_name()

    def enter(self, timeout: float | None) -> int | None:
        """Wait for a place, turn by turn."""
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            check_stop()
            left = TURN if until is None else min(TURN, until - time.monotonic())
            if left <= 0:
                return None
            entered = self._shared.enter(self._worker, self._endpoint, self.max_limit, left)
            if entered is not None:
                return entered

    def leave(self, entered: int, *, overloaded: bool, worked: bool) -> None:
        """Give the place back."""
        self._shared.leave(self._worker, self._endpoint, entered, overloaded, worked)


@contextmanager
def shared_gates(shared: Limits) -> Iterator[None]:
    """Models opened in the block wait at the gates of the cluster."""
    token = make_gate.set(partial(SharedGate, shared))
    try:
        yield
    finally:
        make_gate.reset(token)


@dataclass(frozen=True)
class LimitedQuestions(FilmQuestions):
    """The questions about one film, asked until the run's cost limit is reached."""

    limits: Limits = field(repr=False)

    @with_notes
    def run(self) -> Iterator[Row]:
        """A row for each question that can be paid for."""
        # the process that was here before may have died with places at the gates
        self.limits.forget(worker_name())
        reserved = self.solver.session.settings.budget.cost or 0.0
        for asked in self.questions:
            if not self.limits.reserve(reserved):
                return
            with shared_gates(self.limits):
                row = answer_one(self.solver, self.source, asked)
            self.limits.book(reserved, cost_of(row))
            yield row


def cost_of(row: Mapping[str, Any]) -> float:
    """What a question has cost, in dollars."""
    return float(row.get("usage", {}).get("cost") or 0.0)


@dataclass(frozen=True)
class ClusterRun:
    """Runs questions on a backend, in place of :func:`longtake_bench.runner.run_all`."""

    backend: WorkerBackend
    say: Callable[[str], None]
    max_cost: float | None = None
    """Dollars that the whole run may cost."""
    spent: float = 0.0
    """Dollars that earlier runs have spent of these."""

    def __call__(
        self, solver: Solver, source: VideoSource, questions: Sequence[BenchmarkQuestion]
    ) -> Iterator[Row]:
        """Results in the order in which they arrive; raises at the run's cost limit."""
        limits = self.backend.share(Limits, self.max_cost, self.spent)
        pool: WorkerPool[LimitedQuestions] = WorkerPool(self.backend, on_death=limits.forget)
        left = len(questions)
        with pool:
            for group in by_video(questions):
                pool.submit(LimitedQuestions(solver, source, group, limits))
            for report in rows_of(pool):
                if isinstance(report, Notice):
                    self.say(report.text)
                else:
                    left -= 1
                    yield report
            if left:
                used = f"${limits.spent():.2f} of ${self.max_cost or 0:g}; {left} questions left"
                raise BudgetSpent("cost of the run", used)
