"""The work of a run: answer a question or index a film, here or in another process.

The pool of runs gives each :class:`Job` to a :class:`JobWorker`, which does it in the calling
thread, or to an :class:`Engine`, which passes it to a worker in another process, so that the server
responds while films are decoded. Both may be called from several threads at once.
"""

from __future__ import annotations

import contextvars
import json
import os
import pickle
import queue
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing.managers import BaseManager
from typing import Any, Protocol, TypeAlias

from longtake import registry
from longtake._util.cancellation import Stop, stopping
from longtake._util.process_pool import start_service
from longtake.agents.overview import prepare
from longtake.config import BudgetSettings
from longtake.errors import ConfigError, LongtakeError, RunError
from longtake.index.film import Film
from longtake.index.tasks import tasks
from longtake.llm.pull import pull_model
from longtake.runner.assignment import ModelAssignment
from longtake.runner.conversation import with_carried
from longtake.runner.extraction import extract, read_schema
from longtake.runner.rendering import CALIBRATED, unseen
from longtake.runner.session import Session
from longtake.server.films import ServedFilms, reason_of
from longtake.server.journal import Ask, CitedFilm, Journal, Kind, PictureSink, Scope
from longtake.server.library import ServedLibrary
from longtake.server.options import ServeOptions, log_as_json
from longtake.tracing.events import ChatCalled, Drafted, Event, Sink
from longtake.tracing.jsonl import JsonlSink
from longtake.tracing.sinks import Meter
from longtake.types import Question, Result, Usage


@dataclass(frozen=True)
class Job:
    """The work of one run."""

    id: str
    kind: Kind
    ask: Ask
    budget: BudgetSettings


@dataclass(frozen=True)
class Outcome:
    """How a job ended, and what it cost even if it failed."""

    result: Result | None = None
    error: Exception | None = None
    usage: Usage = field(default_factory=Usage)
    sources: tuple[CitedFilm, ...] = ()
    """The film of each citation, if the library was asked."""
    scope: Scope | None = None
    unseen: tuple[str, ...] = ()
    """What was not looked at."""
    calibrated: bool = False


class EngineLost(RunError):
    """The process that computed a run died."""


class Crash(Exception):
    """A bug in a run, with a message for users; the note holds the traceback."""


Progress: TypeAlias = tuple[str, float]
"""A part of the work, and how much of it is done, 0 to 1."""


class JobListener(Protocol):
    """Receives reports about a job, and may end it."""

    stop: Stop

    def report(self, progress: Progress | None = None) -> None:
        """Some of the work is done, or an event was written to the trace."""
        ...


class JobWorker:
    """Does jobs in the calling thread."""

    def __init__(
        self, options: ServeOptions, catalog: ServedFilms, journal: Journal, library: ServedLibrary
    ) -> None:
        self._options, self._catalog = options, catalog
        self._journal, self._library = journal, library
        self._otel = _otel_sinks(options.otlp) if options.otlp else None

    def warm_up(self, ask: Ask | None = None) -> None:
        """Do nothing: the first job loads what it needs."""

    def load(self, ask: Ask | None, stop: Stop) -> None:
        """Load the model for an ask in advance, or the server's, if it runs in this process.

        The question is asked until the model writes its first word: by then the film's search is
        loaded, and the model has read the beginning of its prompt.
        """
        session = open_session(self._options, ask, BudgetSettings())
        session.load_reader()
        # other methods work longer before their first call than it takes to type a question
        if ask and session.reads_here and registry.methods.get(ask.method).roles == ("llm",):
            footage = self._catalog.footage(ask.film)
            if footage.indexed:
                with session.under_way(_StopAtFirstWord(stop)):
                    session.answer(ask.method, footage, question_of(ask), stop=stop)

    def do(self, job: Job, listener: JobListener) -> Outcome:
        """Do a job; an error is part of the outcome."""
        meter = Meter()
        try:
            outcome = self._outcome(job, listener, meter)
        except Exception as error:  # noqa: BLE001 - the pool raises it again
            outcome = Outcome(error=error)
        return replace(outcome, usage=meter.total)

    def close(self) -> None:
        """Do nothing: the runs are cancelled by the pool."""

    def _outcome(self, job: Job, listener: JobListener, meter: Meter) -> Outcome:
        if job.kind == "pull":
            self._pull(job, listener)
            return Outcome()
        # the library opens the films itself, as it needs them
        if job.kind == "library":
            return self._across(job, listener, meter)
        footage = self._catalog.footage(job.ask.film)
        if job.kind == "index":
            if isinstance(footage, Film):
                _index(footage, listener)
                self._library.enter(footage.path)
                prepare(footage)
            return Outcome()
        # indexed here, with progress, rather than inside the first search of the method
        if isinstance(footage, Film) and job.ask.index_first:
            footage.pictures.build(
                footage.pictures.layers(), _progress_callback(listener, "frames")
            )
        method, stop = job.ask.method, listener.stop
        session = open_session(self._options, job.ask, job.budget)
        with session.under_way(*self._sinks(job, listener, meter)):
            if job.kind == "extract":
                # the schema of the table is the question
                schema = read_schema(json.loads(job.ask.question))
                return Outcome(extract(footage, schema, session, method, stop=stop).result)
            result = session.answer(method, footage, question_of(job.ask), stop=stop)
        missing = unseen(footage, meter.moments) if isinstance(footage, Film) else ()
        return Outcome(result, unseen=tuple(missing), calibrated=CALIBRATED in meter.notes)

    def _pull(self, job: Job, listener: JobListener) -> None:
        """Download a model."""

        def begin(file: str) -> Callable[[int, int], None]:
            advance = _progress_callback(listener, file)
            return lambda done, total: advance(done / max(1, total))

        pull_model(job.ask.question, self._options.settings, begin=begin)

    def _across(self, job: Job, listener: JobListener, meter: Meter) -> Outcome:
        """Ask the library."""
        ask = job.ask
        result, sources, scope = self._library.ask(
            open_session(self._options, ask, job.budget),
            question_of(ask),
            ask.method,
            where=ask.where,
            sinks=self._sinks(job, listener, meter),
            stop=listener.stop,
        )
        return Outcome(result, sources=sources, scope=scope)

    def _sinks(self, job: Job, listener: JobListener, meter: Meter) -> list[Sink]:
        # the trace comes first: viewers who are notified read the event there
        trace = JsonlSink(self._journal.trace(job.id), pictures=False, drafts=True)
        sinks: list[Sink] = [trace, PictureSink(self._journal), meter, _NotifyingSink(listener)]
        if self._otel is not None:
            sinks.append(self._otel())
        return sinks


