"""Spoken and on-screen lines of one film in SQLite."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from longtake.algorithms.intervals import union
from longtake.algorithms.speakers import renamed
from longtake.errors import RunError
from longtake.index.store import LayerKey
from longtake.perception.runtime import batches
from longtake.tracing.events import note_once
from longtake.types import Line, Segment

_SCHEMA = """
CREATE TABLE IF NOT EXISTS layers (key TEXT PRIMARY KEY, covered TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS lines (
    id INTEGER PRIMARY KEY, layer TEXT NOT NULL,
    start REAL NOT NULL, end REAL NOT NULL, text TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS lines_by_time ON lines (layer, start);
CREATE TABLE IF NOT EXISTS speakers (label TEXT PRIMARY KEY, name TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS meanings (
    encoder TEXT NOT NULL, text TEXT NOT NULL, vector BLOB NOT NULL, PRIMARY KEY (encoder, text)
) WITHOUT ROWID;
"""
_MADE = 3
"""The database's ``user_version`` once it has the tables above."""


class TextStore:
    """The lines of one film by layer; every change is one transaction."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, key: LayerKey, lines: Iterable[Line], covered: Iterable[Segment]) -> None:
        """Add lines to a layer, and mark segments as covered whether or not they have any lines."""
        layer = str(key)
        rows = [(layer, line.segment.start, line.segment.end, line.text) for line in lines]
        insert = "INSERT INTO lines (layer, start, end, text) VALUES (?, ?, ?, ?)"
        with self._open() as base, base:
            # locked before reading: two writers must not both extend the same coverage
            base.execute("BEGIN IMMEDIATE")
            known = union([*self._covered(base, key), *covered])
            base.executemany(insert, rows)
            encoded = json.dumps([[segment.start, segment.end] for segment in known])
            base.execute("INSERT OR REPLACE INTO layers VALUES (?, ?)", (layer, encoded))

    def has(self, key: LayerKey) -> bool:
        """Whether anything was ever added to a layer."""
        with self._open() as base:
            row = base.execute("SELECT 1 FROM layers WHERE key = ?", (str(key),)).fetchone()
            return row is not None

    def covered(self, key: LayerKey) -> list[Segment]:
        """The segments of the film that a layer covers, merged."""
        with self._open() as base:
            return self._covered(base, key)

    def lines(self, key: LayerKey, within: Segment | None = None) -> list[Line]:
        """A layer's lines in time order; only those that overlap ``within`` if given."""
        within = within or Segment(0.0, float("inf"))
        with self._open() as base:
            rows = base.execute(
                "SELECT start, end, text FROM lines"
                " WHERE layer = ? AND start < ? AND (end > ? OR start >= ?) ORDER BY start, id",
                (str(key), within.end, within.start, within.start),
            )
            names = self._names(base)
            return [Line(Segment(start, end), renamed(text, names)) for start, end, text in rows]

    def rename(self, label: str, name: str) -> None:
        """Call a speaker by another name from now on; ``label`` is the present name."""
        with self._open() as base, base:
            base.execute("BEGIN IMMEDIATE")
            first = {now: label for label, now in self._names(base).items()}.get(label, label)
            base.execute("INSERT OR REPLACE INTO speakers VALUES (?, ?)", (first, name))

    @staticmethod
    def _names(base: sqlite3.Connection) -> dict[str, str]:
        return dict(base.execute("SELECT label, name FROM speakers"))

    def meanings(self, encoder: str, texts: Collection[str]) -> dict[str, bytes]:
        """The stored vectors of texts, as an encoder made them."""
        known: dict[str, bytes] = {}
        query = "SELECT text, vector FROM meanings WHERE encoder = ? AND text IN "
        with self._open() as base:
            # a statement takes a limited number of parameters
            for some in batches(list(texts), 500):
                marks = f"({', '.join('?' * len(some))})"
                known |= dict(base.execute(query + marks, (encoder, *some)))
        return known

    def add_meanings(self, encoder: str, vectors: Mapping[str, bytes]) -> None:
        """Store the vectors of texts; where that fails, they are computed again."""
        rows = [(encoder, text, vector) for text, vector in vectors.items()]
        try:
            with self._open() as base, base:
                base.execute("BEGIN IMMEDIATE")
                base.executemany("INSERT OR REPLACE INTO meanings VALUES (?, ?, ?)", rows)
        except sqlite3.OperationalError as error:
            # a full or read-only disk must not end the question
            note_once("not_kept", file=str(self._path), why=str(error))

    @staticmethod
    def _covered(base: sqlite3.Connection, key: LayerKey) -> list[Segment]:
        row = base.execute("SELECT covered FROM layers WHERE key = ?", (str(key),)).fetchone()
        return [Segment(a, b) for a, b in json.loads(row[0])] if row else []

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        remedy = f"clear it and index again: longtake cache clear {self._path.parent.name}"
        # a connection per use is cheap, and safe with threads and forks
        with (
            damage_reported(self._path, remedy),
            closing(sqlite3.connect(self._path, timeout=60, isolation_level=None)) as base,
        ):
            prepare(base, _SCHEMA, _MADE)
            yield base


@contextmanager
def damage_reported(file: Path, remedy: str) -> Iterator[None]:
    """Turn SQLite's errors about a damaged database into one that names the remedy."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        # the subclasses mean a lock or a full disk, except for a table that is gone
        if type(error) is not sqlite3.DatabaseError and "no such" not in str(error):
            raise
        raise RunError(f"{file}: damaged ({error}); {remedy}") from error


def prepare(base: sqlite3.Connection, schema: str, version: int) -> None:
    """Create the tables of a database unless they are there."""
    if base.execute("PRAGMA user_version").fetchone()[0] < version:
        # one transaction: if several processes find no tables, one creates them
        base.executescript(f"BEGIN IMMEDIATE; {schema} PRAGMA user_version = {version}; COMMIT;")
