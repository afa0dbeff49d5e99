"""Make the calibration that is shipped with ``auto`` anew, from the laboratory's development seeds.

    python benchmarks/shipped_calibration.py --out build/calibration --workers 16
    python benchmarks/shipped_calibration.py --out build/calibration --fit-only --ship
    python benchmarks/shipped_calibration.py --out build/calibration --final-only \
        --only 60-0.6 120-0.6 --name calibration-0.6.json

Films of 60 and 120 minutes, simulated models of acuity 0.8 and 0.6. Most questions go through the
cheap stages alone, which decide nearly all of them; the others go through all stages. Each run is
a folder that is resumed, so the command may be stopped and started again. Then the rule is fitted
to all of them, as ``longtake calibrate`` does. With that rule ``auto`` answers questions about
other films, and the probabilities that it states in the end are fitted to those. The result is
written to ``calibration.json`` in the folder; ``--ship`` also writes it where ``auto`` reads it.
``--final-only`` keeps the shipped rule. No published seed is used, and no GPU.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import longtake.methods.auto
from longtake.cli.calibrate import calibrate
from longtake.evals.benchmarks import load
from longtake.evals.runner import Solver, evaluate
from longtake.evals.runs import RunFolder
from longtake.methods.auto.method import Auto
from longtake.runner.assignment import ModelAssignment
from longtake.runner.session import Session

CHEAP = Auto.stages[:5]
QUESTIONS = 20  # about each film


@dataclass(frozen=True)
class Run:
    """Questions about some films, put to a model of some acuity."""

    minutes: int
    acuity: float
    seeds: str
    what: str
    """``cheap`` or ``full``: the stages that every question goes through; ``stopped``: the rule
    decides."""
    batch: int = 1
    """Later batches add films to earlier ones."""

    @property
    def name(self) -> str:
        """The name of its folder."""
        name = f"{self.minutes}-{self.acuity:g}-{self.what}"
        return name if self.batch == 1 else f"{name}-{self.batch}"

    def fields(self, rule: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of auto; without a rule, the shipped one decides."""
        if self.what == "stopped":
            return {"rule": rule}
        return {"stop": "never", "stages": CHEAP if self.what == "cheap" else Auto.stages}

    def ask(self, out: Path, workers: int, rule: Mapping[str, Any]) -> None:
        """Put the questions through the stages."""
        options = {"seeds": self.seeds, "minutes": str(self.minutes), "questions": str(QUESTIONS)}
        assignment = ModelAssignment((f"lab/profile=lab-2,acuity={self.acuity:g}",))
        session = Session(assignment=replace(assignment, replies=False))
        session = session.with_fields("auto", self.fields(rule))
        solver, benchmark = Solver("auto", session), load("lab", None, options)
        began = time.perf_counter()
        evaluate(solver, benchmark, RunFolder(out / self.name), workers=workers, resume=True)
        print(f"{self.name}: {time.perf_counter() - began:.0f} s", flush=True)


RUNS = (
    Run(60, 0.8, "42-65", "cheap"),
    Run(60, 0.6, "42-65", "cheap"),
    Run(120, 0.8, "47-70", "cheap"),
    Run(120, 0.6, "47-70", "cheap"),
    Run(60, 0.8, "52-57", "full"),
    Run(60, 0.6, "66-71", "full"),
    Run(120, 0.8, "57-62", "full"),
)
STOPPED = (
    Run(60, 0.8, "72-87", "stopped"),
    Run(60, 0.6, "72-81", "stopped"),
    Run(120, 0.8, "72-87", "stopped"),
    Run(120, 0.6, "72-81", "stopped"),
    Run(60, 0.6, "82-99", "stopped", 2),
    Run(120, 0.6, "82-99", "stopped", 2),
)


def fit(
    runs: Sequence[Run], written: Path, options: argparse.Namespace, rule: Mapping[str, Any]
) -> None:
    """Run what is missing, and calibrate with it."""
    chosen = [run for run in runs if run.name.startswith(tuple(options.only))]
    if not options.fit_only:
        for run in chosen:
            run.ask(options.out, options.workers, rule)
    folders = [str(options.out / run.name) for run in chosen]
    calibrate.main([*folders, "--out", str(written)], standalone_mode=False)


def main() -> None:
    """Run what is missing, then fit."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--only", nargs="+", metavar="MINUTES-ACUITY", default=[""])
    parser.add_argument("--fit-only", action="store_true", help="from the runs that are there")
    parser.add_argument("--final-only", action="store_true", help="keep the shipped rule")
    parser.add_argument("--name", default="calibration.json", help="of the file in --out")
    parser.add_argument("--ship", action="store_true", help="replace the shipped calibration")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    written = options.out / options.name
    rule: Mapping[str, Any] = {}
    if not options.final_only:
        fit(RUNS, written, options, rule)
        rule = json.loads(written.read_text(encoding="utf-8"))
    fit(STOPPED, written, options, rule)
    if options.ship:
        place = Path(longtake.methods.auto.__file__).with_name("calibration.json")
        place.write_text(written.read_text(encoding="utf-8"), encoding="utf-8")
        print(f"wrote {place}")


if __name__ == "__main__":
    main()