def _otel_sinks(endpoint: str) -> Callable[[], Sink]:
    """A factory of sinks, one per run, that send to the same collector."""
    from longtake.tracing.otel import OtelSink, collector_tracer

    tracer = collector_tracer(endpoint)
    return lambda: OtelSink(tracer)


class _NotifyingSink(Sink):
    """Notifies the listener of a job of every event."""

    drafts = True

    def __init__(self, listener: JobListener) -> None:
        self._listener = listener

    def handle(self, event: Event) -> None:  # noqa: ARG002 - it is read from the trace
        """Notify the listener."""
        self._listener.report()


class _StopAtFirstWord(Sink):
    """Ends the work at the first word of a reply."""

    drafts = True

    def __init__(self, stop: Stop) -> None:
        self._stop = stop

    def handle(self, event: Event) -> None:
        """End the work if the event holds a reply or its beginning."""
        if isinstance(event, Drafted | ChatCalled):
            self._stop.set()


def _progress_callback(listener: JobListener, part: str) -> Callable[[float], None]:
    """A callback for the progress of one part of the work."""
    reported = -1.0

    def advance(share: float) -> None:
        nonlocal reported
        # indexing calls this between batches, which is where it can be cancelled
        listener.stop.check()
        # every percent is reported, not every frame
        if share >= 1.0 or share - reported >= 0.01:
            reported = share
            listener.report((part, round(share, 4)))

    return advance


def open_session(options: ServeOptions, ask: Ask | None, budget: BudgetSettings) -> Session:
    """The session for an ask, or for any, with the server's settings."""
    settings = replace(options.settings, budget=budget)
    if ask is None:
        return Session(settings, ModelAssignment(options.models).by_default(settings))
    # the models of an ask replace those of the server
    models = ask.models or options.models
    assignment = ModelAssignment(models, replies=not ask.fresh).by_default(settings)
    return Session(settings, assignment, ask.seed)


def limits_of(options: ServeOptions, ask: Ask) -> BudgetSettings:
    """The limits of an ask, none of them above the server's."""
    limits = {}
    for name in BudgetSettings.__dataclass_fields__:
        both = (getattr(ask.budget, name), getattr(options.settings.budget, name))
        limits[name] = min((limit for limit in both if limit is not None), default=None)
    return BudgetSettings(**limits)


def question_of(ask: Ask) -> Question:
    """The question for the method, with the conversation that it continues."""
    try:
        return Question(with_carried(ask.question, ask.carried), ask.options, ask.kind)
    except ValueError as error:
        raise ConfigError(str(error)) from error


def _index(film: Film, listener: JobListener) -> None:
    """Do every part of indexing that is missing, cheapest first."""
    for task in tasks(film):
        advance = _progress_callback(listener, task.name)
        if not task.done():
            advance(0.0)
            task.build(advance)
        advance(1.0)


Report: TypeAlias = Progress | Outcome | None


