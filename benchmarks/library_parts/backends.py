"""The embedded index beside LanceDB, at several sizes."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from library_parts.films import DIMS, ENCODER, lab_rows, memory, milliseconds, queries, tell
from longtake.library import Entry
from longtake.library.embedded import EmbeddedIndex
from longtake.library.lance import LanceIndex
from longtake.library.searching import Query, make_query, search
from longtake.library.segment_index import FilmRows, Hit, SegmentIndex
from longtake.library.segments import Row, Vectors

SCRIPTS = 200
"""Lab films whose rows are repeated, with noise."""
SEGMENTS = 400
"""Of one film: a little more than an hour."""
BATCH = 50
"""Films written at once."""
NOISE = 0.4


def million(args) -> None:
    """Both backends on the same rows up to a million, and both searched after each step."""
    indexes: dict[str, SegmentIndex] = {
        "embedded": EmbeddedIndex(args.folder / "embedded", DIMS),
        "lancedb": LanceIndex(args.folder / "lance", DIMS),
    }
    if args.only:
        indexes = {args.only: indexes[args.only]}
    made = Noisy()
    size = 0
    for goal in args.sizes:
        seconds = dict.fromkeys(indexes, 0.0)
        for films in made.films(size, goal):
            for name, index in indexes.items():
                began = time.perf_counter()
                index.replace(films)
                seconds[name] += time.perf_counter() - began
        size = goal
        compare(indexes, size, seconds)


class Noisy:
    """Rows of lab films with noise on their vectors, so that no two are the same."""

    def __init__(self) -> None:
        rows = [row for seed in range(SCRIPTS) for row in lab_rows(seed)]
        self.base = [row for row in rows if row.picture is not None and row.meaning is not None]
        self.pictures = np.stack([row.picture for row in self.base])
        self.meanings = np.stack([row.meaning for row in self.base])
        self.rng = np.random.default_rng(1)

    def films(self, size: int, goal: int) -> Iterator[list[FilmRows]]:
        """Films from one size of the index to another, in batches."""
        batch: list[FilmRows] = []
        while size < goal:
            count = min(SEGMENTS, goal - size)
            batch.append(FilmRows(f"film{size:08d}", {}, self.rows(count)))
            size += count
            if len(batch) == BATCH or size == goal:
                yield batch
                batch = []

    def rows(self, count: int) -> list[Row]:
        chosen = self.rng.integers(0, len(self.base), count)
        pictures, meanings = self.moved(self.pictures[chosen]), self.moved(self.meanings[chosen])
        return [
            replace(self.base[number], prints=b"", picture=picture, meaning=meaning)
            for number, picture, meaning in zip(chosen, pictures, meanings, strict=True)
        ]

    def moved(self, vectors: Vectors) -> Vectors:
        noise = self.rng.normal(size=vectors.shape).astype(np.float32)
        moved = vectors + NOISE * noise / np.sqrt(vectors.shape[1])
        return moved / np.linalg.norm(moved, axis=1, keepdims=True)


def compare(indexes: dict[str, SegmentIndex], size: int, seconds: dict[str, float]) -> None:
    made = [make_query(text, ENCODER, ENCODER) for text in queries(30, SCRIPTS)]
    entries = {film: Entry(film, film, 1.0) for film in next(iter(indexes.values())).films()}
    truth: list[list[Hit]] | None = None
    for name, index in indexes.items():
        began = time.perf_counter()
        index.compact()
        compacted = time.perf_counter() - began
        took, worked = searched(index, made, entries)
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
            write_s=round(seconds[name], 1),
            compact_s=round(compacted, 1),
            disk_mb=sum(f.stat().st_size for f in index.folder.rglob("*") if f.is_file()) // 10**6,
            **memory(),
        )


def searched(
    index: SegmentIndex, made: list[Query], entries: dict[str, Entry]
) -> tuple[list[float], list[float]]:
    """Seconds and processor seconds of each search, after three to warm up."""
    for query in made[:3]:
        search(index, query, entries)
    took, worked = [], []
    for query in made:
        began, busy = time.perf_counter(), time.process_time()
        search(index, query, entries)
        took.append(time.perf_counter() - began)
        worked.append(time.process_time() - busy)
    return took, worked


def recall(hits: list[Hit], exact: list[Hit]) -> float:
    """The share of hits that are as near as the exact ones; row numbers differ by backend."""
    bound = exact[-1].score - 1e-5
    return sum(hit.score >= bound for hit in hits) / len(exact)


def plot(args) -> None:
    """Draw the figures of ``million`` from the JSON lines in a file."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = [json.loads(line) for line in Path(args.figures).read_text().splitlines()]
    _, axes = pyplot.subplots(figsize=(6, 4))
    for backend, marker in (("embedded", "o"), ("lancedb", "s")):
        own = [row for row in rows if row.get("backend") == backend]
        points = sorted((row["segments"], row["p50_ms"], row["p95_ms"]) for row in own)
        sizes, p50, p95 = zip(*points, strict=True)
        (line,) = axes.plot(sizes, p50, marker=marker, label=f"{backend}, median")
        axes.plot(sizes, p95, "--", color=line.get_color(), label=f"{backend}, 95 %")
    axes.set(xscale="log", yscale="log", xlabel="segments", ylabel="ms per search")
    axes.legend()
    axes.grid(alpha=0.3)
    pyplot.savefig(args.out, bbox_inches="tight", dpi=120)
