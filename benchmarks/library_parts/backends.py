"""The embedded index beside LanceDB, at several sizes."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import replace

import numpy as np

from library_parts.films import DIMS, ENCODER, lab_rows, memory, milliseconds, queries, tell
from longtake.library import Entry
from longtake.library.fts_index import EmbeddedIndex
from longtake.library.lance_index import LanceIndex
from longtake.library.search import LibraryQuery, make_query, search
from longtake.library.segments import FilmRows, RowHit, SegmentIndex, Vectors

SCRIPTS = 200
"""Lab films whose rows are repeated, with noise."""
SEGMENTS = 400
"""Of one film: a little more than an hour."""
BATCH = 50
"""Films written at once."""
NOISE = 0.4


def million(args) -> None:
    """Both backends on the same rows up to a million, searched in turn at each size.

    What the folder holds already is kept, so that a long run can be made in pieces.
    """
    indexes: dict[str, SegmentIndex] = {
        "embedded": EmbeddedIndex(args.folder / "embedded", DIMS),
        "lancedb": LanceIndex(args.folder / "lance", DIMS),
    }
    made = Noisy()
    for size in args.sizes:
        compare(indexes, size, write(indexes, made, size))


def write(indexes: dict[str, SegmentIndex], made: Noisy, size: int) -> dict[str, float | None]:
    """Write what is missing; gives rows a second by backend, or nothing where none was missing."""
    held = {name: index.films() for name, index in indexes.items()}
    seconds, written = dict.fromkeys(indexes, 0.0), dict.fromkeys(indexes, 0)
    for start in range(0, size // SEGMENTS, BATCH):
        numbers = range(start, min(start + BATCH, size // SEGMENTS))
        wanted = {f"film{number:06d}": number for number in numbers}
        if all(film in films for films in held.values() for film in wanted):
            continue
        # made once for both: that takes as long as writing them
        batch = [made.film(number) for number in wanted.values()]
        for name, index in indexes.items():
            missing = [film for film in batch if film.film not in held[name]]
            began = time.perf_counter()
            index.replace(missing)
            seconds[name] += time.perf_counter() - began
            written[name] += len(missing) * SEGMENTS
    return {
        name: round(written[name] / seconds[name]) if written[name] else None for name in indexes
    }


class Noisy:
    """Rows of lab films with noise on their vectors, so that no two are the same."""

    def __init__(self) -> None:
        rows = [row for seed in range(SCRIPTS) for row in lab_rows(seed)]
        self.base = [row for row in rows if row.picture is not None and row.meaning is not None]
        self.pictures = np.stack([row.picture for row in self.base])
        self.meanings = np.stack([row.meaning for row in self.base])

    def film(self, number: int) -> FilmRows:
        rng = np.random.default_rng([1, number])
        chosen = rng.integers(0, len(self.base), SEGMENTS)
        pictures = moved(self.pictures[chosen], rng)
        meanings = moved(self.meanings[chosen], rng)
        rows = [
            replace(self.base[place], prints=b"", picture=picture, meaning=meaning)
            for place, picture, meaning in zip(chosen, pictures, meanings, strict=True)
        ]
        return FilmRows(f"film{number:06d}", {}, rows)


def moved(vectors: Vectors, rng: np.random.Generator) -> Vectors:
    noise = rng.standard_normal(vectors.shape, np.float32)
    new = vectors + NOISE * noise / np.float32(vectors.shape[1] ** 0.5)
    return new / np.linalg.norm(new, axis=1, keepdims=True)


def compare(indexes: dict[str, SegmentIndex], size: int, rates: dict[str, float | None]) -> None:
    made = [make_query(text, ENCODER, ENCODER) for text in queries(30, SCRIPTS)]
    truth: list[list[RowHit]] | None = None
    for name, index in indexes.items():
        began = time.perf_counter()
        index.compact()
        compacted = time.perf_counter() - began
        took, worked = searched(index, made)
        near = [index.nearest(query.vectors["picture"], "picture", 10) for query in made]
        # the embedded index comes first and compares every vector
        truth = truth or near
        recalls = [recall(own, exact) for own, exact in zip(near, truth, strict=True)]
        tell(
            part="million",
            backend=name,
            segments=size,
            **milliseconds(took),
            **milliseconds(worked, "cpu_"),
            vector_recall_at_10=round(float(np.mean(recalls)), 3),
            rows_written_per_s=rates[name],
            compact_s=round(compacted, 1),
            disk_mb=sum(f.stat().st_size for f in index.folder.rglob("*") if f.is_file()) // 10**6,
            **memory(),
        )


def searched(index: SegmentIndex, made: list[LibraryQuery]) -> tuple[list[float], list[float]]:
    """Seconds and processor seconds of each search when it is made a second time."""
    for query in made:
        search(index, query, named)
    took, worked = [], []
    for query in made:
        began, busy = time.perf_counter(), time.process_time()
        search(index, query, named)
        took.append(time.perf_counter() - began)
        worked.append(time.process_time() - busy)
    return took, worked


def named(films: Collection[str]) -> dict[str, Entry]:
    return {film: Entry(film, film, 1.0) for film in films}


def recall(hits: list[RowHit], exact: list[RowHit]) -> float:
    """The share of hits that are as near as the exact ones; row numbers differ by backend."""
    bound = exact[-1].score - 1e-5
    return sum(hit.score >= bound for hit in hits) / len(exact)
