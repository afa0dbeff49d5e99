"""Solvers in separate processes, which never hold a label.

Workers are spawned, not forked: a fork would inherit the labels in this process's memory. Every
question is asked once: rows arrive one by one, and only what has no row is asked again.
"""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeAlias, TypeVar

from longtake.errors import LongtakeError
from longtake.evals.items import Asked, Source
from longtake.events import Sink
from longtake.process_pool import Notice, Processes, TaskFailed, TaskFinished, TaskValue, WorkerPool
from longtake.session.asking import Session
from longtake.sinks.jsonl import JsonlSink
from longtake.sinks.meter import Meter
from longtake.types import Result, Usage

Row: TypeAlias = dict[str, Any]
F = TypeVar("F", bound="FilmQuestions")

DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
LONGEST_NAME = 120
"""Characters of an identity that are kept in a file name."""
DIGEST = 12
"""Hexadecimal digits of an identity's digest in a file name."""
# a leading dot is unsafe too: such files are hidden, and ".." is another folder
_UNSAFE = re.compile(r"^\.|[^A-Za-z0-9_.-]")


@dataclass(frozen=True)
class Solver:
    """How questions are answered: everything that a worker needs, and no label."""

    method: str
    session: Session = field(default_factory=Session)
    traces: Path | None = None
    """Folder for one trace per question."""
    preset: str | None = None
    """The preset that this comes from, for the run's spec."""


AskAll: TypeAlias = Callable[[Solver, Source, Sequence[Asked]], Iterator[Row]]
"""Asks questions and gives the results in the order in which they arrive."""


def answer_one(solver: Solver, source: Source, asked: Asked) -> Row:
    """The result of one question as plain data; an error is a result too."""
    meter = Meter()
    sinks: list[Sink] = [meter]
    if solver.traces is not None:
        trace = solver.traces / f"{file_name(asked.id)}.jsonl"
        # with pictures, the traces of a whole benchmark would fill a disk
        sinks.append(JsonlSink(trace, pictures=False))
    row: Row = {"id": asked.id, "video": asked.video}
    try:
        with solver.session.under_way(*sinks):
            footage = source.footage(asked.video)
            result = solver.session.answer(solver.method, footage, asked.question)
    # a bug in a method must not end a run of thousands of questions
    except Exception as error:
        # a full disk is not the fault of this question: it ends the run
        if isinstance(error, OSError) and error.errno in DISK_FULL:
            raise
        message = f"{type(error).__name__}: {error}"
        usage = dataclasses.asdict(meter.total)
        return row | {"status": "error", "error": message, "usage": usage}
    counted: dict[str, Any] = {"seen": meter.seen, "rounds": meter.rounds, "notes": meter.notes}
    # what a calibration is fitted from
    if meter.signals:
        counted["signals"] = meter.signals
    if meter.stages:
        counted["stages"] = meter.stages
    return row | _plain(result) | counted


def _plain(result: Result) -> dict[str, Any]:
    answer = result.answer
    return {
        "status": answer.status,
        "choice": answer.choice,
        "text": answer.text,
        "confidence": answer.confidence,
        "evidence": [[cited.segment.start, cited.segment.end] for cited in answer.evidence],
        "usage": dataclasses.asdict(result.usage),
    }


@dataclass(frozen=True)
class FilmQuestions:
    """A task: the questions about one film, so that its index is built once."""

    solver: Solver
    source: Source
    questions: Sequence[Asked]

    @property
    def name(self) -> str:
        """The film's name in the benchmark."""
        return self.questions[0].video

    def run(self) -> Iterator[Row | Notice]:
        """A row for each question."""
        for asked in self.questions:
            yield answer_one(self.solver, self.source, asked)

    def rest(self, done: int) -> Self:
        """The questions that have no row yet."""
        return dataclasses.replace(self, questions=self.questions[done:])


def run_all(
    solver: Solver, source: Source, questions: Sequence[Asked], *, workers: int = 1
) -> Iterator[Row]:
    """Results in the order in which they arrive."""
    with Processes(workers) as backend, WorkerPool[FilmQuestions](backend) as pool:
        for group in by_video(questions):
            pool.submit(FilmQuestions(solver, source, group))
        for report in rows_of(pool):
            if not isinstance(report, Notice):
                yield report


def rows_of(pool: WorkerPool[F]) -> Iterator[Row | Notice]:
    """The rows of a pool's questions, and what its workers say.

    A question that crashes its worker gets an error as its row; the other questions about the film
    are asked by another worker.
    """
    for report in pool.reports():
        match report:
            case Notice():
                yield report
            case TaskValue(_, row):
                yield row
            case TaskFailed(task, done, failure):
                if failure.errno in DISK_FULL:
                    # no question can be answered: it is not the fault of this one
                    raise LongtakeError(f"a worker's disk is full ({failure.message})")
                asked = task.questions[done]
                row = {"id": asked.id, "video": asked.video, "status": "error"}
                yield row | {"error": failure.message, "usage": dataclasses.asdict(Usage())}
                if task.questions[done + 1 :]:
                    pool.submit(task.rest(done + 1), first=True)
            case TaskFinished():
                pass


def by_video(questions: Sequence[Asked]) -> list[list[Asked]]:
    """The questions in groups, one for each video."""
    groups: dict[str, list[Asked]] = {}
    for asked in questions:
        groups.setdefault(asked.video, []).append(asked)
    return list(groups.values())


def file_name(identity: str) -> str:
    """A file name for a question or an agent, different for different identities.

    Characters that are unsafe in file names are replaced and long identities are cut. What that
    loses, a digest of the whole identity makes up for: ``a/b`` and ``a_b`` get different names.
    """
    safe = _UNSAFE.sub("_", identity)[:LONGEST_NAME]
    if safe and safe == identity:
        return identity
    digest = hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{safe}-{digest[:DIGEST]}"
