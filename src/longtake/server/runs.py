"""Runs: questions under way, in a bounded pool, with a queue.

::

    pool = RunPool(options, shelf, journal)
    run = pool.start(Ask(film=…, question=…))      # returns at once
    run.position                                   # place in the queue, 0 once it has begun
    async for batch in run.events(after=17): …     # from the trace, resumed after an id
    run.result(timeout=60)                         # blocks; raises what ended the run
    run.cancel()

A run belongs to the server, not to the connection that asked for it. An ask that is identical to
one under way is joined to it; :meth:`Run.leave` ends a run once nobody who asked for it is left.
"""

from __future__ import annotations

import contextvars
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace

from longtake import registry
from longtake.config import BudgetSettings
from longtake.errors import BudgetSpent, ConfigError, RunError, unknown
from longtake.events import Sink
from longtake.footage.protocol import Footage
from longtake.index.film import Film
from longtake.index.tasks import tasks
from longtake.models.clock import Cancelled
from longtake.server.courtesy import Courtesy
from longtake.server.films import Shelf
from longtake.server.journal import Ask, Journal, Kind, PictureSink, RunRecord, new_id
from longtake.server.library import ServedLibrary
from longtake.server.options import ServeOptions
from longtake.server.run import Run
from longtake.session.asking import Session
from longtake.session.casting import Casting
from longtake.session.conversation import with_carried
from longtake.sinks.jsonl import JsonlSink
from longtake.sinks.meter import Meter
from longtake.sinks.otlp import OtlpSink, Sender
from longtake.types import Question, Result

log = logging.getLogger("longtake.serve")


class QueueFull(RunError):
    """Too many runs are waiting."""


