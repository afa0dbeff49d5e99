"""``auto`` beside other methods in the laboratory: accuracy and tokens.

    python benchmarks/auto.py --out build/auto --workers 16
    python benchmarks/auto.py --out build/auto --methods auto --first-seed 12000 --worlds 15
    python benchmarks/auto.py --out build/auto --methods auto --against OTHER/build/auto

Films of 60 and 120 minutes, simulated models of acuity 0.8 and 0.6. Each cell is a run folder that
is resumed, so the command may be stopped and started again. ``--against`` pairs ``auto`` with the
cells of the same names that another version of longtake left in a folder.
"""

import argparse
import time
from itertools import product
from pathlib import Path

from longtake.evals.benchmarks.lab import lab
from longtake.evals.experiment import with_profile_model
from longtake.evals.report import table
from longtake.evals.runner import Scored, Solver, evaluate, score
from longtake.evals.runs import RunFolder
from longtake.evals.scoring import paired
from longtake.runner.assignment import ModelAssignment
from longtake.runner.session import Session

METHODS = ("auto", "lookup", "uniform", "videoagent", "videodetective", "symphony")
HEAD = ("minutes", "acuity", "method", "accuracy (95 %)", "tokens", "auto − this, points")


def run(method: str, minutes: int, acuity: float, options: argparse.Namespace) -> Scored:
    """The results of a cell; what is missing is asked."""
    seeds = range(options.first_seed, options.first_seed + options.worlds)
    benchmark = lab(seeds, minutes, options.questions)
    assignment = with_profile_model(ModelAssignment((f"lab/acuity={acuity:g}",)), method)
    solver, began = Solver(method, Session(assignment=assignment)), time.perf_counter()
    name = f"{minutes}-{acuity:g}-{method}"
    scored = evaluate(
        solver, benchmark, RunFolder(options.out / name), workers=options.workers, resume=True
    )
    print(f"{name}: {scored.accuracy}, {time.perf_counter() - began:.0f} s", flush=True)
    return scored


def row(cell: tuple[str, str, str], auto: Scored, other: Scored) -> list[str]:
    """A line of the table."""
    gap = paired(auto.right, other.right, [item.asked.video for item in auto.items])
    points = f"{100 * gap.value:+.1f} [{100 * gap.low:+.1f}, {100 * gap.high:+.1f}]"
    told = "" if other is auto else points
    return [*cell, str(other.accuracy), f"{other.tokens:,.0f}", told]


def pooled(cells: list[Scored]) -> Scored:
    """All cells as one."""
    items = [item for cell in cells for item in cell.items]
    rows = [each for cell in cells for each in cell.rows]
    return Scored(items, rows, [right for cell in cells for right in cell.right])


def main() -> None:
    """Run what is missing, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--minutes", nargs="+", type=int, default=(60, 120))
    parser.add_argument("--acuities", nargs="+", type=float, default=(0.8, 0.6))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--worlds", type=int, default=16)
    parser.add_argument("--questions", type=int, default=20, help="about each world")
    parser.add_argument("--first-seed", type=int, default=5300)
    parser.add_argument("--against", type=Path, help="folder with cells of another version")
    options = parser.parse_args()
    rows, ours, others = [], [], []
    for minutes, acuity in product(options.minutes, options.acuities):
        found = {name: run(name, minutes, acuity, options) for name in options.methods}
        auto = found.get("auto") or next(iter(found.values()))
        rows += [row((str(minutes), f"{acuity:g}", name), auto, found[name]) for name in found]
        if options.against:
            seeds = range(options.first_seed, options.first_seed + options.worlds)
            results = RunFolder(options.against / f"{minutes}-{acuity:g}-auto").results()
            ours.append(auto)
            others.append(score(lab(seeds, minutes, options.questions), results))
            rows.append(row((str(minutes), f"{acuity:g}", "other version"), auto, others[-1]))
    if options.against:
        rows.append(row(("all", "", "auto"), pooled(ours), pooled(ours)))
        rows.append(row(("all", "", "other version"), pooled(ours), pooled(others)))
    page = table(HEAD, rows)
    (options.out / "auto.md").write_text(page + "\n", encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
