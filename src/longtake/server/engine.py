"""The process in which runs compute.

Python runs one thread at a time, so that a server whose runs were threads of its own would answer
each request only between them. The runs of ``longtake serve`` therefore compute in one process
beside it, which lives as long as the server. They write their traces themselves; what passes
through the pipe is small:

::

    to the engine      Job                              begin
                       id                               cancel
    from the engine    (id, None)                       an event was written
                       (id, (part, share))              progress
                       (id, Outcome)                    the end

If the process dies, its runs end as broken and the next one starts another.
"""

from __future__ import annotations

import contextvars
import os
import pickle
import threading
import time
import traceback
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any

from longtake.errors import LongtakeError
from longtake.server.films import Shelf
from longtake.server.journal import Journal
from longtake.server.library import ServedLibrary
from longtake.server.logs import log_as_json
from longtake.server.options import ServeOptions
from longtake.server.work import Crash, EngineLost, Job, Listener, Outcome, Worker
from longtake.spawning import spawn
from longtake.stopping import Stop, stopping

LAST_WAIT = 2.0
"""Seconds that the end of the server waits for runs that were cancelled."""


class _Pipe:
    """One end of the pipe; any thread may send."""

    def __init__(self, connection: Connection) -> None:
        self._connection, self._lock = connection, threading.Lock()

    def send(self, message: object) -> None:
        """Send a message, if somebody is left to receive it: :meth:`receive` notices the end."""
        data = pickle.dumps(message)
        with self._lock, suppress(OSError):
            self._connection.send_bytes(data)

    def receive(self) -> Any:
        """The next message; ``None`` once the other end is gone."""
        try:
            return pickle.loads(self._connection.recv_bytes())
        except (EOFError, OSError):
            return None


@dataclass
class _Started:
    """An engine's process, and the jobs it was given."""

    pipe: _Pipe
    process: SpawnProcess
    jobs: dict[str, tuple[Listener, Future[Outcome]]] = field(default_factory=dict)


class Engine:
    """Does jobs in a process of its own; this is the server's side of it."""

    def __init__(self, options: ServeOptions) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._closed = False
        self._started: _Started | None = None

    def warm_up(self) -> None:
        """Start the process."""
        self._running()

    def do(self, job: Job, listener: Listener) -> Outcome:
        """Do a job, and wait for its end."""
        future: Future[Outcome] = Future()
        started = self._running((job.id, (listener, future)))
        if started is None:
            return Outcome(error=_lost())
        started.pipe.send(job)
        with listener.stop.then(lambda: started.pipe.send(job.id)):
            return future.result()

    @property
    def pid(self) -> int | None:
        """The process that computes."""
        return self._started.process.pid if self._started else None

    def close(self) -> None:
        """End the process, after a moment in which cancelled runs may end by themselves."""
        with self._lock:
            self._closed = True
            started = self._started
        if started is None:
            return
        started.pipe.send(None)
        started.process.join(LAST_WAIT + 1.0)
        started.process.terminate()

    def _running(self, *jobs: tuple[str, tuple[Listener, Future[Outcome]]]) -> _Started | None:
        """The process, started if need be, that will do some jobs; ``None`` after the end."""
        with self._lock:
            if self._closed:
                return None
            if self._started is None:
                self._started = self._start()
            # under the lock: a process whose end was noticed gets no further jobs
            self._started.jobs.update(jobs)
            return self._started

    def _start(self) -> _Started:
        connection, process = spawn(_engine_process, self._options)
        started = _Started(_Pipe(connection), process)
        threading.Thread(target=self._listen, args=[started], name="engine", daemon=True).start()
        return started

    def _listen(self, started: _Started) -> None:
        """Pass on what the engine says, until it ends."""
        while (message := started.pipe.receive()) is not None:
            job, news = message
            if job not in started.jobs:
                continue  # a thread that a run left behind
            listener, future = started.jobs[job]
            if isinstance(news, Outcome):
                del started.jobs[job]
                future.set_result(news)
            elif news is None:
                listener.news()
            else:
                listener.advanced(*news)
        with self._lock:
            if self._started is started:
                self._started = None
            lost = list(started.jobs.values())
        for _, future in lost:
            future.set_result(Outcome(error=_lost()))


def _lost() -> EngineLost:
    return EngineLost("the process that computed this run ended unexpectedly; ask again")


class _Distant:
    """A run, as its engine sees it: the run itself is in the server."""

    def __init__(self, job: Job, pipe: _Pipe) -> None:
        self.stop = Stop()
        self._job, self._pipe = job, pipe

    def news(self) -> None:
        """An event was written to the trace."""
        self._pipe.send((self._job.id, None))

    def advanced(self, part: str, share: float) -> None:
        """Some of one part of the work is done."""
        self._pipe.send((self._job.id, (part, share)))

    def work(self, worker: Worker) -> None:
        """Do the job in this thread and report how it ended."""
        # the flag reaches every model call, and every wait, of this run
        stopping.set(self.stop)
        outcome = worker.do(self._job, self)
        if outcome.error is not None:
            outcome = replace(outcome, error=_portable(outcome.error))
        try:
            self._pipe.send((self._job.id, outcome))
        except Exception as error:  # noqa: BLE001 - what a method returns may hold anything
            self._pipe.send((self._job.id, Outcome(error=_crash(error), usage=outcome.usage)))


def _portable(error: Exception) -> Exception:
    """An error that the server can read: other people's classes need not survive the pipe."""
    return error if isinstance(error, LongtakeError) else _crash(error)


def _crash(error: Exception) -> Crash:
    crash = Crash(type(error).__name__)
    crash.add_note("".join(traceback.format_exception(error)))
    return crash


def _engine_process(connection: Connection, options: ServeOptions) -> None:
    """The main function of the process."""
    with log_as_json():
        compute(connection, options)
        # at once: native code does not survive the way in which Python ends threads
        os._exit(0)


def compute(connection: Connection, options: ServeOptions) -> None:
    """Do jobs until the server says that it ends."""
    pipe, shelf = _Pipe(connection), Shelf(options)
    worker = Worker(options, shelf, Journal(options.data), ServedLibrary(options, shelf))
    under_way: dict[str, tuple[_Distant, threading.Thread]] = {}
    while (message := pipe.receive()) is not None:
        if isinstance(message, Job):
            under_way = {job: each for job, each in under_way.items() if each[1].is_alive()}
            run = _Distant(message, pipe)
            # a context of its own: nothing of this run reaches the next one
            act = contextvars.Context().run
            thread = threading.Thread(target=act, args=[run.work, worker], daemon=True)
            under_way[message.id] = (run, thread)
            thread.start()
        elif message in under_way:
            under_way[message][0].stop.set()
    _end(list(under_way.values()))


def _end(under_way: list[tuple[_Distant, threading.Thread]]) -> None:
    """Cancel what is under way, and wait a moment for it to end."""
    for run, _ in under_way:
        run.stop.set()
    until = time.monotonic() + LAST_WAIT
    for _, thread in under_way:
        thread.join(max(0.0, until - time.monotonic()))
