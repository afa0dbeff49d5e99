"""Make the calibration that is shipped with ``auto`` anew, from the laboratory's development seeds.

    python benchmarks/shipped_calibration.py --out build/calibration --workers 16
    python benchmarks/shipped_calibration.py --out build/calibration --fit-only --ship

Three runs (60, 120 and 20 minutes) put every question through all stages. Each is a folder that is
resumed, so the command may be stopped and started again. Then the rule is fitted to all of them, as
``longtake calibrate`` does, and written to ``calibration.json`` in the folder; ``--ship`` also
writes it where ``auto`` reads it. No published seed is used, and no GPU.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

import longtake.methods.auto
from longtake.cli.calibrate import calibrate
from longtake.evals.benchmarks import load
from longtake.evals.runner import evaluate
from longtake.evals.runs import RunFolder
from longtake.evals.solving import Solver
from longtake.session.asking import Session
from longtake.session.casting import Casting

SEEDS = {60: "42-57", 120: "47-62", 20: "42-57"}  # by minutes
QUESTIONS = 20  # about each film
MODEL = "lab/profile=lab-2"


def run(minutes: int, folder: Path, workers: int) -> None:
    """Put the questions about films of one length through all stages."""
    options = {"seeds": SEEDS[minutes], "minutes": str(minutes), "questions": str(QUESTIONS)}
    casting = replace(Casting((MODEL,)), replies=False)
    session = Session(casting=casting).with_fields("auto", {"stop": "never"})
    began = time.perf_counter()
    solver, benchmark = Solver("auto", session), load("lab", None, options)
    evaluate(solver, benchmark, RunFolder(folder), workers=workers, resume=True)
    print(f"{minutes} minutes: {time.perf_counter() - began:.0f} s", flush=True)


def main() -> None:
    """Run what is missing, then fit."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--minutes", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--fit-only", action="store_true", help="from the runs that are there")
    parser.add_argument("--ship", action="store_true", help="replace the shipped calibration")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if not options.fit_only:
        for minutes in options.minutes:
            run(minutes, options.out / f"{minutes}-minutes", options.workers)
    runs = sorted(str(path) for path in options.out.glob("*-minutes"))
    written = options.out / "calibration.json"
    calibrate.main([*runs, "--out", str(written)], standalone_mode=False)
    if options.ship:
        place = Path(longtake.methods.auto.__file__).with_name("calibration.json")
        place.write_text(written.read_text(encoding="utf-8"), encoding="utf-8")
        print(f"wrote {place}")


if __name__ == "__main__":
    main()
