"""The catalogue: which films a library has, where they lie, and what they are called.

A film is known by its fingerprint, so a file that is moved or renamed stays the same film. Every
change is one transaction; several processes may add at once, and a killed one leaves whole entries.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from longtake.errors import RunError
from longtake.index.store import private_folder
from longtake.library.entries import Entry, Facts
from longtake.media.container import FileVersion

_SCHEMA = """
CREATE TABLE IF NOT EXISTS films (
    fingerprint TEXT PRIMARY KEY, name TEXT NOT NULL, duration REAL NOT NULL,
    date TEXT NOT NULL, place TEXT NOT NULL, added REAL NOT NULL,
    problem TEXT NOT NULL DEFAULT '', complete TEXT NOT NULL DEFAULT ''
);
CREATE TABLE IF NOT EXISTS files (
    path TEXT PRIMARY KEY, fingerprint TEXT NOT NULL, device INTEGER NOT NULL,
    inode INTEGER NOT NULL, size INTEGER NOT NULL, modified INTEGER NOT NULL, seen REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS files_by_film ON files (fingerprint);
CREATE TABLE IF NOT EXISTS tags (
    fingerprint TEXT NOT NULL, tag TEXT NOT NULL, given INTEGER NOT NULL,
    PRIMARY KEY (fingerprint, tag)
);
CREATE TABLE IF NOT EXISTS folders (path TEXT PRIMARY KEY);
"""
_MADE = 1
"""The database's ``user_version`` once it has the tables above."""
_FILM = "fingerprint, name, duration, date, place, added, problem, complete"


@dataclass(frozen=True)
class KnownFile:
    """A file as it was when last seen."""

    fingerprint: str
    version: FileVersion


class Catalogue:
    """The films of a library, in one SQLite file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._path = folder / "library.db"

    @property
    def exists(self) -> bool:
        """Whether anything was ever added."""
        return self._path.exists()

    def entries(self, fingerprints: Collection[str] | None = None) -> list[Entry]:
        """Films by name: all of them, or those with some fingerprints."""
        which, values = "", []
        if fingerprints is not None:
            which = "WHERE fingerprint IN (SELECT value FROM json_each(?))"
            values = [json.dumps(list(fingerprints))]
        with self._open() as base:
            placed = f"SELECT fingerprint, path FROM files {which} ORDER BY seen DESC, path"
            paths = _grouped(base, placed, values)
            tagged = f"SELECT fingerprint, tag FROM tags {which} ORDER BY tag"
            tags = _grouped(base, tagged, values)
            rows = base.execute(
                f"SELECT {_FILM} FROM films {which} ORDER BY name, fingerprint", values
            )
            return [_entry(row, paths.get(row[0], []), tags.get(row[0], [])) for row in rows]

    def count(self) -> int:
        """How many films there are."""
        with self._open() as base:
            return int(base.execute("SELECT count(*) FROM films").fetchone()[0])

    def entry(self, fingerprint: str) -> Entry | None:
        """One film; ``None`` if it is not in the library."""
        found = self.entries([fingerprint])
        return found[0] if found else None

    def files(self) -> dict[Path, KnownFile]:
        """Every known file, by path."""
        with self._open() as base:
            rows = base.execute(
                "SELECT path, fingerprint, device, inode, size, modified FROM files"
            )
            return {Path(path): KnownFile(mark, FileVersion(*rest)) for path, mark, *rest in rows}

    def place(self, path: Path, fingerprint: str, version: FileVersion) -> str:
        """Note that a film lies at a path.

        Returns the fingerprint of the film that lay there before, if it was another one and now
        lies nowhere; it has been replaced.
        """
        with self._changing() as base:
            old = base.execute("SELECT fingerprint FROM files WHERE path = ?", (str(path),))
            before = old.fetchone()
            base.execute(
                "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?)",
                (str(path), fingerprint, *version, time.time()),
            )
            if before is None or before[0] == fingerprint:
                return ""
            left = base.execute("SELECT 1 FROM files WHERE fingerprint = ?", before).fetchone()
            return "" if left else str(before[0])

    def describe(self, fingerprint: str, facts: Facts) -> None:
        """Add a film, or update what is known about it; tags that the user gave stay."""
        update = "name = excluded.name, duration = excluded.duration, date = excluded.date"
        with self._changing() as base:
            base.execute(
                "INSERT INTO films (fingerprint, name, duration, date, place, added)"
                " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (fingerprint) DO UPDATE SET"
                f" {update}, place = excluded.place, problem = ''",
                (fingerprint, facts.name, facts.duration, facts.date, facts.place, time.time()),
            )
            base.execute("DELETE FROM tags WHERE fingerprint = ? AND given = 0", (fingerprint,))
            _add_tags(base, fingerprint, facts.tags, given=False)

    def tag(self, fingerprint: str, tags: Iterable[str]) -> None:
        """Add tags that the user gives; these survive a new look at the file."""
        with self._changing() as base:
            _add_tags(base, fingerprint, tags, given=True)

    def given_tags(self, fingerprint: str) -> list[str]:
        """The tags that the user gave."""
        with self._open() as base:
            rows = base.execute(
                "SELECT tag FROM tags WHERE fingerprint = ? AND given ORDER BY tag", (fingerprint,)
            )
            return [tag for (tag,) in rows]

    def failed(self, fingerprint: str, problem: str) -> None:
        """Note why a film could not be indexed."""
        with self._changing() as base:
            base.execute(
                "UPDATE films SET problem = ? WHERE fingerprint = ?", (problem, fingerprint)
            )

    def complete(self, fingerprint: str, identity: str) -> None:
        """Note that every part of a film is indexed, under settings with this identity."""
        with self._changing() as base:
            base.execute(
                "UPDATE films SET complete = ?, problem = '' WHERE fingerprint = ?",
                (identity, fingerprint),
            )

    def forget_file(self, path: Path) -> None:
        """Forget one place of a film."""
        with self._changing() as base:
            base.execute("DELETE FROM files WHERE path = ?", (str(path),))

    def remove(self, fingerprint: str) -> None:
        """Take a film out of the library; its file and its layers stay."""
        with self._changing() as base:
            for table in ("films", "files", "tags"):
                base.execute(f"DELETE FROM {table} WHERE fingerprint = ?", (fingerprint,))

    def folders(self) -> list[Path]:
        """The folders that are watched."""
        with self._open() as base:
            return [Path(path) for (path,) in base.execute("SELECT path FROM folders ORDER BY 1")]

    def watch(self, folders: Iterable[Path]) -> None:
        """Remember folders to be watched."""
        with self._changing() as base:
            rows = [(str(folder),) for folder in folders]
            base.executemany("INSERT OR IGNORE INTO folders VALUES (?)", rows)

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that holds the write lock from the start, so that it never has to retry."""
        with self._open() as base:
            base.execute("BEGIN IMMEDIATE")
            try:
                yield base
            except BaseException:
                base.execute("ROLLBACK")
                raise
            base.execute("COMMIT")

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        private_folder(self.folder)
        try:
            # a connection per use is cheap, and safe with threads and forks
            with closing(sqlite3.connect(self._path, timeout=60, isolation_level=None)) as base:
                prepare(base, _SCHEMA, _MADE)
                yield base
        except sqlite3.DatabaseError as error:
            if type(error) is not sqlite3.DatabaseError:
                raise  # a lock or a full disk: the file itself is fine
            raise RunError(
                f"{self._path}: the catalogue is damaged ({error}); move it away and add the "
                "films again: their layers are kept"
            ) from error


def prepare(base: sqlite3.Connection, schema: str, version: int) -> None:
    """Create the tables of a database unless they are there; readers never wait for a writer."""
    if base.execute("PRAGMA user_version").fetchone()[0] < version:
        base.execute("PRAGMA journal_mode = WAL")
        # one transaction: if several processes find no tables, one creates them
        base.executescript(f"BEGIN IMMEDIATE; {schema} PRAGMA user_version = {version}; COMMIT;")
    base.execute("PRAGMA synchronous = NORMAL")


def _add_tags(
    base: sqlite3.Connection, fingerprint: str, tags: Iterable[str], *, given: bool
) -> None:
    rows = [(fingerprint, tag.strip().casefold(), given) for tag in tags if tag.strip()]
    base.executemany(
        "INSERT INTO tags VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET given = max(given, ?3)", rows
    )


def _grouped(base: sqlite3.Connection, query: str, values: Sequence[str]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for key, value in base.execute(query, values):
        groups.setdefault(key, []).append(value)
    return groups


def _entry(
    row: tuple[str, str, float, str, str, float, str, str], paths: list[str], tags: list[str]
) -> Entry:
    fingerprint, name, duration, date, place, added, *state = row
    places = tuple(map(Path, paths))
    return Entry(fingerprint, name, duration, places, date, place, tuple(tags), added, *state)
