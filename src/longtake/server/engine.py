"""The process that does the work of runs, beside the server.

The server sends a :class:`~longtake.server.jobs.Job` through a pipe, or the id of one to cancel,
and receives progress and the outcome. Events do not take this way: the process writes them to the
run's trace, where the server reads them. If the process dies, its runs end as broken, and the next
run starts another one.
"""

from __future__ import annotations

import os
import pickle
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from queue import SimpleQueue
from typing import TypeAlias

from longtake._util.cancellation import Stop
from longtake._util.process_pool import spawn
from longtake.errors import LongtakeError, RunError
from longtake.server.films import ServedFilms
from longtake.server.jobs import Job, JobWorker, Outcome, Progress, Report, failed
from longtake.server.journal import Ask, Journal
from longtake.server.library import ServedLibrary
from longtake.server.options import ServeOptions, log_as_json


class EngineLost(RunError):
    """The process that computed a run died."""


@dataclass(frozen=True)
class WarmUp:
    """Asks the process to load the model for an ask that will probably follow, or for any."""

    ask: Ask | None


_Reports: TypeAlias = "SimpleQueue[Progress | Outcome | None]"
"""What a job has reported; ``None``: an event was written to its trace."""


class Engine:
    """The server's side: does jobs in the other process, and starts it when there is none."""

    def __init__(self, options: ServeOptions) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._pipe: Connection | None = None
        self._process: SpawnProcess | None = None
        self._reports: dict[str, _Reports] = {}
        self._closed = False

    def warm_up(self, ask: Ask | None = None) -> None:
        """Load the model for an ask, or for any, without waiting."""
        with self._lock:
            self._start()
            self._send(WarmUp(ask))

    def do(self, job: Job, stop: Stop, report: Report) -> Outcome:
        """Do a job, and wait for its end."""
        reports: _Reports = SimpleQueue()
        with self._lock:
            if self._closed:
                return Outcome(error=_lost())
            self._start()
            self._reports[job.id] = reports
            self._send(job)
        with stop.then(partial(self._cancel, job.id)):
            while not isinstance(reported := reports.get(), Outcome):
                report(reported)
        return reported

    def close(self) -> None:
        """End the process; runs that are under way have two seconds to stop."""
        with self._lock:
            self._closed = True
            self._send(None)
        if self._process is not None:
            self._process.join(5.0)
            self._process.kill()

    def _start(self) -> None:
        """Start the process if there is none."""
        if self._pipe is None and not self._closed:
            self._pipe, self._process = spawn(run_engine, self._options)
            self._reports = {}
            reader = (self._pipe, self._reports)
            threading.Thread(target=self._read, args=reader, name="engine", daemon=True).start()

    def _send(self, message: Job | WarmUp | str | None) -> None:
        # if the process is gone, the thread that reads from it says so
        with suppress(OSError):
            if self._pipe is not None:
                self._pipe.send(message)

    def _cancel(self, job: str) -> None:
        with self._lock:
            self._send(job)

    def _read(self, pipe: Connection, reports: dict[str, _Reports]) -> None:
        """Pass on what a process reports, until it ends."""
        with suppress(EOFError, OSError):
            while True:
                job, report = pipe.recv()
                # threads that a run left behind may report more after its end
                ended = isinstance(report, Outcome)
                waiting = reports.pop(job, None) if ended else reports.get(job)
                if waiting is not None:
                    waiting.put(report)
        with self._lock:
            pipe.close()
            if self._pipe is pipe:
                self._pipe = None
            for waiting in reports.values():
                waiting.put(Outcome(error=_lost()))


def _lost() -> EngineLost:
    return EngineLost("the process that computed this run ended unexpectedly; ask again")


def run_engine(pipe: Connection, options: ServeOptions) -> None:
    """The main function of the process."""
    with log_as_json():
        EngineProcess(pipe, options).serve()
    # at once: native code does not survive the way in which Python ends threads
    os._exit(0)


class EngineProcess:
    """The other side: does jobs, each in a thread, with the models of one process."""

    def __init__(self, pipe: Connection, options: ServeOptions) -> None:
        catalog = ServedFilms(options)
        library = ServedLibrary(options, catalog)
        self._worker = JobWorker(options, catalog, Journal(options.data), library)
        self._pipe, self._sending = pipe, threading.Lock()
        self._runs: dict[str, tuple[Stop, threading.Thread]] = {}
        self._loading = Stop()

    def serve(self) -> None:
        """Do what the server asks for, until it says ``None`` or is gone."""
        with suppress(EOFError, OSError):
            while (message := self._pipe.recv()) is not None:
                # what is loaded in advance gives way to whatever follows
                if not isinstance(message, str):
                    self._loading.set()
                if isinstance(message, Job):
                    stop = Stop()
                    thread = threading.Thread(target=self._do, args=(message, stop), daemon=True)
                    self._runs[message.id] = stop, thread
                    thread.start()
                elif isinstance(message, WarmUp):
                    self._load(message.ask)
                # a run may end while it is cancelled
                elif run := self._runs.get(message):
                    run[0].set()
        self._end()

    def _do(self, job: Job, stop: Stop) -> None:
        outcome = self._worker.do(job, stop, lambda report: self._send(job.id, report))
        try:
            pickle.loads(pickle.dumps(outcome))
        except Exception as error:  # noqa: BLE001 - what a method returns may hold anything
            outcome = failed(job.id, error, outcome.usage)
        del self._runs[job.id]
        self._send(job.id, outcome)

    def _send(self, job: str, report: Progress | Outcome | None) -> None:
        # without a server, nobody is told
        with self._sending, suppress(OSError):
            self._pipe.send((job, report))

    def _load(self, ask: Ask | None) -> None:
        self._loading = stop = Stop()
        # a run that is under way needs the model itself
        if self._runs:
            stop.set()

        def load() -> None:
            # the run that follows reports what is wrong with a model
            with suppress(LongtakeError):
                self._worker.load(ask, stop)

        threading.Thread(target=load, daemon=True).start()

    def _end(self) -> None:
        """Cancel all runs, and wait up to two seconds for them to stop."""
        # copied: runs that end remove themselves
        runs = list(self._runs.values())
        for stop, _ in runs:
            stop.set()
        # cancelled runs end within a second; the rest must not hold up the exit
        until = time.monotonic() + 2.0
        for _, thread in runs:
            thread.join(max(0.0, until - time.monotonic()))
