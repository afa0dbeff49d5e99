"""What ``auto`` knows after so many seconds, beside the best single method: replayed, not timed.

    python benchmarks/auto_seconds.py --out build/auto --workers 16

A simulated model takes ``latency`` seconds for a call and ``seconds_per_token`` for each token of
its reply, whatever the machine. ``auto`` runs once under a limit on seconds that it never reaches,
which makes it choose stages as it does under any such limit. The leader after the last stage that
ends in time is its answer. Calls count one after the other, so ``auto`` gains nothing from those
that run in parallel. A single method counts as if it had no limit; the table tells whether it ends
in time. ``benchmarks/auto.py --parts seconds`` runs the same with models that really take their
time, for which the machine must be idle.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from auto_cells import METHODS, QUESTIONS, SECONDS, WORLDS, Bench, Cell, single

from longtake.evals.cascade import is_right
from longtake.evals.items import Item
from longtake.evals.markdown import table
from longtake.evals.runner import Scored
from longtake.evals.scoring import accuracy, paired
from longtake.lab.profile import LAB_2

UNHURRIED = 100_000
"""Seconds that no run reaches."""
MILLION = 1_000_000


def stage_seconds(stage: Mapping[str, Any]) -> float:
    """What the calls of a stage take; its price tells how much of its tokens is replies."""
    model = LAB_2.model
    dearer = (model.price_out - model.price_in) / MILLION
    replies = (stage["cost"] - stage["tokens"] * model.price_in / MILLION) / dearer
    return float(stage["calls"] * model.latency + replies * model.seconds_per_token)


def row_seconds(row: Mapping[str, Any]) -> float:
    """What the calls of a question take."""
    used, model = row["usage"], LAB_2.model
    return float(used["calls"] * model.latency + used["tokens_out"] * model.seconds_per_token)


def in_time(item: Item, row: Mapping[str, Any], limit: float) -> tuple[bool, float]:
    """Whether the leader at the limit is right, and when its last stage had ended."""
    right, ended, now = False, 0.0, 0.0
    for stage in row.get("stages") or ():
        now += stage_seconds(stage)
        if now > limit:
            break
        ended = now
        leader = stage.get("leader")
        if leader is not None:
            letter = leader if len(leader) == 1 else None
            right = is_right(item, {"choice": letter, "text": "" if letter else leader})
    return right, ended


def limit_row(limit: float, auto: Scored, best: Scored, name: str) -> list[str]:
    """Auto at one limit, beside the best single method."""
    known = [in_time(item, row, limit) for item, row in zip(auto.items, auto.rows, strict=True)]
    right = [each for each, _ in known]
    used = sum(seconds for _, seconds in known) / len(known)
    videos = [item.asked.video for item in auto.items]
    gap = paired(right, best.right, videos)
    times = sorted(row_seconds(row) for row in best.rows)
    late = sum(time > limit for time in times) / len(times)
    return [
        f"{limit:g}",
        f"{accuracy(right, videos)}, {used:.1f} s used",
        f"{name} {best.accuracy}, {sum(times) / len(times):.1f} s used, {late:.0%} late",
        f"{100 * gap.value:+.1f} [{100 * gap.low:+.1f}, {100 * gap.high:+.1f}]",
    ]


def page(bench: Bench, minutes: int, acuity: float, limits: list[float]) -> str:
    """The table; ``auto`` is run if need be, single methods are those that are there."""
    cell = single("auto", minutes, acuity, budget={"seconds": UNHURRIED})
    auto = bench.run(cell)
    if auto is None:
        return "auto has not answered all questions"
    there = Bench(argparse.Namespace(**{**vars(bench.options), "page_only": True}))
    others: list[Cell] = [single(method, minutes, acuity) for method in METHODS[1:]]
    found = there.measured(others)
    best, scored = max(found, key=lambda pair: pair[1].accuracy.value)
    rows = [limit_row(limit, auto, scored, best.label) for limit in limits]
    head = ("seconds", "auto", "best single method, without a limit", "auto − it, points")
    told = ", ".join(f"{each.label} {scored.accuracy.value:.1%}" for each, scored in found)
    return f"## {minutes} minutes, acuity {acuity:g}\n\n{table(head, rows)}\n\nMeasured: {told}"


def main() -> None:
    """Run what is missing, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--minutes", type=int, default=60)
    parser.add_argument("--acuity", type=float, default=0.8)
    parser.add_argument("--seconds", nargs="+", type=float, default=list(SECONDS), help="limits")
    parser.add_argument("--page-only", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    options.worlds, options.questions, options.first_seed = WORLDS, QUESTIONS, 5000
    print(page(Bench(options), options.minutes, options.acuity, options.seconds))


if __name__ == "__main__":
    main()
