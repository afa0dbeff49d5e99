"""What a run does: answers a question or indexes a film, and says what it cost.

The pool gives a :class:`Job` to a :class:`Worker`, in a thread of its own, or to the
:class:`~longtake.server.engine.Engine`, which has a worker in another process.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from longtake.config import BudgetSettings
from longtake.errors import ConfigError, RunError
from longtake.events import Event, Sink
from longtake.footage.protocol import Footage
from longtake.index.film import Film
from longtake.index.tasks import tasks
from longtake.server.films import FilmCatalog
from longtake.server.journal import Ask, Journal, Kind, PictureSink, Scope, Source
from longtake.server.library import ServedLibrary
from longtake.server.options import ServeOptions
from longtake.session.asking import Session
from longtake.session.casting import Casting
from longtake.session.conversation import with_carried
from longtake.sinks.jsonl import JsonlSink
from longtake.sinks.meter import Meter
from longtake.stopping import Stop
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
    sources: tuple[Source, ...] = ()
    """The film of each citation, if the library was asked."""
    scope: Scope | None = None


class EngineLost(RunError):
    """The process that computed a run died."""


class Crash(Exception):
    """A bug in a run, named by the class of its error; the note holds the traceback."""


class Listener(Protocol):
    """Receives job progress, and may end the job."""

    stop: Stop

    def news(self) -> None:
        """An event was written to the trace."""
        ...

    def advanced(self, part: str, share: float) -> None:
        """Some of one part of the work is done."""
        ...


class Work(Protocol):
    """Does jobs; may be called from several threads at once."""

    def warm_up(self) -> None:
        """Get ready for the first job."""
        ...

    def do(self, job: Job, listener: Listener) -> Outcome:
        """Do a job; what goes wrong is part of the outcome."""
        ...

    def close(self) -> None:
        """End what is under way."""
        ...


class Worker:
    """Does jobs in the thread that asks for them."""

    def __init__(
        self, options: ServeOptions, catalog: FilmCatalog, journal: Journal, library: ServedLibrary
    ) -> None:
        self._options, self._catalog = options, catalog
        self._journal, self._library = journal, library
        self._otel = _otel_sinks(options.otlp) if options.otlp else None

    def warm_up(self) -> None:
        """Do nothing: what jobs need is loaded by the first of them."""

    def do(self, job: Job, listener: Listener) -> Outcome:
        """Do a job; what goes wrong is part of the outcome."""
        meter = Meter()
        try:
            outcome = self._outcome(job, listener, meter)
        except Exception as error:  # noqa: BLE001 - raised again by whoever asked for the job
            outcome = Outcome(error=error)
        return replace(outcome, usage=meter.total)

    def close(self) -> None:
        """Do nothing: the runs are cancelled by the pool."""

    def _outcome(self, job: Job, listener: Listener, meter: Meter) -> Outcome:
        if job.kind == "library":
            return self._across(job, listener, meter)
        footage = self._catalog.footage(job.ask.film)
        if job.kind == "index":
            if isinstance(footage, Film):
                _index(footage, listener)
            return Outcome()
        # indexed here, with progress, rather than inside the first search of the method
        if isinstance(footage, Film) and job.ask.index_first:
            footage.pictures.build(footage.pictures.layers(), _advancing(listener, "frames"))
        return self._answer(job, footage, listener, meter)

    def _answer(self, job: Job, footage: Footage, listener: Listener, meter: Meter) -> Outcome:
        """Ask a film."""
        session = open_session(self._options, job.ask, job.budget)
        question = question_of(job.ask)
        with session.under_way(*self._sinks(job, listener, meter)):
            result = session.answer(job.ask.method, footage, question, stop=listener.stop)
        return Outcome(result)

    def _across(self, job: Job, listener: Listener, meter: Meter) -> Outcome:
        """Ask the library."""
        ask = job.ask
        result, across = self._library.ask(
            open_session(self._options, ask, job.budget),
            question_of(ask),
            ask.method,
            where=ask.where,
            sinks=self._sinks(job, listener, meter),
            stop=listener.stop,
        )
        return Outcome(result, sources=across.sources, scope=across.scope)

    def _sinks(self, job: Job, listener: Listener, meter: Meter) -> list[Sink]:
        # the trace comes first: a viewer who is told of an event must find it there
        trace = JsonlSink(self._journal.trace(job.id), pictures=False)
        sinks: list[Sink] = [trace, PictureSink(self._journal), meter, _Telling(listener)]
        if self._otel is not None:
            sinks.append(self._otel())
        return sinks


def _otel_sinks(endpoint: str) -> Callable[[], Sink]:
    """Makes a sink per run; all of them send to one collector."""
    from longtake.sinks.otel import OtelSink, collector_tracer

    tracer = collector_tracer(endpoint)
    return lambda: OtelSink(tracer)


class _Telling:
    """A sink that says when an event was written."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener

    def handle(self, event: Event) -> None:  # noqa: ARG002 - it is read from the trace
        """Tell the listener."""
        self._listener.news()

    def picture(self, digest: str, jpeg: Callable[[], bytes]) -> None:
        """Ignore the picture."""

    def close(self) -> None:
        """Do nothing."""


def _advancing(listener: Listener, part: str) -> Callable[[float], None]:
    """A callback for the progress of one part of the work."""
    told = -1.0

    def advance(share: float) -> None:
        nonlocal told
        # indexing calls this between batches, which is where it can be cancelled
        listener.stop.check()
        # told for every percent, not for every frame
        if share >= 1.0 or share - told >= 0.01:
            told = share
            listener.advanced(part, round(share, 4))

    return advance


def open_session(options: ServeOptions, ask: Ask, budget: BudgetSettings) -> Session:
    """The session for an ask, with the server's settings."""
    settings = replace(options.settings, budget=budget)
    models = ask.models or options.models
    casting = Casting(models, replies=not ask.fresh).or_else(settings.answers.model)
    return Session(settings, casting, ask.seed)


def limits_of(options: ServeOptions, ask: Ask) -> BudgetSettings:
    """The limits of an ask; those of the server cannot be raised."""
    own, server = ask.budget, options.settings.budget
    limits = {}
    for name in BudgetSettings.__dataclass_fields__:
        given = [each for each in (getattr(own, name), getattr(server, name)) if each]
        limits[name] = min(given, default=None)
    return BudgetSettings(**limits)


def question_of(ask: Ask) -> Question:
    """The question as the method is asked it, with what it refers to."""
    try:
        return Question(with_carried(ask.question, ask.carried), ask.options)
    except ValueError as error:
        raise ConfigError(str(error)) from error


def _index(film: Film, listener: Listener) -> None:
    """Do every part of indexing that is missing, cheapest first."""
    for task in tasks(film):
        advance = _advancing(listener, task.name)
        if not task.done():
            advance(0.0)
            task.build(advance)
        advance(1.0)
