"""Replies on disk: the same request gets the same reply without a call.

The cache is one SQLite file in a folder that the caller chooses. Replies about a film are kept with
the film's other data and are deleted with it. Several processes can share the file.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from filelock import FileLock

from longtake import events
from longtake.models.chat import Chat, Message, Options, Reply, ToolCall, images, request_hash
from longtake.models.layers import Layer
from longtake.types import Usage

FILE = "replies.sqlite"
COLUMNS = "request TEXT PRIMARY KEY, model TEXT, prompt TEXT, reply TEXT NOT NULL, made REAL"
LOCK_SECONDS = 30.0
"""Seconds to wait while another process writes."""


class ReplyStore:
    """The file, with one connection that one thread uses at a time."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.path = folder / FILE
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    def get(self, key: str) -> dict[str, Any] | None:
        """Return the stored reply, if there is one."""
        query = "SELECT reply FROM replies WHERE request = ?"
        with self._lock:
            row = self._open().execute(query, (key,)).fetchone()
        return None if row is None else json.loads(row[0])

    def put(self, key: str, model: str, prompt: str, reply: dict[str, Any]) -> None:
        """Store a reply; the first one for a request stays, so that repeated reads agree."""
        with self._lock, self._open() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO replies VALUES (?, ?, ?, ?, ?)",
                (key, model, prompt, json.dumps(reply), time.time()),
            )

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _open(self) -> sqlite3.Connection:
        # opened on first use, so that making a store does not create the file
        if self._connection is None:
            connection = sqlite3.connect(self.path, timeout=LOCK_SECONDS, check_same_thread=False)
            # SQLite waits for other processes, except when it switches to a write-ahead log
            with FileLock(f"{self.path}.lock", timeout=LOCK_SECONDS, mode=0o600):
                # with a write-ahead log, a reply need not wait for the disk and survives a crash
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
                connection.execute(f"CREATE TABLE IF NOT EXISTS replies ({COLUMNS})")
            self._connection = connection
        return self._connection


class Cached(Layer):
    """Returns the stored reply, marked as such and at no cost, or asks and stores.

    If the cache cannot be read or written, an event says so and the model is asked; the run goes
    on.
    """

    def __init__(self, inner: Chat, store: ReplyStore) -> None:
        super().__init__(inner)
        self._store = store

    def complete(self, messages: Sequence[Message], options: Options) -> Reply:
        """Look first, ask second."""
        key = request_hash(self.card, messages, options)
        stored = self._stored(key)
        if stored is not None:
            calls = tuple(ToolCall(**call) for call in stored["tool_calls"])
            # the pictures count as seen: what a method looks at does not depend on who paid
            seen = Usage(frames=sum(1 for _ in images(messages)))
            return Reply(**{**stored, "tool_calls": calls}, usage=seen, cached=True)
        reply = self.inner.complete(messages, options)
        if reply.text or reply.tool_calls:  # an empty reply is a failure, and asking again may help
            self._keep(key, options.prompt, reply)
        return reply

    def _stored(self, key: str) -> dict[str, Any] | None:
        try:
            return self._store.get(key)
        except (sqlite3.Error, OSError, ValueError) as error:
            events.note("cache_failed", file=str(self._store.path), error=str(error))
            return None

    def _keep(self, key: str, prompt: str, reply: Reply) -> None:
        # usage is what the first call cost; a stored reply costs nothing
        kept = asdict(reply)
        del kept["usage"], kept["cached"]
        try:
            self._store.put(key, self.card.name, prompt, kept)
        except (sqlite3.Error, OSError, ValueError) as error:
            events.note("cache_failed", file=str(self._store.path), error=str(error))
