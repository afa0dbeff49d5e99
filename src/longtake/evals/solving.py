"""Solvers in processes of their own, which never hold a label.

Each worker is spawned, not forked, because a fork would inherit the labels in this process's
memory. Parent and worker talk through a pipe; when either dies the other notices.
"""

from __future__ import annotations

import dataclasses
import errno
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from longtake.errors import LongtakeError
from longtake.evals.items import Asked, Source
from longtake.events import Sink
from longtake.session.asking import Session
from longtake.sinks.jsonl import JsonlSink
from longtake.sinks.meter import Meter
from longtake.types import Result

DISK_FULL = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True)
class Solver:
    """How questions are answered: everything a worker needs, and nothing that tells it the answer."""

    method: str
    session: Session = field(default_factory=Session)
    traces: Path | None = None
    """Folder for one trace per question."""
    preset: str | None = None
    """The paper's experiment that this is, for the record."""


def answer_one(solver: Solver, source: Source, asked: Asked) -> dict[str, Any]:
    """One question's result as plain data; an error is a result, too."""
    meter = Meter()
    sinks: list[Sink] = [meter]
    if solver.traces is not None:
        trace = solver.traces / f"{file_name(asked.id)}.jsonl"
        sinks.append(JsonlSink(trace, pictures=False))
    row: dict[str, Any] = {"id": asked.id, "video": asked.video}
    try:
        with solver.session.under_way(*sinks):
            footage = source.footage(asked.video)
            result = solver.session.answer(solver.method, footage, asked.question)
    except Exception as error:
        # a full disk is not this question's fault: it ends the run
        if isinstance(error, OSError) and error.errno in DISK_FULL:
            raise
        message = f"{type(error).__name__}: {error}"
        usage = dataclasses.asdict(meter.total)
        return row | {"status": "error", "error": message, "usage": usage}
    return row | _plain(result) | {"notes": meter.notes}


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
    """Results as they come; all questions of a video go to one worker, so that its index is built once."""
    queue = deque(_by_video(questions))
    context = multiprocessing.get_context("spawn")
    crew: dict[Connection, Any] = {}
    try:
        for _ in range(min(workers, len(queue))):
            here, there = context.Pipe()
            process = context.Process(target=_work, args=(there, solver, source), daemon=True)
            with _no_ctrl_c():
                process.start()
            there.close()
            crew[here] = process
            here.send(queue.popleft())
        while crew:
            for pipe in wait(list(crew)):
                assert isinstance(pipe, Connection)
                try:
                    message = pipe.recv()
                except EOFError:
                    process = crew.pop(pipe)
                    process.join()
                    raise LongtakeError(
                        f"a worker died (exit code {process.exitcode}); run again to go on"
                    ) from None
                if isinstance(message, OSError):
                    raise message
                if message is not None:
                    yield message
                elif queue:
                    pipe.send(queue.popleft())
                else:
                    pipe.send(None)
                    crew.pop(pipe).join()
    finally:
        for process in crew.values():
            process.terminate()


def _work(pipe: Connection, solver: Solver, source: Source) -> None:
    """A worker's life: a video's questions in, a result each out, ``None`` when it wants more."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        while (batch := pipe.recv()) is not None:
            for asked in batch:
                pipe.send(answer_one(solver, source, asked))
            pipe.send(None)
    except (EOFError, ConnectionError):
        return  # whoever asked is gone; what was finished is written
    except OSError as error:
        pipe.send(error)  # the disk is full: no question can be answered, and whoever asked says so


@contextmanager
def _no_ctrl_c() -> Iterator[None]:
    """Processes started here never hear of Ctrl-C: who started them does, and ends them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with_parent() -> None:
    """A parent that was killed cannot say so; a model at work for nobody must not go on for minutes."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _by_video(questions: Sequence[Asked]) -> list[list[Asked]]:
    groups: dict[str, list[Asked]] = {}
    for asked in questions:
        groups.setdefault(asked.video, []).append(asked)
    return list(groups.values())


def file_name(identity: str) -> str:
    """An identity, of a question or an agent, as the name of a file."""
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in identity)[:120]
