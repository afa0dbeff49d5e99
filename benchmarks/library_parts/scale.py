"""Adding thousands of films, and searching them: rate, latency, recall, memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from library_parts.films import (
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
from longtake.lab.world import make_script
from longtake.library import Adder, Library

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
    """Latency of searches, warm and cold."""
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
    took, worked = [], []
    for text in texts:
        began, busy = time.perf_counter(), time.process_time()
        library.search(text)
        took.append(time.perf_counter() - began)
        worked.append(time.process_time() - busy)
    tell(
        part="scale",
        films=films,
        segments=segments,
        **milliseconds(took),
        **milliseconds(worked, "cpu_"),
        cold=json.loads(first.stdout),
        **memory(),
    )


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
