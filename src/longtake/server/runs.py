"""Runs that wait or are under way: the queue, its worker threads, and a handle on each run.

The :mod:`~longtake.server.journal` stores how a run ended, and the :mod:`~longtake.server.engine`
does its work.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from typing import Any

from longtake import registry
from longtake._util.cancellation import Cancelled, Stop
from longtake.config import BudgetSettings
from longtake.errors import BudgetSpent, ConfigError, LongtakeError, RunError, unknown
from longtake.llm.catalog import ModelCatalog
from longtake.runner.assignment import read_role_assignment
from longtake.runner.session import Session
from longtake.server import events
from longtake.server.engine import Engine, EngineLost
from longtake.server.events import ChangeNotifier
from longtake.server.films import ServedFilms, public_message
from longtake.server.jobs import (
    Job,
    JobWorker,
    Outcome,
    Progress,
    failed,
    limits_of,
    open_session,
    question_of,
)
from longtake.server.journal import ENDED, Ask, Journal, JournalUnwritable, Kind, RunRecord, new_id
from longtake.server.library import ServedLibrary
from longtake.server.options import ServeOptions
from longtake.types import Result

log = logging.getLogger("longtake.serve")


class ServerRun:
    """A handle on one run."""

    def __init__(self, record: RunRecord, pool: RunPool) -> None:
        self.record = record
        self.progress: dict[str, float] = {}
        """Share done of each part of indexing."""
        self.askers = 1
        self._pool = pool
        self.stop = Stop()
        """Ends model calls and decoding in progress."""
        self._over = threading.Event()
        self._outcome = Outcome()
        self._changes = ChangeNotifier()
        self.cancelled = False
        """Whether it was cancelled, even if it has not ended yet."""

    @property
    def id(self) -> str:
        """The run's id."""
        return self.record.id

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen."""
        return self.record.state in ENDED

    @property
    def position(self) -> int:
        """Place in the queue, from 1; 0 once the run has begun."""
        return self._pool.position(self)

    def events(self, after: int = 0) -> AsyncGenerator[list[events.TraceLine], None]:
        """Batches of events from the trace; an empty one when only the status changed."""
        return events.follow(
            self._pool.journal.trace(self.id),
            after=after,
            listen=self._changes.listen,
            ended=lambda: self.ended,
        )

    def result(self, timeout: float | None = None) -> Result:
        """The result; raises the error that ended the run, or ``TimeoutError``."""
        if not self._over.wait(timeout):
            raise TimeoutError(f"run {self.id} is still under way")
        if self._outcome.error is not None:
            raise self._outcome.error
        assert self._outcome.result is not None
        return self._outcome.result

    async def finished(self) -> None:
        """Wait for the end without blocking the loop."""
        while not self.ended:
            change = self._changes.listen()
            if not self.ended:
                await asyncio.wait([change], timeout=events.HEARTBEAT)

    def cancel(self) -> None:
        """End the run for everyone."""
        self.cancelled = True
        # the flag first: a thread that takes the run from the queue now sees it
        self.stop.set()
        self._pool.drop(self)

    def leave(self) -> None:
        """End the run unless somebody else waits for it."""
        # clients that ask the same question share a run
        self.askers -= 1
        if self.askers <= 0:
            self.cancel()

    def end(self, outcome: Outcome) -> None:
        """Record how the run ended and wake everyone who waits for it."""
        self._outcome, result, error = outcome, outcome.result, outcome.error
        if error is None:
            # a run that is cancelled keeps the best answer so far
            state = "cancelled" if self.cancelled and result is not None else "done"
        elif isinstance(error, Cancelled):
            state = "cancelled"
        else:
            state = "broken" if isinstance(error, EngineLost) else "failed"
        ended = self.record.model_copy(
            update={
                "state": state,
                "ended": time.time(),
                "error": _reason(error),
                "answer": result and result.answer,
                "usage": result.usage if result else outcome.usage,
                "sources": outcome.sources,
                "scope": outcome.scope,
                "unseen": outcome.unseen,
                "calibrated": outcome.calibrated,
            }
        )
        self._pool.journal.write_end(ended)
        self.record = ended
        self._changes.notify()
        self._over.set()

    def change(self, **changes: Any) -> None:
        """Change the record, on disk first, so that viewers see nothing that a crash could undo."""
        changed = self.record.model_copy(update=changes)
        self._pool.journal.write(changed)
        self.record = changed
        self._changes.notify()

    def report(self, progress: Progress | None = None) -> None:
        """Wake viewers: the progress, the trace or the place in the queue changed."""
        if progress is not None:
            part, share = progress
            self.progress[part] = share
        self._changes.notify()


def _reason(error: Exception | None) -> str:
    if isinstance(error, LongtakeError):
        return public_message(error)
    return "" if error is None else str(error)


class QueueFull(RunError):
    """Too many runs are waiting."""


class RunPool:
    """Worker threads and their queue of runs."""

    def __init__(
        self,
        options: ServeOptions,
        catalog: ServedFilms,
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
        self._live: dict[str, ServerRun] = {}
        self._queue: deque[ServerRun] = deque()
        self._held: dict[str, float] = {}
        self._changed = threading.Condition()
        self._closed = False
        self._work: Engine | JobWorker
        # tests and ``longtake mcp`` need no second process
        if options.own_process:
            self._work = Engine(options)
        else:
            self._work = JobWorker(options, catalog, journal, self._library)
        self._threads = [
            threading.Thread(target=self._serve, name=f"run-{n}", daemon=True)
            for n in range(options.at_once)
        ]
        for thread in self._threads:
            thread.start()

    def warm_up(self, ask: Ask | None = None) -> None:
        """Get ready for the first run, or for an ask that is being written."""
        self._work.warm_up(ask)

    def start(self, ask: Ask, *, kind: Kind = "ask") -> ServerRun:
        """Queue a run, or join an identical one that is under way."""
        return self.start_all([ask], kind=kind)[0]

    def start_all(
        self, asks: Sequence[Ask], *, group: str = "", kind: Kind = "ask"
    ) -> list[ServerRun]:
        """Queue or join a run for each ask; all or none."""
        records = [self._checked_record(ask, group, kind) for ask in asks]
        with self._changed:
            # a client that retries joins the run that it started before
            twins = [self._twin(record) for record in records]
            new = [record for record, twin in zip(records, twins, strict=True) if twin is None]
            if len(self._queue) + len(new) > self._options.max_waiting:
                raise QueueFull(f"{len(self._queue)} runs are waiting already; try again later")
            self._store(new)
            runs = []
            for record, twin in zip(records, twins, strict=True):
                if twin is None:
                    run = self._live[record.id] = ServerRun(record, self)
                    self._queue.append(run)
                else:
                    run = twin
                    run.askers += 1
                runs.append(run)
            # there may be work for several threads
            self._changed.notify_all()
        return runs

    def _checked_record(self, ask: Ask, group: str, kind: Kind) -> RunRecord:
        """The record of a new run; raises if the ask could not run."""
        film_name = "" if kind in ("library", "pull") else self._catalog.file(ask.film).name
        if kind == "library":
            self._library.check(ask.where)
        if kind not in ("index", "pull"):
            self.check(ask)
        return RunRecord(
            id=new_id(), kind=kind, ask=ask, film_name=film_name, group=group, created=time.time()
        )

    def _store(self, records: Sequence[RunRecord]) -> None:
        """Write all of these records, or none."""
        try:
            for record in records:
                self.journal.write(record)
        except JournalUnwritable:
            for record in records:
                self.journal.delete(record.id)
            raise

    def check(self, ask: Ask) -> None:
        """Raise if an ask could not run: unknown names, models that are not there."""
        question_of(ask)
        # an address such as os:system is a method's name elsewhere; here it would run any code
        if ask.method not in registry.methods.names():
            raise unknown("method", ask.method, registry.methods.names())
        self._check_models(ask)
        self.session(ask).check_models(registry.methods.get(ask.method).roles)

    def _check_models(self, ask: Ask) -> None:
        """Raise if an ask names a model elsewhere that the server does not list."""
        settings = self._options.settings
        assigned = [read_role_assignment(text).model for text in self._options.models]
        listed = {*settings.models, *assigned}
        for name in (read_role_assignment(text).model for text in ask.models):
            if "://" in name:
                raise ConfigError(f"{name}: name a model of the server's catalogue, not an address")
            # the key of a listed model would pay for any other of the same vendor
            if name not in listed and ModelCatalog(settings).hosts([name]):
                raise unknown("model", name, listed)

    def get(self, run: str) -> ServerRun | None:
        """A run that is under way."""
        return self._live.get(run)

    def live(self) -> list[ServerRun]:
        """Runs that wait or are under way."""
        return list(self._live.values())

    def position(self, run: ServerRun) -> int:
        """Place in the queue, from 1; 0 if the run is not waiting."""
        try:
            return self._queue.index(run) + 1
        except ValueError:
            return 0

    def drop(self, run: ServerRun) -> None:
        """Take a run that still waits out of the queue; one under way ends by itself."""
        with self._changed:
            if run not in self._queue:
                return
            self._queue.remove(run)
        run.end(Outcome(error=Cancelled("cancelled")))
        self._retire(run)

    def close(self) -> None:
        """Cancel everything."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for run in self.live():
            run.cancel()
        self._work.close()

    def _twin(self, wanted: RunRecord) -> ServerRun | None:
        """A run under way that does the same."""
        work = (wanted.ask, wanted.kind, wanted.group)
        for run in self._live.values():
            same = (run.record.ask, run.record.kind, run.record.group) == work
            if same and not run.ended and not run.cancelled:
                return run
        return None

    def _serve(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._closed)
                if self._closed:
                    return
                run = self._queue.popleft()
                waiting = list(self._queue)
            # everyone behind it has moved up
            for other in waiting:
                other.report()
            # in a new context, so that nothing of this run reaches the next one
            contextvars.Context().run(self._do, run)
            self._retire(run)

    def _retire(self, run: ServerRun) -> None:
        # from now on, it is read from the journal
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

    def _do(self, run: ServerRun) -> None:
        """Do the work of a run, and record how it ended and what it cost."""
        record = run.record
        try:
            run.change(state="running", started=time.time())
            run.stop.check()
            free = record.kind in ("index", "pull")
            budget = BudgetSettings() if free else self._budget(run)
            job = Job(record.id, record.kind, record.ask, budget)
            outcome = self._work.do(job, run.stop, run.report)
        except Exception as error:  # noqa: BLE001 - a bug in one run must not end the server
            outcome = failed(record.id, error)
        # failed runs cost something, too
        with self._changed:
            self.spent += outcome.usage.cost or 0.0
        run.end(outcome)

    def session(self, ask: Ask) -> Session:
        """The session for an ask, with the server's settings."""
        return open_session(self._options, ask, limits_of(self._options, ask))

    def _budget(self, run: ServerRun) -> BudgetSettings:
        """The limits of a run, within what the server may still spend."""
        limits = limits_of(self._options, run.record.ask)
        ceiling = self._options.max_spend
        if ceiling is None:
            return limits
        with self._changed:
            # what other runs may still spend counts as spent
            left = ceiling - self.spent - sum(self._held.values())
            if left <= 0:
                spent = f"${self.spent:.4f} of ${ceiling:g}"
                raise BudgetSpent("the server's spending limit", spent)
            # a run without a limit may use an equal share of what is left
            share = left / max(1, self._options.at_once - len(self._held))
            cost = min(limits.cost or share, left)
            self._held[run.id] = cost
        return replace(limits, cost=cost)
