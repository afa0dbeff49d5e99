"""The work of a run: answer a question, index a film, fill a table or download a model.

A :class:`JobWorker` does it in the calling thread. In ``longtake serve`` that is a thread of the
:mod:`~longtake.server.engine`'s process, so that the server responds while films are decoded.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from longtake import registry
from longtake._util.cancellation import Stop
from longtake.agents.overview import prepare
from longtake.config import BudgetSettings
from longtake.errors import ConfigError, LongtakeError
from longtake.index.film import Film
from longtake.index.tasks import tasks
from longtake.llm.pull import pull_model
from longtake.runner.assignment import ModelAssignment
from longtake.runner.extraction import extract
from longtake.runner.rendering import CALIBRATED, unseen
from longtake.runner.session import Session, with_carried
from longtake.runner.table_schema import read_schema
from longtake.server.films import ServedFilms, reason_of
from longtake.server.journal import Ask, CitedFilm, Journal, Kind, PictureSink, Scope
from longtake.server.library import ServedLibrary
from longtake.server.options import ServeOptions
from longtake.tracing.events import ChatCalled, Drafted, Event, Sink
from longtake.tracing.jsonl import JsonlSink
from longtake.tracing.sinks import Meter
from longtake.types import Question, Result, Usage

log = logging.getLogger("longtake.serve")


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


class Crash(Exception):
    """A bug in a run, with a message for users; the log has the traceback."""


def failed(job: str, error: Exception, usage: Usage | None = None) -> Outcome:
    """The outcome of a job that ended with an error."""
    if not isinstance(error, LongtakeError | Crash):
        log.error("run %s failed", job, exc_info=error)
        error = Crash(reason_of(error))
    return Outcome(error=error, usage=usage or Usage())


Progress: TypeAlias = tuple[str, float]
"""A part of the work, and how much of it is done, 0 to 1."""
Report: TypeAlias = Callable[[Progress | None], None]
"""Called with progress, or with nothing when an event was written to the trace."""


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

    def do(self, job: Job, stop: Stop, report: Report) -> Outcome:
        """Do a job until it ends or ``stop`` is set; an error is part of the outcome."""
        meter = Meter()
        try:
            # the flag reaches every model call, and every wait, of this run
            with stop.in_force():
                outcome = self._outcome(job, stop, report, meter)
        except Exception as error:  # noqa: BLE001 - a bug in one run must not end the server
            return failed(job.id, error, meter.total)
        return replace(outcome, usage=meter.total)

    def close(self) -> None:
        """Do nothing: the pool cancels the runs."""

    def _outcome(self, job: Job, stop: Stop, report: Report, meter: Meter) -> Outcome:
        ask = job.ask
        if job.kind == "pull":
            self._pull(ask.question, stop, report)
            return Outcome()
        footage = self._catalog.footage(ask.film) if ask.film else None
        if job.kind == "index":
            if isinstance(footage, Film):
                _index(footage, stop, report)
                self._library.enter(footage.path)
                prepare(footage)
            return Outcome()
        session = open_session(self._options, ask, job.budget)
        sinks = self._sinks(job.id, report, meter)
        # the library opens the films itself, as it needs them
        if footage is None:
            question = question_of(ask)
            result, sources, scope = self._library.ask(
                session, question, ask.method, where=ask.where, sinks=sinks, stop=stop
            )
            return Outcome(result, sources=sources, scope=scope)
        # indexed here, with progress, rather than inside the first search of the method
        if isinstance(footage, Film) and ask.index_first:
            pictures = footage.pictures
            pictures.build(pictures.layers(), _progress_callback("frames", stop, report))
        with session.under_way(*sinks):
            if job.kind == "extract":
                # the schema of the table is the question
                schema = read_schema(json.loads(ask.question))
                return Outcome(extract(footage, schema, session, ask.method, stop=stop).result)
            result = session.answer(ask.method, footage, question_of(ask), stop=stop)
        missing = unseen(footage, meter.moments) if isinstance(footage, Film) else ()
        return Outcome(result, unseen=tuple(missing), calibrated=CALIBRATED in meter.notes)

    def _pull(self, name: str, stop: Stop, report: Report) -> None:
        """Download a model."""

        def begin(file: str) -> Callable[[int, int], None]:
            advance = _progress_callback(file, stop, report)
            return lambda done, total: advance(done / max(1, total))

        pull_model(name, self._options.settings, begin=begin)

    def _sinks(self, run: str, report: Report, meter: Meter) -> list[Sink]:
        # the trace comes first: viewers who are notified read the event there
        trace = JsonlSink(self._journal.trace(run), pictures=False, drafts=True)
        sinks = [trace, PictureSink(self._journal), meter, _NotifyingSink(report)]
        return [*sinks, self._otel()] if self._otel is not None else sinks


def _otel_sinks(endpoint: str) -> Callable[[], Sink]:
    """A factory of sinks, one per run, that send to the same collector."""
    from longtake.tracing.otel import OtelSink, collector_tracer

    tracer = collector_tracer(endpoint)
    return lambda: OtelSink(tracer)


class _NotifyingSink(Sink):
    """Reports that an event was written to the trace."""

    drafts = True

    def __init__(self, report: Report) -> None:
        self._report = report

    def handle(self, event: Event) -> None:  # noqa: ARG002 - it is read from the trace
        """Report it."""
        self._report(None)


class _StopAtFirstWord(Sink):
    """Ends the work at the first word of a reply."""

    drafts = True

    def __init__(self, stop: Stop) -> None:
        self._stop = stop

    def handle(self, event: Event) -> None:
        """End the work if the event holds a reply or its beginning."""
        if isinstance(event, Drafted | ChatCalled):
            self._stop.set()


def _progress_callback(part: str, stop: Stop, report: Report) -> Callable[[float], None]:
    """A callback for the progress of one part of the work."""
    reported = -1.0

    def advance(share: float) -> None:
        nonlocal reported
        # indexing calls this between batches, which is where it can be cancelled
        stop.check()
        # every percent is reported, not every frame
        if share >= 1.0 or share - reported >= 0.01:
            reported = share
            report((part, round(share, 4)))

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


def _index(film: Film, stop: Stop, report: Report) -> None:
    """Do every part of indexing that is missing, cheapest first."""
    for task in tasks(film):
        advance = _progress_callback(task.name, stop, report)
        if not task.done():
            advance(0.0)
            task.build(advance)
        advance(1.0)