class Engine:
    """Does jobs in another process; this is the server's side."""

    def __init__(self, options: ServeOptions) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._closed = False
        self._manager: BaseManager | None = None
        self._service: Any = None

    def warm_up(self, ask: Ask | None = None) -> None:
        """Start the process and load the model, for an ask or for any, without waiting."""

        def start() -> None:
            service = self._running()
            # if the process is gone, the next job starts another one
            with suppress(EOFError, OSError):
                if service is not None:
                    service.load(ask)

        threading.Thread(target=start, name="engine", daemon=True).start()

    def do(self, job: Job, listener: JobListener) -> Outcome:
        """Do a job, and wait for its end."""
        service = self._running()
        if service is None:
            return Outcome(error=_lost())

        def cancel() -> None:
            # if the process is gone, there is nothing left to cancel
            with suppress(EOFError, OSError):
                service.cancel(job.id)

        try:
            # returns at once; the reports of the job are fetched below
            service.begin(job)
            with listener.stop.then(cancel):
                while True:
                    for report in service.reports(job.id):
                        if isinstance(report, Outcome):
                            return report
                        listener.report(report)
        except (EOFError, OSError):
            self._forget(service)
            return Outcome(error=_lost())

    def close(self) -> None:
        """End the process; runs that are under way have two seconds to stop."""
        with self._lock:
            self._closed = True
            manager, service = self._manager, self._service
        if manager is not None:
            # the process ends while it answers
            with suppress(EOFError, OSError):
                service.end()
            manager.shutdown()

    def _running(self) -> Any:
        """The service, whose process is started if necessary; ``None`` once closed."""
        with self._lock:
            if self._service is None and not self._closed:
                self._manager, self._service = start_service(EngineProcess, self._options)
            return None if self._closed else self._service

    def _forget(self, service: Any) -> None:
        """Have the next job start another process."""
        with self._lock:
            # another thread may have started a new process already
            if self._service is service:
                self._service = None


def _lost() -> EngineLost:
    return EngineLost("the process that computed this run ended unexpectedly; ask again")


@dataclass
class _EngineRun:
    """A run in the engine's process; its reports wait until the server fetches them."""

    job: Job
    stop: Stop = field(default_factory=Stop)
    reports: queue.SimpleQueue[Report] = field(default_factory=queue.SimpleQueue)
    thread: threading.Thread | None = None

    def report(self, progress: Progress | None = None) -> None:
        """Queue a report for the server."""
        self.reports.put(progress)

    def work(self, worker: JobWorker) -> None:
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
        self.reports.put(outcome)


def _crash(error: Exception) -> Crash:
    crash = Crash(reason_of(error))
    crash.add_note("".join(traceback.format_exception(error)))
    return crash


class EngineService:
    """Does jobs for the server, which calls it from several threads."""

    def __init__(self, options: ServeOptions) -> None:
        catalog = ServedFilms(options)
        library = ServedLibrary(options, catalog)
        self._worker = JobWorker(options, catalog, Journal(options.data), library)
        self._runs: dict[str, _EngineRun] = {}
        self._ahead = Stop()
        self._lock = threading.Lock()

    def begin(self, job: Job) -> None:
        """Start a job."""
        self._ahead.set()
        run = self._runs[job.id] = _EngineRun(job)
        # in a new context, so that nothing of this run reaches the next one
        act = contextvars.Context().run
        run.thread = threading.Thread(target=act, args=[run.work, self._worker], daemon=True)
        run.thread.start()

    def load(self, ask: Ask | None) -> None:
        """Load the model for an ask that will probably follow, and read its prompt meanwhile."""
        with self._lock:
            self._ahead.set()
            self._ahead = stop = Stop()
        # a run that is under way needs the model itself
        if self._runs:
            stop.set()
        # the run that follows reports what is wrong with a model
        with suppress(LongtakeError):
            self._worker.load(ask, stop)

    def reports(self, job: str) -> list[Report]:
        """What a job reported since the last call; waits for at least one report."""
        waiting = self._runs[job].reports
        reports = [waiting.get()]
        # threads that the run left behind may report more after its end
        while not isinstance(reports[-1], Outcome) and not waiting.empty():
            reports.append(waiting.get())
        if isinstance(reports[-1], Outcome):
            del self._runs[job]
        return reports

    def cancel(self, job: str) -> None:
        """End a job early."""
        # it may have ended while the request was on its way
        run = self._runs.get(job)
        if run is not None:
            run.stop.set()

    def end(self) -> None:
        """Cancel all runs, and wait up to two seconds for them to stop."""
        # copied: runs that end remove themselves
        runs = list(self._runs.values())
        for run in runs:
            run.stop.set()
        # cancelled runs end within a second; the rest must not hold up the exit
        until = time.monotonic() + 2.0
        for run in runs:
            if run.thread is not None:
                run.thread.join(max(0.0, until - time.monotonic()))


class EngineProcess(EngineService):
    """The service in another process."""

    def __init__(self, options: ServeOptions) -> None:
        # until the process ends
        self._log = log_as_json()
        self._log.__enter__()
        super().__init__(options)

    def end(self) -> None:
        """End this process."""
        super().end()
        # at once: native code does not survive the way in which Python ends threads
        os._exit(0)
