"""Indexing a long film: longtake beside a naive script and an earlier checkout.

    python benchmarks/index.py CLIP … [--minutes 60] [--before CHECKOUT] [--sides naive before now]

Joins the clips, again and again, into one 720p film of the given length (``joined_film.py``). Every
side indexes that film in processes of its own. The tables show wall time, CPU time and peak memory,
and how many known phrases, on-screen words and pictures each side finds (``index_truth.py``).
The film and the results stay in ``build/index``: what is finished is not run again, so that each
side can be run by a command of its own. ``--report`` prints what is known and runs nothing. Delete
a side's JSON file to measure it again.

This checkout indexes the film with one command, whose JSON has the cost of each part; the earlier
one runs part by part, so that a run that is killed goes on with the next part.

The naive script is what one would write in an afternoon (``naive_index.py``).
"""

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
from joined_film import Placed, distinct, join, timeline

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
        if self.name == "now":
            self._index_at_once(cache)
        else:
            for part in PARTS:
                self._index(part, cache)
        if not self.result["found"]:
            self.result["found"] = stored(cache) | {"pictures": self._searched(cache)}
            self._keep()

    def _keep(self) -> None:
        self._kept.write_text(json.dumps(self.result))

    def _naive(self) -> None:
        script = str(Path(__file__).with_name("naive_index.py"))
        said, cost = measured([sys.executable, script, str(self.film), *self.queries])
        self.result = json.loads(said)
        self.result["costs"]["all at once"] = cost
        self._keep()

    def _index_at_once(self, cache: Path) -> None:
        if self.result["costs"]:
            return
        said, cost = longtake(self.root, cache, "index", str(self.film), "--json")
        layers = {layer["name"]: layer for layer in json.loads(said)["films"][0]["layers"]}
        for part in PARTS:
            self.result["costs"][part] = {"seconds": layers[part]["seconds"]}
        self.result["costs"]["all at once"] = cost
        self._keep()

    def _index(self, part: str, cache: Path) -> None:
        if part not in self.result["costs"]:
            _, cost = longtake(self.root, cache, "index", str(self.film), "--only", part)
            self.result["costs"][part] = cost
            self._keep()

    def costs(self) -> dict[str, dict[str, float]]:
        """What each part costs for the whole film, and their sum."""
        known: dict[str, dict[str, float]] = self.result["costs"]
        table = {part: known[part] for part in PARTS if part in known}
        units = set.intersection(*map(set, table.values())) if table else set()
        together = {unit: sum(cost[unit] for cost in table.values()) for unit in units}
        table["sum of the parts"] = together
        if "all at once" in known:
            table["all at once"] = known["all at once"]
        return table

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
    print(f"\n{minutes:.1f} minutes of film, {len(placed)} clips, {threads} cores;", end=" ")
    print(f"{distinct(placed) / 60:.1f} minutes are distinct\n")
    print("| side | part | wall s | CPU s | CPU s per minute of film | peak MB |")
    print("|---|---|---|---|---|---|")
    for side in sides:
        for part, cost in side.costs().items():
            print(_row(side, part, cost, minutes))
    print("\n| side | spoken phrases | on-screen words | pictures in the first 5 | missed |")
    print("|---|---|---|---|---|")
    for side in sides:
        print(_found(side, placed))


def _row(side: Side, part: str, cost: dict[str, float], minutes: float) -> str:
    peak = f"{cost['megabytes']:.0f}" if "megabytes" in cost else ""
    # parts that are indexed together share a process
    cpu = f"{cost['cpu']:.0f} | {cost['cpu'] / minutes:.1f}" if "cpu" in cost else " | "
    figures = f"{cost['seconds']:.0f} | {cpu}"
    return f"| {side.name} | {part} | {figures} | {peak} |"


def _found(side: Side, placed: Sequence[Placed]) -> str:
    if not side.result["found"]:
        return f"| {side.name} | not finished | | | |"
    found = index_truth.recall(side.result["found"], placed)
    cells = [f"{right} of {wanted}" for right, wanted, _ in found.values()]
    missed = ", ".join(text for *_, texts in found.values() for text in texts)
    return f"| {side.name} | {' | '.join(cells)} | {missed or 'none'} |"


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
