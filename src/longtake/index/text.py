"""Spoken and on-screen lines of one film in SQLite, and a cache of word forms and rarities.

The tables of words (``wordfreq``, ``simplemma``) take half a second to load, which is half the time
of a later question about an indexed film, so :class:`WordCache` stores their results.
"""

from __future__ import annotations

import atexit
import json
import os
import sqlite3
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from longtake._util import version_of
from longtake.algorithms import lexical
from longtake.algorithms.intervals import union
from longtake.algorithms.speakers import renamed
from longtake.errors import RunError
from longtake.index.store import LayerKey, private_folder
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


FILE = "words.db"
LAYOUT = "3"
"""Version of the tables below; the entries of another version are deleted."""
_WORDS_SCHEMA = """
CREATE TABLE IF NOT EXISTS forms (word TEXT PRIMARY KEY, form TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS rarities (word TEXT PRIMARY KEY, rarity REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tables (versions TEXT PRIMARY KEY);
"""


class WordCache:
    """Base forms and rarities in SQLite; without a usable file nothing is cached."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._forms: dict[str, str] = {}
        self._rarities: dict[str, float] = {}
        self._opened: tuple[int, sqlite3.Connection | None] | None = None
        atexit.register(self.save)

    @property
    def _base(self) -> sqlite3.Connection | None:
        # opened on first use; a connection must not be carried over a fork
        if self._opened is None or self._opened[0] != os.getpid():
            self._opened = os.getpid(), self._open()
        return self._opened[1]

    def form(self, word: str) -> str | None:
        """The base form of a word, if cached."""
        form = self._get("SELECT form FROM forms WHERE word = ?", word)
        return None if form is None else str(form)

    def rarity(self, word: str) -> float | None:
        """The rarity of a word, if cached."""
        rarity = self._get("SELECT rarity FROM rarities WHERE word = ?", word)
        return None if rarity is None else float(str(rarity))

    def keep(self, forms: Mapping[str, str], rarities: Mapping[str, float]) -> None:
        """Cache entries; they are written in batches, and at the end of the process."""
        self._forms |= forms
        self._rarities |= rarities
        # in batches, since each write waits for the disk
        if len(self._forms) + len(self._rarities) >= 500:
            self.save()

    def is_empty(self) -> bool:
        """Whether the common words were never kept."""
        kept = "SELECT EXISTS (SELECT 1 FROM forms WHERE word != ?)"
        return not self._forms and self._get(kept, "") == 0

    def save(self) -> None:
        """Write the entries that are not on disk yet."""
        with self._lock:
            forms, self._forms = list(self._forms.items()), {}
            rarities, self._rarities = list(self._rarities.items()), {}
            if (not forms and not rarities) or self._base is None:
                return
            try:
                with self._base as base:
                    base.executemany("INSERT OR REPLACE INTO forms VALUES (?, ?)", forms)
                    base.executemany("INSERT OR REPLACE INTO rarities VALUES (?, ?)", rarities)
            # a full disk, or another process that writes for long: the tables still have them
            except sqlite3.Error:
                return

    def forget(self) -> None:
        """Drop unwritten entries and close the file."""
        with self._lock:
            self._forms, self._rarities, self._opened = {}, {}, None

    def _get(self, query: str, word: str) -> object:
        with self._lock:
            if self._base is None:
                return None
            try:
                row = self._base.execute(query, (word,)).fetchone()
            except sqlite3.Error:
                return None  # damaged: the tables still have it
        return None if row is None else row[0]

    def _open(self) -> sqlite3.Connection | None:
        try:
            private_folder(self.path.parent)
            # a short wait: the tables can answer without this file
            base = sqlite3.connect(self.path, timeout=1, check_same_thread=False)
            base.executescript(_WORDS_SCHEMA)
            _forget_others(base)
        except (OSError, sqlite3.Error):
            return None
        return base


def _forget_others(base: sqlite3.Connection) -> None:
    """Delete the entries of other versions of the tables."""
    versions = " ".join([*(version_of(name) for name in ("wordfreq", "simplemma")), LAYOUT])
    if base.execute("SELECT versions FROM tables").fetchall() == [(versions,)]:
        return
    with base:
        base.execute("DROP TABLE IF EXISTS packed")
        for table in ("forms", "rarities", "tables"):
            base.execute(f"DELETE FROM {table}")
        base.execute("INSERT INTO tables VALUES (?)", (versions,))


def forget_words(cache: Path) -> int:
    """Delete the cached words; returns the bytes freed."""
    path = cache / FILE
    size = path.stat().st_size if path.exists() else 0
    if _in_use is not None and _in_use.path == path:
        _in_use.forget()
    path.unlink(missing_ok=True)
    return size


_in_use: WordCache | None = None


def remember_words(cache: Path) -> None:
    """Let :mod:`longtake.algorithms.lexical` cache words in a folder."""
    global _in_use  # one cache per process
    path = cache / FILE
    if _in_use is not None and _in_use.path == path:
        return
    if _in_use is not None:
        _in_use.save()
    _in_use = WordCache(path)
    lexical.remember_in(_in_use)
