"""What the routes of one server share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

from fastapi import Depends, HTTPException, Request

from longtake.library import Library
from longtake.server.films import Shelf
from longtake.server.journal import Journal, RunRecord
from longtake.server.options import ServeOptions
from longtake.server.run import Run
from longtake.server.runs import RunPool
from longtake.server.security import Keys
from longtake.server.uploads import Arrivals


@dataclass(frozen=True)
class State:
    """The parts of a running server."""

    options: ServeOptions
    keys: Keys
    shelf: Shelf
    journal: Journal
    pool: RunPool
    arrivals: Arrivals

    @cached_property
    def library(self) -> Library:
        """The user's library; its films are shown if they lie below the server's folders."""
        return Library(settings=self.options.settings)

    def record(self, run: str) -> RunRecord:
        """What is known about a run, under way or over; 404 if there is none."""
        live = self.pool.get(run)
        record = live.record if live is not None else self.journal.read(run)
        if record is None:
            raise HTTPException(404, "no such run")
        return record

    def live(self, run: str) -> Run | None:
        """A run that is under way; 404 if there is none of that id at all."""
        self.record(run)
        return self.pool.get(run)


def open_state(options: ServeOptions, keys: Keys) -> State:
    """Open the folders and start the pool."""
    shelf, journal = Shelf(options), Journal(options.data)
    journal.mark_broken()
    return State(options, keys, shelf, journal, RunPool(options, shelf, journal), Arrivals(options))


def _state(request: Request) -> State:
    state: State = request.app.state.longtake
    return state


Shared = Annotated[State, Depends(_state)]
"""Parameter of a route: the server's state."""
