"""What the tables of words say about words met before, in one file of the cache.

The tables themselves (``wordfreq``, ``simplemma``) take half a second to load: half of what a later
question about an indexed film may take.
"""

from __future__ import annotations

import atexit
import os
import sqlite3
import threading
from collections.abc import Mapping
from pathlib import Path

from longtake._util.versions import version_of
from longtake.algorithms import lexical
from longtake.index.store import private_folder

FILE = "words.db"
LAYOUT = "3"
"""Of the tables below; what another version wrote is dropped."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS forms (word TEXT PRIMARY KEY, form TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS rarities (word TEXT PRIMARY KEY, rarity REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tables (versions TEXT PRIMARY KEY);
"""


class WordCache:
    """Base forms and rarities in SQLite; without a usable file nothing is remembered."""

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
        """The base form of a word, if it was met before."""
        found = self._get("SELECT form FROM forms WHERE word = ?", word)
        return None if found is None else str(found)

    def rarity(self, word: str) -> float | None:
        """The rarity of a word, if it was met before."""
        found = self._get("SELECT rarity FROM rarities WHERE word = ?", word)
        return None if found is None else float(str(found))

    def keep(self, forms: Mapping[str, str], rarities: Mapping[str, float]) -> None:
        """Remember; written when many are waiting, and at the end of the process."""
        self._forms |= forms
        self._rarities |= rarities
        # not one by one: each write waits for the disk
        if len(self._forms) + len(self._rarities) >= 500:
            self.save()

    def is_empty(self) -> bool:
        """Whether the common words were never kept."""
        kept = "SELECT EXISTS (SELECT 1 FROM forms WHERE word != ?)"
        return not self._forms and self._get(kept, "") == 0

    def save(self) -> None:
        """Write what is waiting."""
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
        """Drop what is waiting, and let go of the file."""
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
            base.executescript(_SCHEMA)
            _forget_others(base)
        except (OSError, sqlite3.Error):
            return None
        return base


def _forget_others(base: sqlite3.Connection) -> None:
    """Drop what another version of the tables said."""
    versions = " ".join([*(version_of(name) for name in ("wordfreq", "simplemma")), LAYOUT])
    if base.execute("SELECT versions FROM tables").fetchall() == [(versions,)]:
        return
    with base:
        base.execute("DROP TABLE IF EXISTS packed")
        for table in ("forms", "rarities", "tables"):
            base.execute(f"DELETE FROM {table}")
        base.execute("INSERT INTO tables VALUES (?)", (versions,))


def forget_words(cache: Path) -> int:
    """Delete the words met in films; returns the bytes freed."""
    path = cache / FILE
    size = path.stat().st_size if path.exists() else 0
    if _in_use is not None and _in_use.path == path:
        _in_use.forget()
    path.unlink(missing_ok=True)
    return size


_in_use: WordCache | None = None


def remember_words(cache: Path) -> None:
    """Let :mod:`longtake.algorithms.lexical` remember words in a cache folder."""
    global _in_use  # one memory per process
    path = cache / FILE
    if _in_use is not None and _in_use.path == path:
        return
    if _in_use is not None:
        _in_use.save()
    _in_use = WordCache(path)
    lexical.remember_in(_in_use)
