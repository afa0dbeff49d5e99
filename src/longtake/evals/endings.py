"""The probability that ``auto`` states in the end, fitted to the questions that it stopped at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from longtake.algorithms.calibration import expected_error, logistic
from longtake.algorithms.question_kinds import kind
from longtake.evals.cascade import Point
from longtake.evals.probabilities import LEAST, held_out
from longtake.evals.runner import Scored
from longtake.steps.calibration import Calibration
from longtake.steps.signals import ending


@dataclass(frozen=True)
class Ending:
    """The leader that a question ended with."""

    chance: float
    """Its probability before the correction."""
    right: bool
    video: str
    kind: str = ""
    """What the question asks for."""


def of_points(points: Sequence[Point]) -> list[Ending]:
    """Where replayed questions ended; those without an answer are left out."""
    ends = []
    for point in points:
        if point.standing is not None:
            leader = point.standing
            ends.append(Ending(leader.probability, point.right, point.video, point.kind))
    return ends


def of_run(scored: Scored) -> list[Ending]:
    """Where the questions of a run of ``auto`` ended; those without an answer are left out."""
    ends = []
    for item, row, right in zip(scored.items, scored.rows, scored.right, strict=True):
        answered = [stage for stage in row.get("stages") or () if "standing" in stage]
        if answered:
            asked_for = kind(item.asked.question.text)
            ends.append(Ending(answered[-1]["standing"], right, item.asked.video, asked_for))
    return ends


def fit_final(ends: Sequence[Ending]) -> dict[str, float]:
    """Weights that correct the probability of what leads in the end, where there is enough."""
    if len(ends) < LEAST:
        return {}
    rows = [ending(each.chance, each.kind) for each in ends]
    return logistic(rows, [each.right for each in ends])


def held_out_ending_error(ends: Sequence[Ending]) -> float:
    """Calibration error of corrected probabilities, on films held out of the correction."""
    stated, right = [], []
    for out in held_out(each.video for each in ends):
        rule = Calibration(final=fit_final([each for each in ends if each.video not in out]))
        for each in ends:
            if each.video in out:
                stated.append(rule.final_probability(each.chance, each.kind))
                right.append(each.right)
    return expected_error(stated, right)


def corrected(rule: Calibration, ends: Sequence[Ending], about: Mapping[str, Any]) -> Calibration:
    """The same rule with final probabilities fitted to where it stopped."""
    before = expected_error([each.chance for each in ends], [each.right for each in ends])
    told = {
        **about,
        "before": round(before, 4),
        "calibration_error": round(held_out_ending_error(ends), 4),
    }
    provenance = {**rule.provenance, "final": told}
    return replace(rule, final=fit_final(ends), provenance=provenance)
