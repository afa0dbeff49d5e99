"""The cells of ``benchmarks/auto.py``: a method, a model and a budget on films of one length."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from longtake.agents.calibration import StageFacts
from longtake.agents.run import Run
from longtake.config import BudgetSettings, Settings
from longtake.evals.benchmarks import Benchmark
from longtake.evals.benchmarks.lab import lab
from longtake.evals.experiment import with_profile_model
from longtake.evals.runner import Scored, Solver, evaluate, score
from longtake.evals.runs import RunFolder
from longtake.lab.model import make as make_model
from longtake.lab.profile import LAB_2
from longtake.methods.auto.method import STAGE_DEFAULTS, Auto, shipped
from longtake.methods.auto.plan import frames_that_fit
from longtake.runner.assignment import ModelAssignment
from longtake.runner.session import Session

FIRST_SEED = 5000  # published, and used by nothing else: from 5300 for 60 minutes, 5600 for 120
WORLDS, QUESTIONS = 16, 20
FURTHER = 16  # films after those of the other parts, for the calibration error alone
DRAWS = 300  # of right and wrong answers, for the calibration error that chance alone explains
WITHIN = 0.01  # of the best single method's accuracy …
SHARE = 0.5  # … at this share of its tokens at most
LENGTHS, ACUITIES = (60, 120), (0.8, 0.6)
LEAN = "symphony-lean"  # Symphony with the settings that it has as a stage of auto
DENSE = "uniform-dense"  # uniform with as many frames as fit one call and the budget
METHODS = (
    "auto",
    DENSE,
    "lookup",
    "uniform",
    "videoagent",
    "videodetective",
    "a4vl",
    "lvagent",
    "symphony",
    LEAN,
)
RATED = {LEAN: "symphony", DENSE: "uniform@480"}  # their names in the shipped calibration
BUDGETS = {"tokens": (10_000, 60_000, 200_000), "cost": (0.005, 0.03, 0.1)}
PARTS = ("singles", "calibration", "ablations", "budgets")
ABLATIONS: Mapping[str, Mapping[str, Any]] = {
    "auto": {},
    "no verification": {"verify": False},
    "no calibration": {"stop": "stated"},
    "all stages": {"stop": "never"},
}
RANDOM = "random escalation"


@dataclass(frozen=True)
class Cell:
    """A method with its fields, a model and a budget, on the films of one length."""

    label: str
    method: str
    minutes: int
    acuity: float
    fields: Mapping[str, Any] = field(default_factory=dict)
    budget: Mapping[str, float] = field(default_factory=dict)
    further: bool = False

    @property
    def name(self) -> str:
        """The name of its folder."""
        limits = [f"{key}-{value:g}" for key, value in self.budget.items()]
        label = self.label.replace(" ", "-") + ("-further" if self.further else "")
        return "_".join([f"{self.minutes}-{self.acuity:g}", label, *limits])

    def solver(self) -> Solver:
        """The method with the simulated model in every role."""
        model = f"lab/acuity={self.acuity:g}"
        assignment = with_profile_model(ModelAssignment((model,)), self.method)
        settings = Settings(budget=BudgetSettings(**self.budget))
        return Solver(
            self.method, Session(settings, assignment).with_fields(self.method, self.fields)
        )


@dataclass(frozen=True)
class Bench:
    """Where cells lie and how they are run."""

    options: argparse.Namespace

    def worlds(self, cell: Cell) -> Benchmark:
        """The questions of a cell; every length has its own films."""
        first = self.options.first_seed + 5 * cell.minutes
        seeds = range(first, first + self.options.worlds)
        if cell.further:
            seeds = range(first + WORLDS, first + WORLDS + self.options.further)
        return lab(seeds, cell.minutes, self.options.questions)

    def run(self, cell: Cell) -> Scored | None:
        """Ask what has no result yet; with ``--page-only``, only what is complete is returned."""
        benchmark, folder = self.worlds(cell), RunFolder(self.options.out / cell.name)
        if self.options.page_only:
            scored = score(benchmark, folder.results())
            return scored if len(scored.rows) == len(benchmark.items) else None
        began = time.perf_counter()
        workers = self.options.workers
        scored = evaluate(cell.solver(), benchmark, folder, workers=workers, resume=True)
        seconds = time.perf_counter() - began
        told = f"{scored.accuracy}, {scored.tokens:,.0f} tokens, {seconds:.0f} s"
        print(f"{cell.name}: {told}", flush=True)
        return scored

    def measured(self, cells: list[Cell]) -> list[tuple[Cell, Scored]]:
        """The cells that have results."""
        found = [(cell, self.run(cell)) for cell in cells]
        return [(cell, scored) for cell, scored in found if scored is not None]


def dense_frames(budget: Mapping[str, float]) -> int:
    """The most frames that uniform can show in one call under a budget, its check included."""
    chat = make_model(f"profile={LAB_2.name}")
    limits = BudgetSettings(**budget)
    run = Run({"vlm": chat}, budget=limits)
    return max(1, frames_that_fit(chat, run))


def single(method: str, minutes: int, acuity: float, **more: Any) -> Cell:
    """A single method; the lean Symphony and the dense uniform are methods with fields."""
    if method == LEAN:
        fields = STAGE_DEFAULTS["symphony"]
        return Cell(LEAN, "symphony", minutes, acuity, fields, **more)
    if method == DENSE:
        frames = {"frames": dense_frames(more.get("budget", {}))}
        return Cell(DENSE, "uniform", minutes, acuity, frames, **more)
    return Cell(method, method, minutes, acuity, **more)


def singles(methods: Sequence[str], minutes: int, acuity: float, **more: Any) -> list[Cell]:
    """These methods, each by itself."""
    return [single(method, minutes, acuity, **more) for method in methods]


def stop_chance(tokens: float) -> float:
    """The chance to stop after each stage at which random escalation costs as much as auto."""
    known = shipped().stages

    def cost(chance: float) -> float:
        total, left = 0.0, 1.0
        # stages run in the order of the list; without an answer nothing stops
        for key in Auto.stages:
            facts = known.get(key, StageFacts())
            total += left * facts.tokens
            left *= 1 - chance * facts.answered
        return total

    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if cost(middle) > tokens else (low, middle)
    return round(low, 3)
