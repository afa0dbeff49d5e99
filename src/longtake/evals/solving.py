"""Solvers in separate processes, which never hold a label.

Workers are spawned, not forked: a fork would inherit the labels in this process's memory.
"""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, TypeAlias

from longtake.errors import LongtakeError
from longtake.evals.items import Asked, Source
from longtake.events import Sink
from longtake.session.asking import Session
from longtake.sinks.jsonl import JsonlSink
from longtake.sinks.meter import Meter
from longtake.spawning import spawn
from longtake.stopping import leave
from longtake.types import Result

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


AskAll: TypeAlias = Callable[[Solver, Source, Sequence[Asked]], Iterator[dict[str, Any]]]
"""Asks questions and gives the results in the order in which they arrive."""


def answer_one(solver: Solver, source: Source, asked: Asked) -> dict[str, Any]:
    """The result of one question as plain data; an error is a result too."""
    meter = Meter()
    sinks: list[Sink] = [meter]
    if solver.traces is not None:
        trace = solver.traces / f"{file_name(asked.id)}.jsonl"
        # with pictures, the traces of a whole benchmark would fill a disk
        sinks.append(JsonlSink(trace, pictures=False))
    row: dict[str, Any] = {"id": asked.id, "video": asked.video}
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


def run_all(
    solver: Solver, source: Source, questions: Sequence[Asked], *, workers: int = 1
) -> Iterator[dict[str, Any]]:
    """Results in the order in which they arrive.

    One worker gets all questions about a video, so that its index is built once.
    """
    queue = deque(by_video(questions))
    crew: dict[Connection, SpawnProcess] = {}
    try:
        for _ in range(min(workers, len(queue))):
            started, process = spawn(_work, solver, source)
            crew[started] = process
            started.send(queue.popleft())
        while crew:
            # a pipe is ready when there is a message, and also when its worker has died
            for pipe in wait(list(crew)):
                assert isinstance(pipe, Connection)
                row = _receive(pipe, crew[pipe])
                if row is not None:
                    yield row
                elif queue:
                    pipe.send(queue.popleft())
                else:
                    pipe.send(None)
                    crew.pop(pipe).join()
    finally:
        # after an error, or if the caller stops early, no worker may go on
        for process in crew.values():
            process.terminate()


def _receive(pipe: Connection, process: SpawnProcess) -> dict[str, Any] | None:
    """The next result of a worker, or ``None`` when it wants more questions."""
    try:
        message: dict[str, Any] | OSError | None = pipe.recv()
    # a worker that is killed while it writes resets the pipe
    except (EOFError, ConnectionResetError):
        process.join()
        told = f"a worker died (exit code {process.exitcode}); run the command again to continue"
        raise LongtakeError(told) from None
    if isinstance(message, OSError):
        raise message
    return message


def _work(pipe: Connection, solver: Solver, source: Source) -> None:
    """The main loop of a worker: receives the questions about a video, sends a result for each.

    ``None`` asks for more questions, and received it means that there are none.
    """
    try:
        while (batch := pipe.recv()) is not None:
            for asked in batch:
                pipe.send(answer_one(solver, source, asked))
            pipe.send(None)
    except (EOFError, ConnectionError):
        return  # the parent is gone; it has written every result that it received
    except OSError as error:
        # the disk is full: no question can be answered, and the parent reports it
        pipe.send(error)
    leave(0)


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
