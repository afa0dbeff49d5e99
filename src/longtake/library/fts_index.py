"""The index across films: words in SQLite with FTS5, vectors in memory-mapped files, exact search.

::

    segments.db       rows with full-text search; a row's number is its place in the other files
    picture-1.f32     one vector per row, in order
    meaning-1.f32
    film-1.i32        the film of each row, -1 for rows that are gone
    write.lock        held by the one process that is writing

A writer appends vectors first and commits the rows last. What a killed writer appended is beyond
the committed rows, where no reader looks, and the next writer overwrites it. Compaction writes the
files of the next generation and commits the new row numbers together with it. Row numbers that
callers get contain the generation, so that an old number never stands for another row.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

from longtake.index.store import private_folder
from longtake.index.text import damage_reported
from longtake.library.catalog import REBUILD_IT, damaged, prepare_shared
from longtake.library.segments import (
    KINDS,
    WORDED,
    FilmRows,
    IndexedFilm,
    RowHit,
    StoredRow,
    Vectors,
    matrix,
    query_words,
    stored_lines,
)
from longtake.types import Segment

_SCHEMA = """
CREATE TABLE IF NOT EXISTS films (
    number INTEGER PRIMARY KEY AUTOINCREMENT, fingerprint TEXT NOT NULL UNIQUE,
    parts TEXT NOT NULL, rows INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS segments (
    id INTEGER PRIMARY KEY, film INTEGER NOT NULL, start REAL NOT NULL, end REAL NOT NULL,
    said TEXT NOT NULL, shown TEXT NOT NULL, described TEXT NOT NULL,
    times TEXT NOT NULL, prints BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS segments_by_film ON segments (film);
CREATE TABLE IF NOT EXISTS written (rows INTEGER NOT NULL, generation INTEGER NOT NULL);
INSERT INTO written SELECT 0, 1 WHERE NOT EXISTS (SELECT 1 FROM written);
"""
_WORDS = """
CREATE VIRTUAL TABLE IF NOT EXISTS {source}_words USING fts5 (
    {source}, content='segments', content_rowid='id',
    tokenize='porter unicode61 remove_diacritics 2'
);
CREATE TRIGGER IF NOT EXISTS {source}_added AFTER INSERT ON segments WHEN new.{source} != '' BEGIN
    INSERT INTO {source}_words (rowid, {source}) VALUES (new.id, new.{source});
END;
CREATE TRIGGER IF NOT EXISTS {source}_gone AFTER DELETE ON segments WHEN old.{source} != '' BEGIN
    INSERT INTO {source}_words ({source}_words, rowid, {source})
    VALUES ('delete', old.id, old.{source});
END;
"""
BLOCK = 65536
"""Rows compared at once, which bounds memory."""
GENERATION = 2**40
"""Callers get row numbers plus this times the generation."""


class SegmentIndex:
    """Rows of many films, found by words and by vectors.

    All methods may be called from several threads and, with the same folder, from several
    processes. A writer that is killed loses only the film it was writing. A reader sees all rows of
    a film or none.
    """

    def __init__(self, folder: Path, dims: dict[str, int]) -> None:
        self.folder = private_folder(folder)
        self._dims = dims
        self._local = threading.local()
        self._lock = FileLock(folder / "write.lock", mode=0o600)
        self._maps: dict[str, tuple[tuple[int, int], NDArray[Any]]] = {}

    def replace(self, films: Sequence[FilmRows]) -> None:
        """Replace the rows of some films."""
        with self._writing() as base:
            gone = self._drop(base, [each.film for each in films])
            first, generation = self._written(base)
            rows = [row for each in films for row in each.rows]
            numbers = [self._enter(base, each) for each in films]
            owners = np.repeat(np.array(numbers, np.int32), [len(each.rows) for each in films])
            # beyond the committed rows, where no reader looks
            for kind in KINDS:
                file = self._file(kind, generation)
                self._append(file, first, matrix(rows, kind, self._dims[kind]))
            self._append(self._file("film", generation), first, owners[:, None])
            values = [
                (
                    first + place + 1,
                    int(owners[place]),
                    row.segment.start,
                    row.segment.end,
                    row.said,
                    row.shown,
                    row.described,
                    row.times,
                    b"",  # versions before 0.3 kept prints of pictures there
                )
                for place, row in enumerate(rows)
            ]
            base.executemany("INSERT INTO segments VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
            base.execute("UPDATE written SET rows = ?", (first + len(rows),))
            base.execute("COMMIT")
            self._mark(gone, self._written(base)[1])

    def remove(self, films: Collection[str]) -> None:
        """Remove films."""
        with self._writing() as base:
            gone = self._drop(base, films)
            base.execute("COMMIT")
            self._mark(gone, self._written(base)[1])

    def films(self) -> dict[str, IndexedFilm]:
        """The films in the index."""
        with self._reading() as base:
            rows = base.execute("SELECT fingerprint, parts, rows FROM films")
            return {film: IndexedFilm(json.loads(parts), count) for film, parts, count in rows}

    def words(
        self, text: str, source: str, limit: int, films: Collection[str] | None = None
    ) -> list[RowHit]:
        """Rows that contain words of a text in one source, best first, by BM25."""
        table = f"{source}_words"
        # quoted, so that no word is an operator of FTS5's query language
        pattern = " OR ".join(f'"{word}"' for word in dict.fromkeys(query_words(text)))
        if not pattern:
            return []
        query = f"SELECT rowid, -bm25({table}) AS score FROM {table} WHERE {table} MATCH ?"
        given: list[str | int] = [pattern]
        with self._reading() as base:
            first = self._written(base)[1] * GENERATION
            if films is not None:
                of_films = "SELECT id FROM segments WHERE film IN (SELECT value FROM json_each(?))"
                query += f" AND rowid IN ({of_films})"
                given.append(json.dumps(self._numbers(base, films)))
            # ties go to the earlier row
            rows = base.execute(f"{query} ORDER BY score DESC, rowid LIMIT ?", (*given, limit))
            return [RowHit(first + row, score) for row, score in rows]

    def nearest(
        self, vector: Vectors, kind: str, limit: int, films: Collection[str] | None = None
    ) -> list[RowHit]:
        """Rows whose vectors have the largest cosine with a unit vector, best first."""
        with self._reading() as base:
            wanted = None if films is None else self._numbers(base, films)
            count, generation, vectors, owners = self._vectors(base, kind)
        best = np.zeros(0, np.int64)
        scores = np.zeros(0, np.float32)
        for start in range(0, count, BLOCK):
            block = np.asarray(vectors[start : start + BLOCK] @ vector)
            films_of_rows = owners[start : start + BLOCK]
            hidden = films_of_rows < 0 if wanted is None else ~np.isin(films_of_rows, wanted)
            # rows without a vector have zeros
            block = np.where(hidden | (block == 0), -np.inf, block)
            best = np.concatenate([best, np.arange(start, start + len(block))])
            scores = np.concatenate([scores, block])
            kept = _largest(scores, limit)
            best, scores = best[kept], scores[kept]
        first = generation * GENERATION + 1
        ranked = [(int(row), float(score)) for row, score in zip(best, scores, strict=True)]
        return [RowHit(first + row, score) for row, score in ranked if score > -np.inf]

    def fetch(self, rows: Sequence[int]) -> list[StoredRow]:
        """Rows by number, in the given order; missing rows are skipped."""
        columns = "id, fingerprint, start, end, said, shown, described, times"
        with self._reading() as base:
            first = self._written(base)[1] * GENERATION
            current = [row - first for row in rows if 0 < row - first < GENERATION]
            current_rows = base.execute(
                f"SELECT {columns} FROM segments JOIN films ON films.number = segments.film"
                " WHERE id IN (SELECT value FROM json_each(?))",
                (json.dumps(current),),
            )
            stored = {first + row[0]: _stored(first + row[0], row) for row in current_rows}
        return [stored[row] for row in rows if row in stored]

    def dead(self) -> float:
        """The share of deleted rows, which still take up space."""
        with self._reading() as base:
            written, _ = self._written(base)
            live = base.execute("SELECT coalesce(sum(rows), 0) FROM films").fetchone()[0]
        return 1 - live / written if written else 0.0

    def compact(self) -> None:
        """Free the space of deleted rows."""
        with self._writing() as base:
            count, old = self._written(base)
            rows = base.execute("SELECT id FROM segments ORDER BY id").fetchall()
            if len(rows) == count:
                # merges the full-text indexes of many writes; row numbers stay
                for source in WORDED:
                    base.execute(f"INSERT INTO {source}_words ({source}_words) VALUES ('optimize')")
                base.execute("COMMIT")
                return
            kept = np.array(rows, np.int64).reshape(-1)
            for what in ("film", *KINDS) if count else ():
                values = self._mapped(what, old, count)
                with self._file(what, old + 1).open("wb") as handle:
                    for start in range(0, len(kept), BLOCK):
                        handle.write(values[kept[start : start + BLOCK] - 1].tobytes())
            # in ascending order a new number is always free, since it is never above the old one
            numbered = [(new, int(row)) for new, row in enumerate(kept, start=1)]
            base.executemany("UPDATE segments SET id = ? WHERE id = ?", numbered)
            for source in WORDED:
                base.execute(f"INSERT INTO {source}_words ({source}_words) VALUES ('rebuild')")
            base.execute("UPDATE written SET rows = ?, generation = ?", (len(kept), old + 1))
            base.execute("COMMIT")
            for what in ("film", *KINDS):
                self._file(what, old).unlink(missing_ok=True)

    def close(self) -> None:
        """Close this thread's connection; the index can still be used afterwards."""
        self._maps.clear()
        base = self._local.__dict__.pop("base", None)
        if base is not None:
            base.close()

    def _drop(self, base: sqlite3.Connection, films: Collection[str]) -> list[int]:
        """Delete films and their rows; return the numbers of the rows."""
        numbers = json.dumps(self._numbers(base, films))
        which = "IN (SELECT value FROM json_each(?))"
        gone = base.execute(f"SELECT id FROM segments WHERE film {which}", (numbers,)).fetchall()
        base.execute(f"DELETE FROM segments WHERE film {which}", (numbers,))
        base.execute(f"DELETE FROM films WHERE number {which}", (numbers,))
        return [row for (row,) in gone]

    def _enter(self, base: sqlite3.Connection, film: FilmRows) -> int:
        values = (film.film, json.dumps(dict(film.parts), sort_keys=True), len(film.rows))
        insert = "INSERT INTO films (fingerprint, parts, rows) VALUES (?, ?, ?)"
        number = base.execute(insert, values).lastrowid
        assert number is not None
        return number

    def _append(self, file: Path, first: int, values: NDArray[Any]) -> None:
        """Write rows from ``first`` on, over what a killed writer may have left there."""
        with file.open("r+b" if file.exists() else "w+b") as handle:
            handle.truncate(first * values.dtype.itemsize * values.shape[1])
            handle.seek(0, 2)
            handle.write(values.tobytes())

    def _mark(self, gone: Sequence[int], generation: int) -> None:
        """Hide rows from the search by vectors."""
        if not gone:
            return
        with self._file("film", generation).open("r+b") as handle:
            for row in gone:
                handle.seek((row - 1) * 4)
                handle.write(np.int32(-1).tobytes())

    def _numbers(self, base: sqlite3.Connection, films: Collection[str]) -> list[int]:
        query = "SELECT number FROM films WHERE fingerprint IN (SELECT value FROM json_each(?))"
        return [number for (number,) in base.execute(query, (json.dumps(list(films)),))]

    @staticmethod
    def _written(base: sqlite3.Connection) -> tuple[int, int]:
        """The number of committed rows, and the generation of their files."""
        rows, generation = base.execute("SELECT rows, generation FROM written").fetchone()
        return rows, generation

    def _file(self, what: str, generation: int) -> Path:
        return self.folder / f"{what}-{generation}.{'i32' if what == 'film' else 'f32'}"

    def _vectors(
        self, base: sqlite3.Connection, kind: str
    ) -> tuple[int, int, NDArray[Any], NDArray[Any]]:
        """Number and generation of the rows, their vectors, and their films."""
        for _ in range(100):
            count, generation = self._written(base)
            if not count:
                return 0, generation, np.zeros((0, self._dims[kind])), np.zeros(0, np.int32)
            try:
                vectors = self._mapped(kind, generation, count)
                # a copy, since a writer may hide rows in the file meanwhile
                owners = np.array(self._mapped("film", generation, count)[:, 0])
            except FileNotFoundError:
                continue  # compacted since the generation was read
            # otherwise the rows of a film that was replaced meanwhile would be missing
            if self._written(base) == (count, generation):
                return count, generation, vectors, owners
        raise damaged(self._file(kind, generation), "missing or constantly rewritten")

    def _mapped(self, what: str, generation: int, count: int) -> NDArray[Any]:
        # kept, since mapping the pages of a file again takes as long as reading them
        known = self._maps.get(what)
        if known is not None and known[0] == (generation, count):
            return known[1]
        file = self._file(what, generation)
        kind, width = (np.int32, 1) if what == "film" else (np.float32, self._dims[what])
        try:
            mapped = np.memmap(file, kind, "r", shape=(count, width))
        except ValueError as error:
            raise damaged(file, str(error)) from error
        self._maps[what] = ((generation, count), mapped)
        return mapped

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._lock, self._reading() as base:
            base.execute("BEGIN IMMEDIATE")
            try:
                yield base
            except BaseException:
                if base.in_transaction:
                    base.execute("ROLLBACK")
                raise

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        file = self.folder / "segments.db"
        with damage_reported(file, REBUILD_IT):
            yield self._connected(file)

    def _connected(self, file: Path) -> sqlite3.Connection:
        """The connection of the thread, which keeps its page cache."""
        base: sqlite3.Connection | None = self._local.__dict__.get("base")
        # a rebuild, perhaps by another process, replaces the file
        if base is not None and self._local.inode != _inode(file):
            self.close()
            base = None
        if base is None:
            base = sqlite3.connect(file, timeout=60, isolation_level=None)
            words = "".join(_WORDS.format(source=source) for source in WORDED)
            prepare_shared(base, _SCHEMA + words)
            self._local.base, self._local.inode = base, _inode(file)
        return base


def _largest(scores: NDArray[np.float32], count: int) -> NDArray[np.int64]:
    """Indexes of the largest scores, best first; ties go to the earlier row."""
    if len(scores) > count:
        lowest = np.partition(scores, len(scores) - count)[len(scores) - count]
        above = np.flatnonzero(scores > lowest)
        level = np.flatnonzero(scores == lowest)[: count - len(above)]
        kept = np.sort(np.concatenate([above, level]))
    else:
        kept = np.arange(len(scores))
    return kept[np.argsort(-scores[kept], kind="stable")]


def _inode(file: Path) -> int:
    return file.stat().st_ino if file.exists() else 0


def _stored(number: int, row: tuple[Any, ...]) -> StoredRow:
    _, film, start, end, said, shown, described, times = row
    segment = Segment(start, end)
    texts = {"said": said, "shown": shown, "described": described}
    lines = stored_lines(json.loads(times), texts, segment)
    return StoredRow(number, film, segment, lines)
