"""Processes that add and search one library, killed at random."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from dataclasses import replace

from filelock import FileLock, Timeout

from library_parts.films import (
    ENCODER,
    MARK,
    SCRIPT,
    enter,
    lab_library,
    lab_rows,
    queries,
    tell,
    write_files,
)
from longtake.config import CacheSettings, PerceptionSettings, Settings
from longtake.library import Adder, Library
from longtake.library.segment_index import FilmRows
from longtake.library.segments import rows_of

FIRST_FILE = 10_000
"""Seed of the first film that is a real file."""


def chaos(args) -> None:
    """Two processes add, one searches; one of them is killed at random, again and again."""
    rng = random.Random(3)
    given = ["--folder", args.folder, "--films", str(args.films), "--files", str(args.files)]
    write_files(args.folder / "files", range(FIRST_FILE, FIRST_FILE + args.files))

    def start(part: str):
        return subprocess.Popen([sys.executable, SCRIPT, part, *given], stderr=subprocess.DEVNULL)

    running = {"one": start("adder"), "two": start("adder"), "search": start("searcher")}
    parts = {"one": "adder", "two": "adder", "search": "searcher"}
    failures = 0
    for _ in range(args.kills):
        time.sleep(rng.uniform(0.3, 2.0))
        name = rng.choice(sorted(running))
        failures += _ended_badly(running[name])
        running[name].send_signal(signal.SIGKILL)
        running[name].wait()
        running[name] = start(parts[name])
    for name in ("one", "two"):
        failures += running[name].wait() != 0
    running["search"].terminate()
    running["search"].wait()
    judge(opened(args), args, failures)


def judge(library: Library, args, failures: int) -> None:
    """Is every film in the index, whole and once?"""
    held = library.index.films()
    expected = {f"{MARK}{seed:08d}": len(lab_rows(seed)) for seed in range(args.films)}
    files = [entry for entry in library.entries() if not entry.fingerprint.startswith(MARK)]
    for entry in files:
        material = library.material(library.footage(entry))
        expected[entry.fingerprint] = len(rows_of(material, library.sentences))
    rows = [hit.row for hit in library.index.nearest(ENCODER.texts(["x"])[0], "picture", 10**6)]
    tell(
        part="chaos",
        kills=args.kills,
        films=len(held),
        files=len(files),
        files_complete=sum(bool(entry.complete) for entry in files),
        lost=len(expected.keys() - held.keys()) + args.files - len(files),
        wrong_rows=sum(
            held[film].rows != count for film, count in expected.items() if film in held
        ),
        rows_twice=len(rows) - len(set(rows)),
        rows=len(library.index.fetch(rows)),
        rows_expected=sum(expected.values()),
        failures=failures,
    )


def opened(args) -> Library:
    """The library; its films have no speech, and their signs need not be read here."""
    perception = PerceptionSettings(reader=False, listener="none")
    cache = CacheSettings(folder=str(args.folder / "films"))
    settings = replace(Settings(), perception=perception, cache=cache)
    return lab_library(args.folder, settings=settings)


def _ended_badly(process) -> bool:
    return process.poll() not in (None, 0)


def adder(args) -> None:
    """Add what is missing: files as ``library add`` does, then scripts, film by film."""
    library = opened(args)
    if args.files:
        Adder(library).add([args.folder / "files"])
    locks = args.folder / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    for wait in (0, -1):
        for seed in range(args.films):
            try:
                with FileLock(locks / str(seed), timeout=wait):
                    entry = enter(library, seed)
                    if entry.fingerprint not in library.index.films():
                        library.index.replace([FilmRows(entry.fingerprint, {}, lab_rows(seed))])
            except Timeout:
                continue


def searcher(args) -> None:
    """Search until stopped; every film that is found must be whole."""
    library = opened(args)
    while True:
        for text in queries(20, args.films):
            library.search(text)
