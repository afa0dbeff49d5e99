"""Replies on disk: the same request gets the same reply without a call.

One SQLite file in a folder that the caller chooses, so that what was derived from a film lies with the
film's other data and goes when that goes. Processes may share it: SQLite locks, and opening it takes turns.
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
WAIT = 30.0
"""Seconds to wait for another process that is writing."""


class ReplyStore:
    """The file; one connection, used by one thread at a time."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.path = folder / FILE
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    def get(self, key: str) -> dict[str, Any] | None:
        """The stored reply, if there is one."""
        with self._lock:
            row = (
                self._open()
                .execute("SELECT reply FROM replies WHERE request = ?", (key,))
                .fetchone()
            )
        return None if row is None else json.loads(row[0])

    def put(self, key: str, model: str, prompt: str, reply: dict[str, Any]) -> None:
        """Store a reply; of two for one request the first stays, so that repeated reads agree."""
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
        if self._connection is None:
            connection = sqlite3.connect(self.path, timeout=WAIT, check_same_thread=False)
            # SQLite waits for other processes except where it changes to a log: there it fails at once
            with FileLock(f"{self.path}.lock", timeout=WAIT, mode=0o600):
                # a write-ahead log need not wait for the disk at every reply, and a crash cannot harm it
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
                connection.execute(
                    "CREATE TABLE IF NOT EXISTS replies "
                    "(request TEXT PRIMARY KEY, model TEXT, prompt TEXT, reply TEXT NOT NULL, made REAL)"
                )
            self._connection = connection
        return self._connection


class Cached(Layer):
    """Gives the stored reply, marked and at no cost, or asks and stores.

    A cache that cannot be read or written costs a call and is noted; it never ends a run.
    """

    def __init__(self, inner: Chat, store: ReplyStore) -> None:
        super().__init__(inner)
        self._store = store

    def complete(self, messages: Sequence[Message], options: Options) -> Reply:
        """Look first, ask second."""
        key = request_hash(self.card, messages, options)
        try:
            stored = self._store.get(key)
        except (sqlite3.Error, OSError, ValueError) as error:
            events.note("cache_failed", file=str(self._store.path), error=str(error))
            stored = None
        if stored is not None:
            calls = tuple(ToolCall(**call) for call in stored["tool_calls"])
            # the pictures were looked at all the same: what a method sees does not depend on who paid
            seen = Usage(frames=sum(1 for _ in images(messages)))
            return Reply(**{**stored, "tool_calls": calls}, usage=seen, cached=True)
        reply = self.inner.complete(messages, options)
        if reply.text or reply.tool_calls:  # an empty reply is a failure that asking again may mend
            kept = asdict(reply)
            del kept["usage"], kept["cached"]
            try:
                self._store.put(key, self.card.name, options.prompt, kept)
            except (sqlite3.Error, OSError, ValueError) as error:
                events.note("cache_failed", file=str(self._store.path), error=str(error))
        return reply
