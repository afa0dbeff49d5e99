"""Questions of a benchmark on many workers: one task for the questions about one film.

Every question is asked once: rows arrive one by one, and after the loss of a machine only what has
no row is asked again. A question that crashes its worker gets an error as its row; the other
questions about the film are asked by another worker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from longtake.cluster.executor import Engine, Executor, Failed, Finished, Said, Value
from longtake.cluster.limits import Limits, Shared, shared_gates
from longtake.cluster.running import Failure
from longtake.errors import BudgetSpent, LongtakeError
from longtake.evals.items import Asked, Source
from longtake.evals.solving import DISK_FULL, Solver, answer_one, by_video
from longtake.types import Usage

Row = dict[str, Any]


@dataclass(frozen=True)
class FilmQuestions:
    """The questions about one film."""

    solver: Solver
    source: Source
    questions: Sequence[Asked]
    limits: Shared = field(repr=False)

    @property
    def name(self) -> str:
        """The film's name in the benchmark."""
        return self.questions[0].video

    def run(self) -> Iterator[Row]:
        """A row for each question, until the run's money is spent."""
        most = self.solver.session.settings.budget.cost or 0.0
        for asked in self.questions:
            if not self.limits.reserve(most):
                return
            with shared_gates(self.limits):
                row = answer_one(self.solver, self.source, asked)
            self.limits.book(most, cost_of(row))
            yield row

    def rest(self, done: int) -> FilmQuestions:
        """The questions that have no row yet."""
        return replace(self, questions=self.questions[done:])


def _error_row(asked: Asked, failure: Failure) -> Row:
    """The row of a question that has taken its worker with it."""
    row = {"id": asked.id, "video": asked.video, "status": "error", "error": failure.message}
    return row | {"usage": asdict(Usage())}


def cost_of(row: Mapping[str, Any]) -> float:
    """What a question has cost, in dollars."""
    return float(row.get("usage", {}).get("cost") or 0.0)


@dataclass(frozen=True)
class ClusterRun:
    """Runs questions on an engine, in place of :func:`longtake.evals.solving.run_all`."""

    engine: Engine
    say: Callable[[str], None]
    money: float | None = None
    """Most dollars that the whole run may cost."""
    spent: float = 0.0
    """Dollars that earlier runs have spent of these."""

    def __call__(self, solver: Solver, source: Source, questions: Sequence[Asked]) -> Iterator[Row]:
        """Results in the order in which they arrive; raises if the run's money is spent."""
        limits = self.engine.share(Limits, self.money, self.spent)
        executor: Executor[FilmQuestions] = Executor(self.engine, on_death=limits.forget)
        left = len(questions)
        with executor:
            for group in by_video(questions):
                executor.submit(FilmQuestions(solver, source, group, limits))
            for row in self._rows(executor):
                left -= 1
                yield row
            if left:
                used = f"${limits.spent():.2f} of ${self.money or 0:g}; {left} questions left"
                raise BudgetSpent("cost of the run", used)

    def _rows(self, executor: Executor[FilmQuestions]) -> Iterator[Row]:
        for report in executor.reports():
            match report:
                case Said(text):
                    self.say(text)
                case Value(_, row):
                    yield row
                case Failed(task, done, failure):
                    if failure.errno in DISK_FULL:
                        # no question can be answered: it is not the fault of this one
                        raise LongtakeError(f"a worker's disk is full ({failure.message})")
                    asked = task.questions[done]
                    yield _error_row(asked, failure)
                    if task.questions[done + 1 :]:
                        executor.submit(task.rest(done + 1), first=True)
                case Finished():
                    pass
