"""Make the calibration that is shipped with ``auto`` anew, from the laboratory's development seeds.

    python benchmarks/shipped_calibration.py --out build/calibration --workers 16
    python benchmarks/shipped_calibration.py --out build/calibration --fit-only --ship
    python benchmarks/shipped_calibration.py --out build/calibration --fit-only \
        --only 60-0.6 120-0.6 --name calibration-0.6.json

Films of 60 and 120 minutes, simulated models of acuity 0.8 and 0.6. Most questions go through the
cheap stages alone, which decide nearly all of them; the others go through all stages. Each run is
a folder that is resumed, so the command may be stopped and started again. Then the rule is fitted
to all of them, as ``longtake calibrate`` does, and written to ``calibration.json`` in the folder;
``--ship`` also writes it where ``auto`` reads it. No published seed is used, and no GPU.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, replace
from pathlib import Path

import longtake.methods.auto
from longtake.cli.calibrate import calibrate
from longtake.evals.benchmarks import load
from longtake.evals.runner import evaluate
from longtake.evals.runs import RunFolder
from longtake.evals.solving import Solver
from longtake.methods.auto.method import Auto
from longtake.session.asking import Session
from longtake.session.casting import Casting

CHEAP = Auto.stages[:5]
QUESTIONS = 20  # about each film


@dataclass(frozen=True)
class Run:
    """Questions about some films, put to a model of some acuity."""

    minutes: int
    acuity: float
    seeds: str
    cheap: bool

    @property
    def name(self) -> str:
        """The name of its folder."""
        return f"{self.minutes}-{self.acuity:g}-{'cheap' if self.cheap else 'full'}"

    def ask(self, out: Path, workers: int) -> None:
        """Put the questions through the stages."""
        options = {"seeds": self.seeds, "minutes": str(self.minutes), "questions": str(QUESTIONS)}
        casting = Casting((f"lab/profile=lab-2,acuity={self.acuity:g}",))
        fields = {"stop": "never", "stages": CHEAP if self.cheap else Auto.stages}
        session = Session(casting=replace(casting, replies=False)).with_fields("auto", fields)
        solver, benchmark = Solver("auto", session), load("lab", None, options)
        began = time.perf_counter()
        evaluate(solver, benchmark, RunFolder(out / self.name), workers=workers, resume=True)
        print(f"{self.name}: {time.perf_counter() - began:.0f} s", flush=True)


RUNS = (
    Run(60, 0.8, "42-65", cheap=True),
    Run(60, 0.6, "42-65", cheap=True),
    Run(120, 0.8, "47-70", cheap=True),
    Run(120, 0.6, "47-70", cheap=True),
    Run(60, 0.8, "52-57", cheap=False),
    Run(60, 0.6, "66-71", cheap=False),
    Run(120, 0.8, "57-62", cheap=False),
)


def main() -> None:
    """Run what is missing, then fit."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--only", nargs="+", metavar="MINUTES-ACUITY", default=[""])
    parser.add_argument("--fit-only", action="store_true", help="from the runs that are there")
    parser.add_argument("--name", default="calibration.json", help="of the file in --out")
    parser.add_argument("--ship", action="store_true", help="replace the shipped calibration")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    chosen = [run for run in RUNS if run.name.startswith(tuple(options.only))]
    if not options.fit_only:
        for run in chosen:
            run.ask(options.out, options.workers)
    runs = [str(options.out / run.name) for run in chosen]
    written = options.out / options.name
    calibrate.main([*runs, "--out", str(written)], standalone_mode=False)
    if options.ship:
        place = Path(longtake.methods.auto.__file__).with_name("calibration.json")
        place.write_text(written.read_text(encoding="utf-8"), encoding="utf-8")
        print(f"wrote {place}")


if __name__ == "__main__":
    main()
