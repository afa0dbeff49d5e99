"""What the routes of a server share, and the lock on its folder."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, HTTPException, Request
from filelock import FileLock, Timeout

from longtake._util.cancellation import Stop
from longtake.config import BudgetSettings
from longtake.errors import ConfigError
from longtake.index.store import private_folder
from longtake.runner.assignment import ModelAssignment
from longtake.runner.table_schema import read_schema
from longtake.server.films import ServedFilms, Uploads
from longtake.server.journal import MAX_QUESTION, Ask, Journal, RunRecord
from longtake.server.library import ServedLibrary, Watcher
from longtake.server.options import ServeOptions
from longtake.server.runs import RunPool, ServerRun
from longtake.server.security import AccessKeys
from longtake.types import Segment
from longtake.video.clip import clip_bytes
from longtake.video.video import Video

CLIPS_AT_ONCE = 2
"""Clips that are encoded at the same time: each uses every core and up to 50 MB of memory."""


@dataclass(frozen=True)
class ServerState:
    """The parts of a running server."""

    options: ServeOptions
    keys: AccessKeys
    catalog: ServedFilms
    journal: Journal
    pool: RunPool
    arrivals: Uploads
    library: ServedLibrary
    watcher: Watcher
    _encoders: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(CLIPS_AT_ONCE))

    @property
    def default_method(self) -> str:
        """The method of a question that names neither a method nor models."""
        models = ModelAssignment(self.options.models)
        return models.by_default(self.options.settings).default_method

    def start_extract(
        self,
        film: str,
        schema: Mapping[str, Any],
        method: str | None = None,
        models: tuple[str, ...] = (),
        budget: BudgetSettings | None = None,
    ) -> ServerRun:
        """Queue the extraction of a table; the schema is the question."""
        read_schema(schema)
        try:
            text = json.dumps(schema, ensure_ascii=False)
        except RecursionError:
            raise ConfigError("the schema is nested too deeply") from None
        if len(text) > MAX_QUESTION:
            raise ConfigError(f"the schema has {len(text)} letters, more than {MAX_QUESTION}")
        ask = Ask(
            film=self.catalog.file(film).id,
            question=text,
            method=method or self.default_method,
            models=models,
            budget=budget or BudgetSettings(),
            index_first=False,
        )
        return self.pool.start(ask, kind="extract")

    async def encode(self, parts: Sequence[tuple[Video, Segment]], request: Request) -> bytes:
        """Stretches as MP4, unless the client leaves."""
        stop = Stop()

        async def watch() -> None:
            while (await request.receive())["type"] != "http.disconnect":
                pass
            stop.set()

        def work() -> bytes:
            with stop.in_force():
                stop.check()
                return clip_bytes(parts)

        watching = asyncio.ensure_future(watch())
        try:
            async with self._encoders:
                return await asyncio.to_thread(work)
        finally:
            watching.cancel()
            # the server may end first
            stop.set()

    def close(self) -> None:
        """Stop watching folders and cancel all runs."""
        self.watcher.stop()
        self.pool.close()

    def record(self, run: str) -> RunRecord:
        """The record of a run, under way or over; 404 if there is none."""
        # in this order: a run that ends in between is in the journal by then
        live = self.pool.get(run)
        record = live.record if live is not None else self.journal.read(run)
        if record is None:
            raise HTTPException(404, "no such run")
        return record

    def live(self, run: str) -> ServerRun | None:
        """A run that is under way; 404 if there is none of that id at all."""
        self.record(run)
        return self.pool.get(run)


@contextmanager
def owned_folder(*folders: Path) -> Iterator[Path]:
    """The first of these folders that no other server uses, locked while the block lasts.

    A server marks unfinished runs as broken and removes unfinished uploads, so they must not be
    those of another server. The lock ends with the process, however that ends.
    """
    for data in folders:
        private_folder(data.parent)
        lock = FileLock(private_folder(data) / "lock", timeout=0, mode=0o600)
        try:
            lock.acquire()
        except Timeout:
            continue
        try:
            yield data
        finally:
            lock.release()
        return
    reason = f"another server uses {folders[0]}; stop it, or set cache.folder to another folder"
    raise ConfigError(reason, key="cache.folder")


def open_state(options: ServeOptions, keys: AccessKeys) -> ServerState:
    """Open the folders and start the pool."""
    # the catalog makes the folders that the others use
    catalog, journal = ServedFilms(options), Journal(options.data)
    # before the pool starts new ones
    journal.mark_broken()
    library = ServedLibrary(options, catalog)
    return ServerState(
        options,
        keys,
        catalog,
        journal,
        RunPool(options, catalog, journal, library),
        Uploads(options),
        library,
        Watcher(lambda: library.library, catalog),
    )


# a coroutine, because FastAPI calls plain functions in a thread, which waits for other threads
async def _state(request: Request) -> ServerState:
    state: ServerState = request.app.state.longtake
    return state


StateParam = Annotated[ServerState, Depends(_state)]
"""Parameter of a route: the server's state."""
