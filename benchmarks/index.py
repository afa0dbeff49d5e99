"""Indexing a long film: longtake beside a naive script and an earlier checkout.

    python benchmarks/index.py CLIP … [--minutes 60] [--before CHECKOUT] [--sides naive before now]

Joins the clips, again and again, into one 720p film of the given length (``joined_film.py``). Every
side indexes that film in processes of its own. The tables show wall time, CPU time and peak memory,
and how many known phrases, on-screen words and pictures each side finds (``index_truth.py``).
The film and the results stay in ``build/index``: what is finished is not run again, so that each
side can be run by a command of its own. ``--report`` prints what is known and runs nothing. Delete
a side's JSON file to measure it again.

This checkout indexes the film with one command, whose JSON has the seconds of each part. The
earlier one is run part by part.

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

from longtake_bench.report import table

ROOT = Path(__file__).parent.parent
WORK = ROOT / "build" / "index"
PARTS = ("frames", "speech", "onscreen")


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


@dataclass(frozen=True)
class Side:
    """One way to index the film; its costs by part and what it found, once it was run."""

    name: str
    costs: dict[str, dict[str, float]]
    found: dict[str, Any]


def measured_side(
    name: str, film: Path, queries: Sequence[str], root: Path, *, report: bool
) -> Side:
    """A side as it was measured before, or is now; ``root`` is the checkout that is run."""
    kept = WORK / f"{film.stem}-{name}.json"
    if kept.exists():
        return Side(name, **json.loads(kept.read_text()))
    if report:
        return Side(name, {}, {})
    if name == "naive":
        script = str(Path(__file__).with_name("naive_index.py"))
        output, cost = measured([sys.executable, script, str(film), *queries])
        side = Side(name, **json.loads(output))
        side.costs["all at once"] = cost
    else:
        cache = WORK / f"cache-{film.stem}-{name}"
        shutil.rmtree(cache, ignore_errors=True)
        costs = index_at_once(root, cache, film) if name == "now" else {}
        for part in () if name == "now" else PARTS:
            _, costs[part] = longtake(root, cache, "index", str(film), "--only", part)
        side = Side(
            name, costs, {**stored(cache), "pictures": searched(root, cache, film, queries)}
        )
    kept.write_text(json.dumps({"costs": side.costs, "found": side.found}))
    return side


def index_at_once(root: Path, cache: Path, film: Path) -> dict[str, dict[str, float]]:
    """The costs of one command, which states the seconds of each part."""
    output, cost = longtake(root, cache, "index", str(film), "--json")
    layers = {layer["name"]: layer for layer in json.loads(output)["films"][0]["layers"]}
    costs = {part: {"seconds": layers[part]["seconds"]} for part in PARTS}
    return {**costs, "all at once": cost}


def searched(root: Path, cache: Path, film: Path, queries: Sequence[str]) -> dict[str, list[float]]:
    """The moments of each picture that is searched for."""
    times = {}
    for query in queries:
        output, _ = longtake(root, cache, "search", str(film), query, "--json")
        hits = json.loads(output)["films"][0]["hits"]
        times[query] = [hit["time"] for hit in hits if "image" in hit["sources"]]
    return times


def with_sum(costs: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    """The costs of each part, their sum, and the cost of all parts at once."""
    parts = {part: costs[part] for part in PARTS if part in costs}
    units = set.intersection(*map(set, parts.values())) if parts else set()
    total = {unit: sum(cost[unit] for cost in parts.values()) for unit in units}
    return {**parts, "sum of the parts": total, **costs}


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


def report(sides: Sequence[Side], placed: Sequence[Placed], cores: int) -> None:
    """Print what each side cost and found."""
    minutes = placed[-1].end / 60
    print(f"\n{minutes:.1f} minutes of film, {len(placed)} clips, {cores} cores;", end=" ")
    print(f"{distinct(placed) / 60:.1f} minutes are distinct\n")
    costs, finds = [], []
    for side in sides:
        if not side.found:
            finds.append([side.name, "not finished", "", "", ""])
            continue
        for part, cost in with_sum(side.costs).items():
            # parts that are indexed together share a process
            cpu = (
                [f"{cost['cpu']:.0f}", f"{cost['cpu'] / minutes:.1f}"]
                if "cpu" in cost
                else ["", ""]
            )
            peak = f"{cost['megabytes']:.0f}" if "megabytes" in cost else ""
            costs.append([side.name, part, f"{cost['seconds']:.0f}", *cpu, peak])
        found = index_truth.recall(side.found, placed)
        missed = ", ".join(text for *_, texts in found.values() for text in texts)
        counts = [f"{right} of {wanted}" for right, wanted, _ in found.values()]
        finds.append([side.name, *counts, missed or "none"])
    print(table(("side", "part", "wall s", "CPU s", "CPU s per minute of film", "peak MB"), costs))
    head = ("side", "spoken phrases", "on-screen words", "pictures in the first 5", "missed")
    print("\n" + table(head, finds))


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
        root = args.before if name == "before" else ROOT
        sides.append(measured_side(name, film, queries, root, report=args.report))
    report(sides, placed, len(os.sched_getaffinity(0)))


if __name__ == "__main__":
    main()
