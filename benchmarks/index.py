"""Indexing a long film: longtake beside a naive script and an earlier checkout.

    python benchmarks/index.py CLIP … [--minutes 60] [--before CHECKOUT] [--sides naive before now]

Joins the clips, again and again, into one 720p film of the given length (``joined_film.py``). Every
side indexes that film in processes of its own. The tables show wall time, CPU time and peak memory,
and how many known phrases, on-screen words and pictures each side finds (``index_truth.py``).
The film and the results stay in ``build/index``: parts that are finished are not run again, so that
a long run can be done in pieces. Delete a side's JSON file to measure it again.

The naive script is what one would write in an afternoon (``naive_index.py``).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import index_truth
from joined_film import Placed, join, timeline

ROOT = Path(__file__).parent.parent
WORK = ROOT / "build" / "index"
PARTS = ("frames", "speech", "onscreen")


# -- the sides


def measured(command: Sequence[str], **environment: str) -> tuple[str, dict[str, float]]:
    """Standard output of a command, and what it cost."""
    began = time.perf_counter()
    process = subprocess.Popen(
        command, env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{' '.join(command)}: exit status {status}")
    return output, {
        "seconds": time.perf_counter() - began,
        "cpu": usage.ru_utime + usage.ru_stime,
        "megabytes": usage.ru_maxrss / 1e3,
    }


@dataclass
class Side:
    """One way to index the film, and what is known of it so far."""

    name: str
    film: Path
    queries: Sequence[str]
    root: Path
    """The checkout; the naive script ignores it."""

    def __post_init__(self) -> None:
        self._kept = WORK / f"{self.film.stem}-{self.name}.json"
        self.result: dict[str, Any] = {"costs": {}, "found": {}}
        if self._kept.exists():
            self.result = json.loads(self._kept.read_text())

    def run(self) -> None:
        """Measure what was not measured before."""
        if self.name == "naive":
            if not self.result["found"]:
                self._naive()
            return
        cache = WORK / f"cache-{self.film.stem}-{self.name}"
        if not self.result["costs"]:
            shutil.rmtree(cache, ignore_errors=True)
        for part in PARTS:
            self._index(part, cache, "--only", part)
        if not self.result["found"]:
            self.result["found"] = stored(cache) | {"pictures": self._searched(cache)}
            self._keep()
        if self.name != "before":
            self._index("all at once", cache.with_name(f"{cache.name}-all"))

    def _keep(self) -> None:
        self._kept.write_text(json.dumps(self.result))

    def _naive(self) -> None:
        script = str(Path(__file__).with_name("naive_index.py"))
        said, cost = measured([sys.executable, script, str(self.film), *self.queries])
        self.result = json.loads(said)
        self.result["costs"]["all at once"] = cost
        self._keep()

    def _index(self, part: str, cache: Path, *options: str) -> None:
        if part not in self.result["costs"]:
            _, cost = longtake(self.root, cache, "index", str(self.film), *options)
            self.result["costs"][part] = cost
            self._keep()

    def _searched(self, cache: Path) -> dict[str, list[float]]:
        times = {}
        for query in self.queries:
            said, _ = longtake(self.root, cache, "search", str(self.film), query, "--json")
            hits = json.loads(said)["films"][0]["hits"]
            times[query] = [hit["time"] for hit in hits if "image" in hit["sources"]]
        return times


def longtake(root: Path, cache: Path, *arguments: str) -> tuple[str, dict[str, float]]:
    """Run a command of a checkout; what it prints and what it costs."""
    environment = {"PYTHONPATH": _path(root / "src"), "LONGTAKE_CACHE": str(cache)}
    return measured([sys.executable, "-m", "longtake", *arguments], **environment)


def _path(source: Path) -> str:
    """``PYTHONPATH`` with a checkout's package before everything else."""
    return os.pathsep.join(filter(None, [str(source), os.environ.get("PYTHONPATH", "")]))


def stored(cache: Path) -> dict[str, Any]:
    """The lines in a film's store, by layer."""
    lines: dict[str, Any] = {"speech": [], "onscreen": []}
    (database,) = (cache / "films").glob("*/text.db")
    rows = sqlite3.connect(database).execute("SELECT layer, start, end, text FROM lines")
    for layer, start, end, text in rows:
        if layer.split("-")[0] in lines:
            lines[layer.split("-")[0]].append((start, end, text))
    return lines


# -- the tables


def report(sides: Sequence[Side], placed: Sequence[Placed], threads: int) -> None:
    """Print what each side cost and found."""
    minutes = placed[-1].end / 60
    print(f"\n{minutes:.1f} minutes of film, {len(placed)} clips, {threads} cores\n")
    print("| side | part | wall s | CPU s | CPU s per minute of film | peak MB |")
    print("|---|---|---|---|---|---|")
    for side in sides:
        total = {"seconds": 0.0, "cpu": 0.0}
        for part, cost in side.result["costs"].items():
            print(_row(side.name, part, cost, minutes))
            for name in total:
                total[name] += cost[name] if part in PARTS else 0.0
        print(_row(side.name, "sum of the parts", total, minutes))
    print("\n| side | spoken phrases | on-screen words | pictures in the first 5 | missed |")
    print("|---|---|---|---|---|")
    for side in sides:
        if not side.result["found"]:
            print(f"| {side.name} | not finished | | | |")
            continue
        found = index_truth.recall(side.result["found"], placed)
        cells = [f"{right} of {wanted}" for right, wanted, _ in found.values()]
        missed = ", ".join(text for *_, texts in found.values() for text in texts)
        print(f"| {side.name} | {' | '.join(cells)} | {missed or 'none'} |")


def _row(side: str, part: str, cost: dict[str, float], minutes: float) -> str:
    peak = f"{cost['megabytes']:.0f}" if "megabytes" in cost else ""
    figures = f"{cost['seconds']:.0f} | {cost['cpu']:.0f} | {cost['cpu'] / minutes:.1f}"
    return f"| {side} | {part} | {figures} | {peak} |"


def main() -> None:
    """Make the film, run the sides, print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("clips", type=Path, nargs="+")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--before", type=Path, help="an earlier checkout")
    parser.add_argument("--sides", nargs="*", default=["naive", "before", "now"])
    parser.add_argument("--report", action="store_true", help="print what is known, run nothing")
    args = parser.parse_args()
    placed = timeline(args.clips, 60 * args.minutes)
    WORK.mkdir(parents=True, exist_ok=True)
    film = WORK / f"joined-{args.minutes:g}-{len(args.clips)}.mp4"
    if not film.exists() and not args.report:
        join(placed, film)
    names = [name for name in args.sides if name != "before" or args.before or args.report]
    queries = index_truth.queries(placed)
    sides = []
    for name in names:
        side = Side(name, film, queries, args.before if name == "before" else ROOT)
        if not args.report:
            side.run()
        sides.append(side)
    report(sides, placed, len(os.sched_getaffinity(0)))


if __name__ == "__main__":
    main()
