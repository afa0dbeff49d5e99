"""Runs: questions under way, in a bounded pool, with a queue.

::

    pool = RunPool(options, catalog, journal)
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
from collections.abc import Iterator
from dataclasses import replace

from longtake import registry
from longtake.config import BudgetSettings
from longtake.errors import BudgetSpent, ConfigError, RunError, unknown
from longtake.server.engine import Engine
from longtake.server.films import FilmCatalog
from longtake.server.journal import Ask, Journal, Kind, RunRecord, new_id
from longtake.server.library import ServedLibrary
from longtake.server.options import ServeOptions
from longtake.server.run import Run
from longtake.server.work import Job, Work, Worker, limits_of, open_session, question_of
from longtake.session.asking import Session
from longtake.stopping import Cancelled
from longtake.types import Result

log = logging.getLogger("longtake.serve")


class QueueFull(RunError):
    """Too many runs are waiting."""


class RunPool:
    """Threads that work off a queue of runs."""

    def __init__(
        self,
        options: ServeOptions,
        catalog: FilmCatalog,
        journal: Journal,
        library: ServedLibrary | None = None,
    ) -> None:
        self.journal = journal
        self.spent = 0.0
        """US dollars of all runs so far."""
        self.finished: dict[str, int] = {}
        """Number of runs by how they ended."""
        self._options, self._catalog = options, catalog
        self._library = library or ServedLibrary(options, catalog)
        self._live: dict[str, Run] = {}
        self._queue: deque[Run] = deque()
        self._held: dict[str, float] = {}
        self._changed = threading.Condition()
        self._closed = False
        self._work: Work
        if options.own_process:
            self._work = Engine(options)
        else:
            self._work = Worker(options, catalog, journal, self._library)
        self._threads = [
            threading.Thread(target=self._serve, name=f"run-{n}", daemon=True)
            for n in range(options.at_once)
        ]
        for thread in self._threads:
            thread.start()

    def warm_up(self) -> None:
        """Get ready for the first run, which then need not wait."""
        self._work.warm_up()

    def start(self, ask: Ask, *, group: str = "", kind: Kind = "ask") -> Run:
        """Queue a run, or join an identical one that is under way."""
        film_name = "" if kind == "library" else self._catalog.path(ask.film).name
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
        self._work.close()

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
                other.news()
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
        """Have the work of a run done, and count what it cost."""
        record = run.record
        budget = BudgetSettings() if record.kind == "index" else self._budget(run)
        outcome = self._work.do(Job(record.id, record.kind, record.ask, budget), run)
        with self._changed:
            self.spent += outcome.usage.cost or 0.0
        # written with the end of the run, which follows at once
        known = {"usage": outcome.usage, "sources": outcome.sources, "scope": outcome.scope}
        run.record = record.model_copy(update=known)
        if outcome.error is not None:
            raise outcome.error
        return outcome.result

    def session(self, ask: Ask) -> Session:
        """The session for an ask, with the server's settings."""
        return open_session(self._options, ask, limits_of(self._options, ask))

    def _budget(self, run: Run) -> BudgetSettings:
        """The limits of a run, within what the server may still spend."""
        limits = limits_of(self._options, run.record.ask)
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
