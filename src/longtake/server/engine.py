"""The process in which runs compute.

Python runs one thread at a time, so that a server whose runs were threads of its own would answer
each request only between them. The runs of ``longtake serve`` therefore compute in one process
beside it, which lives as long as the server: one thread there for each run, so that all of them
share the models that are loaded. They write their traces themselves; what comes back is small:

::

    None               an event was written
    (part, share)      progress
    Outcome            the end

If the process dies, its runs end as broken and the next one starts another.
"""

from __future__ import annotations

import contextvars
import os
import pickle
import queue
import threading
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing.managers import BaseManager
from typing import Any, TypeAlias

from longtake.errors import LongtakeError
from longtake.process_pool import start_service
from longtake.server.films import FilmCatalog
from longtake.server.journal import Journal
from longtake.server.library import ServedLibrary
from longtake.server.logs import log_as_json
from longtake.server.options import ServeOptions
from longtake.server.work import Crash, EngineLost, Job, Listener, Outcome, Worker
from longtake.stopping import Stop, stopping

LAST_WAIT = 2.0
"""Seconds that the end of the server waits for runs that were cancelled."""
News: TypeAlias = "tuple[str, float] | Outcome | None"


class Engine:
    """Does jobs in a process of its own; this is the server's side of it."""

    def __init__(self, options: ServeOptions) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._closed = False
        self._manager: BaseManager | None = None
        self._service: Any = None

    def warm_up(self) -> None:
        """Start the process; the server need not wait for it."""
        threading.Thread(target=self._running, name="engine", daemon=True).start()

    def do(self, job: Job, listener: Listener) -> Outcome:
        """Do a job, and wait for its end."""
        service = self._running()
        if service is None:
            return Outcome(error=_lost())
        try:
            service.begin(job)
            with listener.stop.then(lambda: _cancel(service, job.id)):
                while True:
                    for news in service.news(job.id):
                        if isinstance(news, Outcome):
                            return news
                        if news is None:
                            listener.news()
                        else:
                            listener.advanced(*news)
        except (EOFError, OSError):
            self._forget(service)
            return Outcome(error=_lost())

    def close(self) -> None:
        """End the process, after a moment in which cancelled runs may end by themselves."""
        with self._lock:
            self._closed = True
            manager, service = self._manager, self._service
        if manager is not None:
            # the process ends while it answers
            with suppress(EOFError, OSError):
                service.end()
            manager.shutdown()

    def _running(self) -> Any:
        """The service, whose process is started if need be; ``None`` after the end."""
        with self._lock:
            if self._service is None and not self._closed:
                self._manager, self._service = start_service(EngineProcess, self._options)
            return None if self._closed else self._service

    def _forget(self, service: Any) -> None:
        """The next job starts another process."""
        with self._lock:
            if self._service is service:
                self._service = None


def _lost() -> EngineLost:
    return EngineLost("the process that computed this run ended unexpectedly; ask again")


def _cancel(service: Any, job: str) -> None:
    # if the process is gone, there is nothing left to cancel
    with suppress(EOFError, OSError):
        service.cancel(job)


@dataclass
class _EngineRun:
    """A run in the engine's process; what it reports waits for the server to fetch it."""

    job: Job
    stop: Stop = field(default_factory=Stop)
    reported: queue.SimpleQueue[News] = field(default_factory=queue.SimpleQueue)
    thread: threading.Thread | None = None

    def news(self) -> None:
        """An event was written to the trace."""
        self.reported.put(None)

    def advanced(self, part: str, share: float) -> None:
        """Some of one part of the work is done."""
        self.reported.put((part, share))

    def work(self, worker: Worker) -> None:
        """Do the job in this thread and report how it ended."""
        # the flag reaches every model call, and every wait, of this run
        stopping.set(self.stop)
        outcome = worker.do(self.job, self)
        if outcome.error is not None and not isinstance(outcome.error, LongtakeError):
            # the server need not have the classes of other packages
            outcome = replace(outcome, error=_crash(outcome.error))
        try:
            pickle.dumps(outcome)
        except Exception as error:  # noqa: BLE001 - what a method returns may hold anything
            outcome = Outcome(error=_crash(error), usage=outcome.usage)
        self.reported.put(outcome)


def _crash(error: Exception) -> Crash:
    crash = Crash(type(error).__name__)
    crash.add_note("".join(traceback.format_exception(error)))
    return crash


class EngineService:
    """Does jobs for the server, which calls each method from any of its threads."""

    def __init__(self, options: ServeOptions) -> None:
        catalog = FilmCatalog(options)
        library = ServedLibrary(options, catalog)
        self._worker = Worker(options, catalog, Journal(options.data), library)
        self._runs: dict[str, _EngineRun] = {}

    def begin(self, job: Job) -> None:
        """Start a job."""
        run = self._runs[job.id] = _EngineRun(job)
        # a context of its own: nothing of this run reaches the next one
        act = contextvars.Context().run
        run.thread = threading.Thread(target=act, args=[run.work, self._worker], daemon=True)
        run.thread.start()

    def news(self, job: str) -> list[News]:
        """What a job has reported since the last call, at least one thing; its end is the last."""
        reported = self._runs[job].reported
        news = [reported.get()]
        while not reported.empty():
            news.append(reported.get())
        for number, each in enumerate(news):
            if isinstance(each, Outcome):
                del self._runs[job]
                # threads that the run left behind may have reported more
                return news[: number + 1]
        return news

    def cancel(self, job: str) -> None:
        """End a job early."""
        run = self._runs.get(job)
        if run is not None:
            run.stop.set()

    def end(self) -> None:
        """Cancel what is under way, and wait a moment for it to end."""
        runs = list(self._runs.values())
        for run in runs:
            run.stop.set()
        until = time.monotonic() + LAST_WAIT
        for run in runs:
            if run.thread is not None:
                run.thread.join(max(0.0, until - time.monotonic()))


class EngineProcess(EngineService):
    """The service in a process of its own."""

    def __init__(self, options: ServeOptions) -> None:
        self._log = log_as_json()
        self._log.__enter__()
        super().__init__(options)

    def end(self) -> None:
        """End this process."""
        super().end()
        # at once: native code does not survive the way in which Python ends threads
        os._exit(0)
