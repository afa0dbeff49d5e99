"""The work of a run: answer a question or index a film, here or in a process of its own.

The pool of runs gives each :class:`Job` to a :class:`JobWorker`, which does it in the thread that
asks, or to an :class:`Engine`, which has a worker in another process do it, so that the server
answers while films are decoded. Both may be called from several threads at once.
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
from longtake.agents.overview import make_overview
from longtake.config import BudgetSettings
from longtake.errors import ConfigError, LongtakeError, RunError
from longtake.footage.protocol import Footage
from longtake.index.film import Film
from longtake.index.tasks import tasks
from longtake.llm.catalog import Download
from longtake.llm.pull import pull_model
from longtake.runner.assignment import ModelAssignment
from longtake.runner.extraction import extract, read_schema
from longtake.runner.history import with_carried
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
    """A bug in a run, with what users are told of it; the note holds the traceback."""


class JobListener(Protocol):
    """Receives job progress, and may end the job."""

    stop: Stop

    def news(self) -> None:
        """An event was written to the trace."""
        ...

    def advanced(self, part: str, share: float) -> None:
        """Some of one part of the work is done."""
        ...


class JobWorker:
    """Does jobs in the thread that asks for them."""

    def __init__(
        self, options: ServeOptions, catalog: ServedFilms, journal: Journal, library: ServedLibrary
    ) -> None:
        self._options, self._catalog = options, catalog
        self._journal, self._library = journal, library
        self._otel = _otel_sinks(options.otlp) if options.otlp else None

    def warm_up(self, ask: Ask | None = None) -> None:
        """Do nothing: what jobs need is loaded by the first of them."""

    def load(self, ask: Ask, stop: Stop) -> None:
        """Load the model that would read for an ask, if it runs in this process.

        The film's search is loaded first, and the model reads its prompt, up to its first word.
        """
        session = open_session(self._options, ask, BudgetSettings())
        # what other methods do before their first call takes longer than a question to write
        if session.reads_here and registry.methods.get(ask.method).roles == ("llm",):
            footage = self._catalog.footage(ask.film)
            if footage.indexed:
                with session.under_way(_FirstWord(stop)):
                    session.answer(ask.method, footage, question_of(ask), stop=stop)
        session.load_reader()

    def do(self, job: Job, listener: JobListener) -> Outcome:
        """Do a job; what goes wrong is part of the outcome."""
        meter = Meter()
        try:
            outcome = self._outcome(job, listener, meter)
        except Exception as error:  # noqa: BLE001 - raised again by whoever asked for the job
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
                # kept with the film, so that whoever opens it need not wait
                if any(footage.known_lines()):
                    make_overview(footage)
            return Outcome()
        # indexed here, with progress, rather than inside the first search of the method
        if isinstance(footage, Film) and job.ask.index_first:
            footage.pictures.build(
                footage.pictures.layers(), _progress_callback(listener, "frames")
            )
        if job.kind == "extract":
            return self._extract(job, footage, listener, meter)
        return self._answer(job, footage, listener, meter)

    def _extract(self, job: Job, footage: Footage, listener: JobListener, meter: Meter) -> Outcome:
        """Extract a table from a film."""
        session = open_session(self._options, job.ask, job.budget)
        schema = read_schema(json.loads(job.ask.question))
        with session.under_way(*self._sinks(job, listener, meter)):
            table = extract(footage, schema, session, job.ask.method, stop=listener.stop)
        return Outcome(table.result)

    def _answer(self, job: Job, footage: Footage, listener: JobListener, meter: Meter) -> Outcome:
        """Ask a film."""
        session = open_session(self._options, job.ask, job.budget)
        question = question_of(job.ask)
        with session.under_way(*self._sinks(job, listener, meter)):
            result = session.answer(job.ask.method, footage, question, stop=listener.stop)
        missing = unseen(footage, meter.moments) if isinstance(footage, Film) else ()
        return Outcome(result, unseen=tuple(missing), calibrated=CALIBRATED in meter.notes)

    def _pull(self, job: Job, listener: JobListener) -> None:
        """Download a model."""

        def begin(download: Download) -> Callable[[int, int], None]:
            advance = _progress_callback(listener, download.file)
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
        # the trace comes first: a viewer who is told of an event must find it there
        trace = JsonlSink(self._journal.trace(job.id), pictures=False, drafts=True)
        sinks: list[Sink] = [trace, PictureSink(self._journal), meter, _ListenerSink(listener)]
        if self._otel is not None:
            sinks.append(self._otel())
        return sinks


def _otel_sinks(endpoint: str) -> Callable[[], Sink]:
    """Makes a sink per run; all of them send to one collector."""
    from longtake.tracing.otel import OtelSink, collector_tracer

    tracer = collector_tracer(endpoint)
    return lambda: OtelSink(tracer)


class _ListenerSink(Sink):
    """A sink that says when an event was written."""

    drafts = True

    def __init__(self, listener: JobListener) -> None:
        self._listener = listener

    def handle(self, event: Event) -> None:  # noqa: ARG002 - it is read from the trace
        """Tell the listener."""
        self._listener.news()


class _FirstWord(Sink):
    """A sink that ends the work at the first word of a reply."""

    drafts = True

    def __init__(self, stop: Stop) -> None:
        self._stop = stop

    def handle(self, event: Event) -> None:
        """End the work if the event shows a reply."""
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
            listener.advanced(part, round(share, 4))

    return advance


def open_session(options: ServeOptions, ask: Ask, budget: BudgetSettings) -> Session:
    """The session for an ask, with the server's settings."""
    settings = replace(options.settings, budget=budget)
    # an ask that names models names all of them
    models = ask.models or options.models
    assignment = ModelAssignment(models, replies=not ask.fresh).by_default(settings)
    return Session(settings, assignment, ask.seed)


