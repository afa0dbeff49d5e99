"""Questions of a benchmark on many workers, under limits that hold for all of them together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from longtake.cluster.limits import Limits, SharedLimits, shared_gates
from longtake.cluster.notes import with_notes
from longtake.errors import BudgetSpent
from longtake.evals.items import Asked, Source
from longtake.evals.solving import FilmQuestions, Row, Solver, answer_one, by_video, rows_of
from longtake.process_pool import Notice, WorkerBackend, WorkerPool, worker_name


@dataclass(frozen=True)
class LimitedQuestions(FilmQuestions):
    """The questions about one film, asked until the run's cost limit is reached."""

    limits: SharedLimits = field(repr=False)

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
    """Runs questions on a backend, in place of :func:`longtake.evals.solving.run_all`."""

    backend: WorkerBackend
    say: Callable[[str], None]
    max_cost: float | None = None
    """Dollars that the whole run may cost."""
    spent: float = 0.0
    """Dollars that earlier runs have spent of these."""

    def __call__(self, solver: Solver, source: Source, questions: Sequence[Asked]) -> Iterator[Row]:
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
