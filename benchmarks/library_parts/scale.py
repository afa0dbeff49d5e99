"""Adding thousands of films, and searching them: rate, latency, recall, memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from library_parts.films import (
    DIMS,
    ENCODER,
    SCRIPT,
    fill,
    lab_library,
    memory,
    milliseconds,
    queries,
    tell,
)
from longtake.library import Library
from longtake.library.embedded import EmbeddedIndex
from longtake.library.searching import Found, make_query, search

QUERIES = 200


def scale(args) -> None:
    library = lab_library(args.folder)
    have = len(library.index.films())
    until = min(args.films, have + args.most)
    began = time.perf_counter()
    fill(library, range(have, until))
    if until > have:
        rate = (until - have) / (time.perf_counter() - began)
        tell(part="scale", added=until - have, films=until, films_per_s=round(rate, 1), **memory())
    if until == args.films:
        measure(library, args.folder, args.films)


def measure(library: Library, folder: Path, films: int) -> None:
    """Search as often as it takes, and beside it with every word, however common."""
    texts = queries(QUERIES, films)
    entries = {entry.fingerprint: entry for entry in library.catalogue.entries()}
    segments = sum(holding.rows for holding in library.index.films().values())
    first = subprocess.run(
        [sys.executable, SCRIPT, "cold", "--folder", folder],
        capture_output=True,
        text=True,
        check=True,
    )
    library.search(texts[0])
    exact = EmbeddedIndex(library.index.folder, DIMS, common=float("inf"))
    took, worked, recalls = [], [], []
    for text in texts:
        began, busy = time.perf_counter(), time.process_time()
        found = library.search(text)
        took.append(time.perf_counter() - began)
        worked.append(time.process_time() - busy)
        wanted = top(search(exact, make_query(text, ENCODER, ENCODER), entries, moments=3))
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