def limits_of(options: ServeOptions, ask: Ask) -> BudgetSettings:
    """The limits of an ask; those of the server cannot be raised."""
    limits = {}
    for name in BudgetSettings.__dataclass_fields__:
        both = (getattr(ask.budget, name), getattr(options.settings.budget, name))
        limits[name] = min((limit for limit in both if limit is not None), default=None)
    return BudgetSettings(**limits)


def question_of(ask: Ask) -> Question:
    """The question as the method is asked it, with what it refers to."""
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


News: TypeAlias = "tuple[str, float] | Outcome | None"


class Engine:
    """Does jobs in a process of its own; this is the server's side of it."""

    def __init__(self, options: ServeOptions) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._closed = False
        self._manager: BaseManager | None = None
        self._service: Any = None

    def warm_up(self, ask: Ask | None = None) -> None:
        """Start the process, and load the model for an ask; the server does not wait for it."""

        def start() -> None:
            service = self._running()
            # if the process is gone, the next job starts another one
            with suppress(EOFError, OSError):
                if service is not None and ask is not None:
                    service.load(ask)

        threading.Thread(target=start, name="engine", daemon=True).start()

    def do(self, job: Job, listener: JobListener) -> Outcome:
        """Do a job, and wait for its end."""
        service = self._running()
        if service is None:
            return Outcome(error=_lost())
        try:
            # returns at once; what the job reports is fetched below
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
            # another thread may have started a new process already
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
        self.reported.put(outcome)


def _crash(error: Exception) -> Crash:
    crash = Crash(reason_of(error))
    crash.add_note("".join(traceback.format_exception(error)))
    return crash


class EngineService:
    """Does jobs for the server, which calls each method from any of its threads."""

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
        # a context of its own: nothing of this run reaches the next one
        act = contextvars.Context().run
        run.thread = threading.Thread(target=act, args=[run.work, self._worker], daemon=True)
        run.thread.start()

    def load(self, ask: Ask) -> None:
        """Load the model for an ask that will probably follow, and read its prompt meanwhile."""
        with self._lock:
            self._ahead.set()
            self._ahead = stop = Stop()
        # a run that is under way needs the model itself
        if self._runs:
            stop.set()
        # what is wrong with a model is told by the run that asks it
        with suppress(LongtakeError):
            self._worker.load(ask, stop)

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
        # it may have ended while the request was on its way
        run = self._runs.get(job)
        if run is not None:
            run.stop.set()

    def end(self) -> None:
        """Cancel what is under way, and wait a moment for it to end."""
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
    """The service in a process of its own."""

    def __init__(self, options: ServeOptions) -> None:
        # for as long as the process lives
        self._log = log_as_json()
        self._log.__enter__()
        super().__init__(options)

    def end(self) -> None:
        """End this process."""
        super().end()
        # at once: native code does not survive the way in which Python ends threads
        os._exit(0)
