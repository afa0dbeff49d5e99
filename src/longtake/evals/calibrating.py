"""Fits a calibration to results with labels: probabilities for methods, the rule for ``auto``.

Results hold signals and no labels; labels come from the benchmark and stay in this process.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from longtake.evals.cascade import (
    Passage,
    by_stage,
    choose,
    fit_rule,
    folds,
    held_out_ends,
    mean,
    passages,
    with_odds,
)
from longtake.evals.endings import fit_final, held_out_ending_error, of_points
from longtake.evals.probabilities import Sample, errors, fit_methods
from longtake.evals.runner import Scored
from longtake.steps.calibration import Calibration


def samples(method: str, scored: Scored) -> dict[str, list[Sample]]:
    """The answers of a run by method; those of ``auto`` by stage."""
    found = by_stage(passages(scored))
    for item, row, right in zip(scored.items, scored.rows, scored.right, strict=True):
        if "signals" in row:
            stated = row["signals"].get("stated")
            sample = Sample(row["signals"], stated, right, item.asked.video)
            found.setdefault(method, []).append(sample)
    return found


def fit_runs(runs: Sequence[tuple[str, Scored]], about: Mapping[str, Any]) -> Calibration:
    """A calibration from the results of runs, each with the name of its method."""
    found: dict[str, list[Sample]] = defaultdict(list)
    through: list[Passage] = []
    for method, scored in runs:
        through += passages(scored)
        for name, own in samples(method, scored).items():
            found[name] += own
    return fit(found, through, about)


def fit(
    found: Mapping[str, Sequence[Sample]], through: Sequence[Passage], about: Mapping[str, Any]
) -> Calibration:
    """A calibration from answers by method and from questions that went through all stages.

    ``about`` becomes part of its provenance. The rule of ``auto`` needs such questions; without
    them only methods are calibrated.
    """
    told = {**about, "calibration_error": errors(found)}
    rule = Calibration(methods=fit_methods(found), provenance=told)
    if not through:
        return rule
    rule = fit_rule(rule, through)
    held_out = folds(through)
    stop_at, least_gain = choose(held_out)
    rule = replace(rule, stop_at=stop_at, least_gain=least_gain)
    parts = held_out_ends(held_out, stop_at, least_gain)
    ends = [point for part in parts for point in part]
    endings = of_points(ends)
    told["auto"] = {
        "accuracy": mean([point.right for point in ends]),
        "tokens": mean([point.tokens for point in ends]),
        "calibration_error": round(held_out_ending_error(endings), 4),
    }
    rule = replace(rule, final=fit_final(endings))
    return replace(rule, stages=with_odds(rule.stages, ends))
