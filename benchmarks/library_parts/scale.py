"""Adding thousands of films, and searching them: rate, latency, recall, memory."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from library_parts.films import (
    DIMS,
    MARK,
    SCRIPT,
    fill,
    lab_library,
    memory,
    milliseconds,
    queries,
    tell,
    write_files,
)
from longtake.algorithms.lexical import STOP
from longtake.lab.world import make_script
from longtake.library import Adder, Library
from longtake.library.embedded import GENERATION, EmbeddedIndex
from longtake.library.searching import Found
from longtake.library.segment_index import Hit

QUERIES = 200
WARM = 50
"""Other searches before those that are timed."""


def scale(args) -> None:
    library = lab_library(args.folder)
    have = sum(film.startswith(MARK) for film in library.index.films())
    until = min(args.films, have + args.most)
    began = time.perf_counter()
    fill(library, range(have, until))
    if until > have:
        rate = (until - have) / (time.perf_counter() - began)
        tell(part="scale", added=until - have, films=until, films_per_s=round(rate, 1), **memory())
    if until == args.films:
        if args.files:
            seeds = range(args.films, args.films + args.files)
            add_files(library, args.folder / "files", seeds)
        measure(library, args.folder, args.films)


def add_files(library: Library, folder: Path, seeds: range) -> None:
    """Real files beside the scripts: each must be found by a sign that it shows."""
    paths = write_files(folder, seeds)
    began = time.perf_counter()
    Adder(library).add(paths)
    seconds = time.perf_counter() - began
    found = 0
    for path, seed in zip(paths, seeds, strict=True):
        sign = make_script(seed, 1).readings()[0].text
        # some scripts have the same sign
        found += path in {film.entry.path for film in library.search(sign, films=50).films}
    tell(part="scale", files=len(paths), seconds=round(seconds, 1), found_by_a_sign=found)


def measure(library: Library, folder: Path, films: int) -> None:
    """Search, and beside it with the scores of SQLite's own full-text search."""
    texts = queries(QUERIES, films)
    segments = sum(holding.rows for holding in library.index.films().values())
    first = subprocess.run(
        [sys.executable, SCRIPT, "cold", "--folder", folder],
        capture_output=True,
        text=True,
        check=True,
    )
    for text in queries(WARM, films, seed=6):
        library.search(text)
    exact = lab_library(folder)
    vars(exact)["index"] = BySqlite(library.index.folder, DIMS)
    took, worked, recalls = [], [], []
    for text in texts:
        began, busy = time.perf_counter(), time.process_time()
        found = library.search(text)
        took.append(time.perf_counter() - began)
        worked.append(time.process_time() - busy)
        wanted = top(exact.search(text))
        recalls.append(len(set(top(found)) & set(wanted)) / max(1, len(wanted)))
    tell(
        part="scale",
        films=films,
        segments=segments,
        **milliseconds(took),
        **milliseconds(worked, "cpu_"),
        cold=json.loads(first.stdout),
        recall_at_10=round(float(np.mean(recalls)), 4),
        **memory(),
    )


class BySqlite(EmbeddedIndex):
    """Ranks words by FTS5's own BM25, over all films: slower, and exact."""

    def words(self, text: str, source: str, limit: int, *_: object) -> list[Hit]:
        found = re.findall(r"\w+", text.casefold())
        words = [word for word in found if word not in STOP] or found
        pattern = " OR ".join(f'"{word}"' for word in dict.fromkeys(words))
        table = f"{source}_words"
        query = (
            f"SELECT rowid, rank FROM {table} WHERE {table} MATCH ? ORDER BY rank, rowid LIMIT ?"
        )
        with self._reading() as base:
            first = self._written(base)[1] * GENERATION
            return [Hit(first + row, -rank) for row, rank in base.execute(query, (pattern, limit))]


def top(found: Found, count: int = 10) -> list[tuple[str, float]]:
    """The best moments of all films."""
    moments = [
        (moment.score, film.entry.fingerprint, moment.segment.start)
        for film in found.films
        for moment in film.moments
    ]
    return [(film, start) for _, film, start in sorted(moments, reverse=True)[:count]]


def cold(args) -> None:
    """The first search of a new process, with the library's files evicted from memory."""
    for file in (args.folder / "library").rglob("*"):
        if file.is_file():
            with file.open("rb") as handle:
                os.posix_fadvise(handle.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    library = lab_library(args.folder)
    began = time.perf_counter()
    library.search("the glass dragon")
    tell(first_search_s=round(time.perf_counter() - began, 3))