class RunPool:
    """Threads that work off a queue of runs."""

    def __init__(
        self,
        options: ServeOptions,
        shelf: Shelf,
        journal: Journal,
        library: ServedLibrary | None = None,
    ) -> None:
        self.journal = journal
        self.courtesy = Courtesy()
        """Holds runs up for a moment while requests arrive."""
        self.spent = 0.0
        """US dollars of all runs so far."""
        self.finished: dict[str, int] = {}
        """Number of runs by how they ended."""
        self._options, self._shelf = options, shelf
        self._library = library or ServedLibrary(options, shelf)
        self._live: dict[str, Run] = {}
        self._queue: deque[Run] = deque()
        self._held: dict[str, float] = {}
        self._changed = threading.Condition()
        self._closed = False
        self._sender = Sender(options.otlp) if options.otlp else None
        self._threads = [
            threading.Thread(target=self._serve, name=f"run-{n}", daemon=True)
            for n in range(options.at_once)
        ]
        for thread in self._threads:
            thread.start()

    def start(self, ask: Ask, *, group: str = "", kind: Kind = "ask") -> Run:
        """Queue a run, or join an identical one that is under way."""
        film_name = "" if kind == "library" else self._shelf.path(ask.film).name
        if kind == "library":
            self._library.check(ask.where)
        if kind != "index":
            self.check(ask)
        with self._changed:
            twin = self._twin(ask, group, kind)
            if twin is not None:
                twin.askers += 1
                return twin
            if len(self._queue) >= self._options.most_waiting:
                raise QueueFull(f"{len(self._queue)} runs are waiting already; try again later")
            record = RunRecord(
                id=new_id(),
                kind=kind,
                ask=ask,
                film_name=film_name,
                group=group,
                created=time.time(),
            )
            run = Run(record, self)
            self.journal.write(record)
            self._live[run.id] = run
            self._queue.append(run)
            self._changed.notify()
        return run

    def check(self, ask: Ask) -> None:
        """Raise if an ask could not run: unknown names, models that are not there."""
        question_of(ask)
        # an address such as os:system is a method's name elsewhere; here it would run any code
        if ask.method not in registry.methods.names():
            raise unknown("method", ask.method, registry.methods.names())
        for name in ask.models:
            if "://" in name:
                raise ConfigError(f"{name}: name a model of the server's catalogue, not an address")
        self.session(ask).check_models(registry.methods.get(ask.method).roles)

    def get(self, run: str) -> Run | None:
        """A run that is under way."""
        return self._live.get(run)

    def live(self) -> list[Run]:
        """Runs that wait or are under way."""
        return list(self._live.values())

    def position(self, run: Run) -> int:
        """Place in the queue, from 1; 0 if the run is not waiting."""
        try:
            return self._queue.index(run) + 1
        except ValueError:
            return 0

    def drop(self, run: Run) -> None:
        """Take a run that still waits out of the queue; one under way ends by itself."""
        with self._changed:
            if run not in self._queue:
                return
            self._queue.remove(run)
        run.end("cancelled", Cancelled("cancelled"))
        self._retire(run)

    def close(self) -> None:
        """Cancel everything."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for run in self.live():
            run.cancel()

    def _twin(self, ask: Ask, group: str, kind: str) -> Run | None:
        for run in self._live.values():
            record = run.record
            same = record.ask == ask and record.kind == kind and record.group == group
            if same and not run.ended and not run.cancelled:
                return run
        return None

    def _serve(self) -> None:
        for run in self._next():
            # a context of its own: nothing of this run reaches the next one
            contextvars.Context().run(run.work, self._act)
            self._retire(run)

    def _next(self) -> Iterator[Run]:
        while True:
            with self._changed:
                while not self._queue and not self._closed:
                    self._changed.wait()
                if self._closed:
                    return
                run = self._queue.popleft()
                waiting = list(self._queue)
            # everyone behind it has moved up
            for other in waiting:
                other.moved()
            yield run

    def _retire(self, run: Run) -> None:
        self._live.pop(run.id, None)
        self._held.pop(run.id, None)
        record, state = run.record, run.record.state
        log.info(
            "run ended",
            extra={
                "run": record.id,
                "kind": record.kind,
                "state": state,
                "method": record.ask.method,
                "calls": record.usage.calls,
                "cost": record.usage.cost,
                "seconds": round((record.ended or 0) - record.created, 3),
            },
        )
        self.finished[state] = self.finished.get(state, 0) + 1

    def _act(self, run: Run) -> Result | None:
        if run.record.kind == "library":
            return self._measured(run, lambda session, sinks: self._across(run, session, sinks))
        footage = self._shelf.footage(run.record.ask.film)
        if run.record.kind == "index":
            if isinstance(footage, Film):
                _index(footage, run)
            return None
        # indexed here, with progress, rather than inside the first search of the method
        if isinstance(footage, Film) and run.record.ask.index_first:
            footage.pictures.build(footage.pictures.layers(), run.advance("frames"))
        return self._measured(run, lambda session, sinks: _answer(run, footage, session, sinks))

    def _across(self, run: Run, session: Session, sinks: list[Sink]) -> Result:
        """Ask the library."""
        ask = run.record.ask
        result, across = self._library.ask(
            session, question_of(ask), ask.method, where=ask.where, sinks=sinks, stop=run.stop
        )
        # written with the end of the run, which follows at once
        found = {"sources": across.sources, "scope": across.scope}
        run.record = run.record.model_copy(update=found)
        return result

    def _measured(self, run: Run, act: Callable[[Session, list[Sink]], Result]) -> Result:
        """Answer a question within the limits, write its trace and count what it costs."""
        ask = run.record.ask
        session = self.session(ask, self._budget(run))
        meter = Meter()
        # the trace comes first: a viewer who is told of an event must find it there
        trace = JsonlSink(self.journal.trace(run.id), pictures=False)
        sinks: list[Sink] = [trace, PictureSink(self.journal), meter, run]
        if self._sender is not None:
            sinks.append(OtlpSink(self._sender))
        try:
            return act(session, sinks)
        finally:
            with self._changed:
                self.spent += meter.total.cost or 0.0
            run.record = run.record.model_copy(update={"usage": meter.total})

    def session(self, ask: Ask, budget: BudgetSettings | None = None) -> Session:
        """The session for an ask, with the server's settings."""
        settings = replace(self._options.settings, budget=budget or self._limits(ask))
        models = ask.models or self._options.models
        casting = Casting(models, replies=not ask.fresh).or_else(settings.answers.model)
        return Session(settings, casting, ask.seed)

    def _limits(self, ask: Ask) -> BudgetSettings:
        """The limits of an ask; those of the server cannot be raised."""
        own, server = ask.budget, self._options.settings.budget
        limits = {}
        for name in BudgetSettings.__dataclass_fields__:
            given = [each for each in (getattr(own, name), getattr(server, name)) if each]
            limits[name] = min(given, default=None)
        return BudgetSettings(**limits)

    def _budget(self, run: Run) -> BudgetSettings:
        """The limits of a run, within what the server may still spend."""
        limits = self._limits(run.record.ask)
        ceiling = self._options.max_spend
        if ceiling is None:
            return limits
        with self._changed:
            left = ceiling - self.spent - sum(self._held.values())
            if left <= 0:
                spent = f"${self.spent:.4f} of ${ceiling:g}"
                raise BudgetSpent("the server's spending limit", spent)
            # without a limit of its own, a run may use an equal share of what is left
            share = left / max(1, self._options.at_once - len(self._held))
            cost = min(limits.cost or share, left)
            self._held[run.id] = cost
        return replace(limits, cost=cost)


def _answer(run: Run, footage: Footage, session: Session, sinks: list[Sink]) -> Result:
    ask = run.record.ask
    with session.under_way(*sinks):
        return session.answer(ask.method, footage, question_of(ask), stop=run.stop)


def question_of(ask: Ask) -> Question:
    """The question as the method is asked it, with what it refers to."""
    try:
        return Question(with_carried(ask.question, ask.carried), ask.options)
    except ValueError as error:
        raise ConfigError(str(error)) from error


def _index(film: Film, run: Run) -> None:
    """Do every part of indexing that is missing, cheapest first."""
    for task in tasks(film):
        advance = run.advance(task.name)
        if not task.done():
            advance(0.0)
            task.build(advance)
        advance(1.0)
