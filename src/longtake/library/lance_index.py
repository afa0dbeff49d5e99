"""The index in LanceDB, for libraries that outgrow the embedded one (extra ``library``).

::

    segments    one row per segment: words, two vectors, the film and the number of its writing
    films       the number under which the current rows of a film were written

Rows are added under a new number first; the film's record then switches to it in one commit, and
the old rows are deleted. So a reader sees all of a film or nothing, and rows that a killed writer
left are ignored until the film is written again.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock

from longtake.errors import MissingExtra
from longtake.index.store import private_folder
from longtake.library.segments import (
    KINDS,
    WORDED,
    FilmRows,
    IndexedFilm,
    RowHit,
    StoredRow,
    Vectors,
    matrix,
    stored_lines,
)
from longtake.types import Segment

PROBES, REFINE = 160, 2
"""Partitions of some 4,000 rows that are looked into, and how many times as many rows are compared
exactly. At a million rows this finds all of the ten nearest; half as many partitions, 94 %."""
TRAINED_ON, ROUNDS = 64, 20
"""Vectors per partition and iterations by which the partitions are made."""
PLACES = 2**20
"""Most rows of one film; a row's number is that of its writing times this, plus its place."""


class LanceIndex:
    """Needs the extra ``library``; built for millions of segments."""

    name = "lancedb"

    # with fewer rows than ``ann_from`` all vectors are compared, which is exact
    def __init__(self, folder: Path, dims: dict[str, int], *, ann_from: float = 50_000) -> None:
        self.folder = private_folder(folder)
        self._dims, self._ann_from = dims, ann_from
        self._lock = FileLock(folder / "write.lock", mode=0o600)
        self._read: dict[str, tuple[int, Any]] = {}
        """What was read of a table, with its version then: reading it takes as long as a search."""

    def replace(self, films: Sequence[FilmRows]) -> None:
        """Write the rows of some films in place of those they had."""
        with self._lock:
            known = self._current()
            number = 1 + max((entry["number"] for entry in known.values()), default=0)
            numbers = {each.film: number + place for place, each in enumerate(films)}
            # one commit for all of them: Lance keeps a version for every commit
            rows = [row for each in films for row in each.rows]
            if rows:
                self._segments.add(self._table(films, numbers))
            entries = [
                {
                    "film": each.film,
                    "number": numbers[each.film],
                    "parts": json.dumps(dict(each.parts), sort_keys=True),
                    "rows": len(each.rows),
                }
                for each in films
            ]
            merge = self._films.merge_insert("film")
            merge.when_matched_update_all().when_not_matched_insert_all().execute(entries)
            replaced = [known[each.film]["number"] for each in films if each.film in known]
            self._delete(replaced)

    def remove(self, films: Collection[str]) -> None:
        """Remove films."""
        with self._lock:
            known = self._current()
            gone = [film for film in films if film in known]
            if gone:
                self._films.delete(f"film IN ({_quoted(gone)})")
                self._delete([known[film]["number"] for film in gone])

    def films(self) -> dict[str, IndexedFilm]:
        """The films in the index."""
        return {
            film: IndexedFilm(json.loads(entry["parts"]), entry["rows"])
            for film, entry in self._current().items()
        }

    def words(
        self, text: str, source: str, limit: int, films: Collection[str] | None = None
    ) -> list[RowHit]:
        """Rows in which words of a text occur in one source, best first, by BM25."""
        query = self._segments.search(text, query_type="fts", fts_columns=source)
        return self._hits(query, "_score", limit, films)

    def nearest(
        self, vector: Vectors, kind: str, limit: int, films: Collection[str] | None = None
    ) -> list[RowHit]:
        """Rows whose vector has the largest cosine with a unit vector, best first."""
        query = self._segments.search(np.asarray(vector, np.float32), vector_column_name=kind)
        query = query.distance_type("cosine")
        if self._approximate():
            query = query.nprobes(PROBES).refine_factor(REFINE)
        hits = self._hits(query, "_distance", limit, films)
        return [RowHit(hit.row, 1 - hit.score) for hit in hits]

    def fetch(self, rows: Sequence[int]) -> list[StoredRow]:
        """Rows by number, in the given order; rows that are gone are left out."""
        if not rows:
            return []
        listed = ", ".join(str(int(row)) for row in rows)
        columns = ["row", "film", "start", "end", *WORDED, "times", "prints"]
        query = self._segments.search().where(f"row IN ({listed})").select(columns)
        stored = {each["row"]: _stored(each) for each in query.limit(len(rows)).to_list()}
        return [stored[row] for row in rows if row in stored]

    def dead(self) -> float:
        """The share of rows that the indexes lack; Lance drops rows that are gone by itself."""
        count = self._segments.count_rows()
        known = {index.name: index for index in self._segments.list_indices()}
        if not count or "row_idx" not in known:
            return float(count > 0)
        return float(known["row_idx"].num_unindexed_rows / count)

    def compact(self) -> None:
        """Merge the small files of many commits, and bring the indexes up to date."""
        with self._lock:
            known = {index.name for index in self._segments.list_indices()}
            if self._segments.count_rows() >= self._ann_from:
                for kind in KINDS:
                    if f"{kind}_idx" not in known:
                        self._segments.create_index(kind, config=_partitions())
            if "row_idx" not in known:
                self._segments.create_index("row", config=_index_kinds().BTree())
            self._segments.optimize()

    def close(self) -> None:
        """Release files; the index may be used again afterwards."""
        for opened in ("_base", "_segments", "_films"):
            self.__dict__.pop(opened, None)
        self._read.clear()

    def _hits(
        self, query: Any, score: str, limit: int, films: Collection[str] | None
    ) -> list[RowHit]:
        current = self._current()
        if films is not None:
            current = {film: current[film] for film in films if film in current}
            if not current:
                return []
            query = query.where(f"film IN ({_quoted(current)})", prefilter=True)
        # twice as many, to make up for rows that are gone
        closest = query.select(["row", score]).limit(limit * 2).to_list()
        numbers = {entry["number"] for entry in current.values()}
        hits = [
            RowHit(each["row"], each[score]) for each in closest if each["row"] // PLACES in numbers
        ]
        return hits[:limit]

    def _current(self) -> dict[str, dict[str, Any]]:
        version = self._films.version
        if self._read.get("films", (None,))[0] != version:
            entries = {entry["film"]: entry for entry in self._films.search().to_list()}
            self._read["films"] = (version, entries)
        current: dict[str, dict[str, Any]] = self._read["films"][1]
        return current

    def _delete(self, numbers: Sequence[int]) -> None:
        if numbers:
            self._segments.delete(f"number IN ({', '.join(map(str, numbers))})")

    def _approximate(self) -> bool:
        version = self._segments.version
        if self._read.get("indexes", (None,))[0] != version:
            names = {index.name for index in self._segments.list_indices()}
            self._read["indexes"] = (version, names)
        return "picture_idx" in self._read["indexes"][1]

    def _table(self, films: Sequence[FilmRows], numbers: dict[str, int]) -> Any:
        pa = _arrow()
        rows = [(each.film, place, row) for each in films for place, row in enumerate(each.rows)]
        plain = [row for _, _, row in rows]
        owners = [numbers[film] for film, _, _ in rows]
        columns: dict[str, Any] = {
            "row": [numbers[film] * PLACES + place for film, place, _ in rows],
            "film": [film for film, _, _ in rows],
            "number": owners,
            "start": [row.segment.start for row in plain],
            "end": [row.segment.end for row in plain],
            **{source: [row.text(source) for row in plain] for source in WORDED},
            "times": [row.times for row in plain],
            "prints": [row.prints for row in plain],
        }
        for kind in KINDS:
            flat = pa.array(matrix(plain, kind, self._dims[kind]).reshape(-1))
            columns[kind] = pa.FixedSizeListArray.from_arrays(flat, self._dims[kind])
        return pa.table(columns, schema=self._schema())

    def _schema(self) -> Any:
        pa = _arrow()
        texts = [(name, pa.string()) for name in (*WORDED, "times")]
        vectors = [(kind, pa.list_(pa.float32(), self._dims[kind])) for kind in KINDS]
        return pa.schema(
            [
                ("row", pa.int64()),
                ("film", pa.string()),
                ("number", pa.int64()),
                ("start", pa.float64()),
                ("end", pa.float64()),
                *texts,
                ("prints", pa.binary()),
                *vectors,
            ]
        )

    @cached_property
    def _base(self) -> Any:
        try:
            import lancedb  # late: an optional package, and slow to import
        except ImportError as error:
            raise MissingExtra("library", "an index in LanceDB") from error
        return lancedb.connect(self.folder, read_consistency_interval=_always())

    @cached_property
    def _segments(self) -> Any:
        return self._opened("segments", self._schema(), WORDED)

    @cached_property
    def _films(self) -> Any:
        pa = _arrow()
        columns = [("film", pa.string()), ("number", pa.int64())]
        schema = pa.schema([*columns, ("parts", pa.string()), ("rows", pa.int64())])
        return self._opened("films", schema, ())

    def _opened(self, name: str, schema: Any, worded: Sequence[str]) -> Any:
        base = self._base
        with self._lock:  # two processes must not both create it
            table = base.create_table(name, schema=schema, exist_ok=True)
            known = {index.name for index in table.list_indices()}
            for source in worded:
                if f"{source}_idx" not in known:
                    table.create_index(source, config=_index_kinds().FTS(stem=True))
            return table


def _always() -> Any:
    """Other processes write too, so every read looks for the newest version."""
    from datetime import timedelta

    return timedelta(0)


def _index_kinds() -> Any:
    from lancedb import index  # the tables are open, so it is installed

    return index


def _partitions() -> Any:
    # a byte per number: product quantization is coarser, and found half of the ten nearest, since
    # a text is about as far from every picture
    return _index_kinds().IvfSq(
        distance_type="cosine", sample_rate=TRAINED_ON, max_iterations=ROUNDS
    )


def _arrow() -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise MissingExtra("library", "an index in LanceDB") from error
    return pyarrow


def _quoted(texts: Collection[str]) -> str:
    return ", ".join("'" + text.replace("'", "''") + "'" for text in texts)


def _stored(row: dict[str, Any]) -> StoredRow:
    segment = Segment(row["start"], row["end"])
    texts = {source: row[source] for source in WORDED}
    lines = stored_lines(json.loads(row["times"]), texts, segment)
    return StoredRow(row["row"], row["film"], segment, lines, row["prints"])
