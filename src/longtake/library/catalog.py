"""The catalogue of a library: its films with their paths and tags, and filters.

``tag=lecture and year>=2025`` is a filter (:func:`parse`). The catalogue is one SQLite file.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from longtake.errors import RunError
from longtake.index.store import private_folder
from longtake.index.text import damage_reported, prepare
from longtake.video.container import FileVersion


@dataclass(frozen=True)
class Entry:
    """A film of a library, identified by its content; there may be several copies."""

    fingerprint: str
    name: str
    """Its title, or the name of its file."""
    duration: float
    paths: tuple[Path, ...] = ()
    """Where it was last seen, most recent first."""
    date: str = ""
    """ISO date as precise as known: ``2025-03-14``, ``2025-03`` or ``2025``."""
    place: str = ""
    tags: tuple[str, ...] = ()
    added: float = 0.0
    """Unix time."""
    problem: str = ""
    """Why it could not be indexed, if so."""
    complete: str = ""
    """Hash of the settings with which it was completely indexed; empty if it was not."""

    @property
    def path(self) -> Path:
        """A path where the film exists, or else its last known path."""
        for path in self.paths:
            if path.exists():
                return path
        return self.paths[0] if self.paths else Path(self.name)

    @property
    def missing(self) -> bool:
        """Whether it exists at none of its paths."""
        return not any(path.exists() for path in self.paths)

    @property
    def year(self) -> int | None:
        """The year of its date."""
        return int(self.date[:4]) if self.date else None


@dataclass(frozen=True)
class Facts:
    """Facts about a film from its metadata, its name and its folders."""

    name: str
    duration: float
    date: str = ""
    place: str = ""
    tags: tuple[str, ...] = ()


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
REBUILD = "longtake library doctor --rebuild"
REBUILD_IT = f"rebuild it: {REBUILD}"
_FILM = "fingerprint, name, duration, date, place, added, problem, complete"


@dataclass(frozen=True)
class KnownFile:
    """A file as it was last seen."""

    fingerprint: str
    version: FileVersion


class FilmCatalog:
    """The films of a library, in one SQLite file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._path = folder / "library.db"

    def set_aside_if_damaged(self) -> Path | None:
        """Rename a damaged catalogue, so that a new one is created; return its new path."""
        try:
            with self._open() as base:
                (state,) = base.execute("PRAGMA quick_check(1)").fetchone()
            if state == "ok":
                return None
        except RunError:
            pass
        for suffix in ("-wal", "-shm"):
            # these belong to the damaged file
            self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)
        return self._path.rename(self._path.with_suffix(".damaged"))

    def entries(self, fingerprints: Collection[str] | None = None) -> list[Entry]:
        """Films sorted by name: all of them, or those with some fingerprints."""
        which, values = "", []
        if fingerprints is not None:
            which = "WHERE fingerprint IN (SELECT value FROM json_each(?))"
            values = [json.dumps(list(fingerprints))]
        paths: dict[str, list[Path]] = {}
        tags: dict[str, list[str]] = {}
        entries = []
        with self._open() as base:
            files = f"SELECT fingerprint, path FROM files {which} ORDER BY seen DESC, path"
            for film, path in base.execute(files, values):
                paths.setdefault(film, []).append(Path(path))
            for film, tag in base.execute(
                f"SELECT fingerprint, tag FROM tags {which} ORDER BY tag", values
            ):
                tags.setdefault(film, []).append(tag)
            films = f"SELECT {_FILM} FROM films {which} ORDER BY name, fingerprint"
            for film, name, duration, date, place, *rest in base.execute(films, values):
                where, words = tuple(paths.get(film, ())), tuple(tags.get(film, ()))
                entries.append(Entry(film, name, duration, where, date, place, words, *rest))
        return entries

    def count(self) -> int:
        """How many films there are."""
        with self._open() as base:
            return int(base.execute("SELECT count(*) FROM films").fetchone()[0])

    def entry(self, fingerprint: str) -> Entry | None:
        """One film; ``None`` if it is not in the library."""
        entries = self.entries([fingerprint])
        return entries[0] if entries else None

    def files(self) -> dict[Path, KnownFile]:
        """Every known file, by path."""
        with self._open() as base:
            rows = base.execute(
                "SELECT path, fingerprint, device, inode, size, modified FROM files"
            )
            return {Path(path): KnownFile(mark, FileVersion(*rest)) for path, mark, *rest in rows}

    def place(self, path: Path, fingerprint: str, version: FileVersion) -> str:
        """Record the path of a film.

        Returns the fingerprint of another film that was there before, if it has no other path.
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
        """Add a film or update its facts; the user's tags stay."""
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
        """Add the user's tags, which :meth:`describe` does not change."""
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
        """Record why a film could not be indexed."""
        with self._changing() as base:
            base.execute(
                "UPDATE films SET problem = ? WHERE fingerprint = ?", (problem, fingerprint)
            )

    def complete(self, fingerprint: str, identity: str) -> None:
        """Record that a film is completely indexed with settings that have this hash."""
        with self._changing() as base:
            base.execute(
                "UPDATE films SET complete = ?, problem = '' WHERE fingerprint = ?",
                (identity, fingerprint),
            )

    def forget_file(self, path: Path) -> None:
        """Remove a path of a film."""
        with self._changing() as base:
            base.execute("DELETE FROM files WHERE path = ?", (str(path),))

    def remove(self, fingerprint: str) -> None:
        """Remove a film; its file and its layers stay."""
        with self._changing() as base:
            for table in ("films", "files", "tags"):
                base.execute(f"DELETE FROM {table} WHERE fingerprint = ?", (fingerprint,))

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that locks the file from the start, so that it never fails halfway."""
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
        # a connection per use is safe with threads and forks
        with (
            damage_reported(self._path, REBUILD_IT),
            closing(sqlite3.connect(self._path, timeout=60, isolation_level=None)) as base,
        ):
            prepare_shared(base, _SCHEMA)
            yield base


def damaged(file: Path, why: str) -> RunError:
    """The error for a damaged file of a library."""
    return RunError(f"{file}: damaged ({why}); {REBUILD_IT}")


def prepare_shared(base: sqlite3.Connection, schema: str) -> None:
    """Create the tables of a database if missing; with WAL, readers never wait for a writer."""
    while base.execute("PRAGMA user_version").fetchone()[0] < 1:
        try:
            base.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise
            # this change fails at once while another process creates the tables; a write waits
            base.executescript("BEGIN IMMEDIATE; COMMIT;")
        else:
            prepare(base, schema, 1)
    base.execute("PRAGMA synchronous = NORMAL")


def _add_tags(
    base: sqlite3.Connection, fingerprint: str, tags: Iterable[str], *, given: bool
) -> None:
    rows = [(fingerprint, tag.strip().casefold(), given) for tag in tags if tag.strip()]
    base.executemany(
        "INSERT INTO tags VALUES (?, ?, ?) "
        "ON CONFLICT DO UPDATE SET given = max(given, excluded.given)",
        rows,
    )


def matches(entry: Entry, text: str) -> bool:
    """Whether a film's name, one of its paths or a tag contains a text, whatever its case."""
    wanted = text.strip().casefold()
    return any(
        wanted in each.casefold() for each in (entry.name, *map(str, entry.paths), *entry.tags)
    )
