"""Runs on disk with the labels of their benchmarks, since a run holds none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from longtake.errors import ConfigError, LongtakeError, RunError
from longtake.evals import report as reports
from longtake.evals.benchmarks import load
from longtake.evals.report import Report
from longtake.evals.runs import RunFolder
from longtake.lab.profile import CURRENT


def read_labelled(path: Path, data: Sequence[Path]) -> Report:
    """Score a run with the labels of its benchmark, from the first folder that holds its files."""
    folder = RunFolder(path.resolve())
    spec = folder.spec()
    asked = spec["benchmark"]
    problems: list[LongtakeError] = []
    for files in data or (None,):
        try:
            benchmark = load(asked["name"], files, recorded_options(asked))
            # the same questions as in the run
            drawn = benchmark.draw(
                limit=asked.get("limit"), sample=asked.get("sample"), seed=spec["seed"]
            )
            return reports.read(folder, drawn)
        except (ConfigError, RunError) as problem:
            problems.append(problem)
    # with one folder its own problem says more
    if len(problems) == 1:
        raise problems[0]
    raise RunError(f"{path}: no --data folder holds the files of {asked['name']} it was run on")


def recorded_options(asked: Mapping[str, Any]) -> dict[str, str]:
    """The options that a run's benchmark was loaded with."""
    options = dict(asked["options"])
    # version 0.2 had two editions of the laboratory, and named the one it used
    edition = options.pop("profile", asked.get("profile", CURRENT.name))
    if edition != CURRENT.name:
        raise RunError(f"run on the questions of {edition}; use longtake 0.2 to score it")
    return options
