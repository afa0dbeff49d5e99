"""Probabilities for the answers of methods, fitted to results with labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from longtake.algorithms.calibration import expected_error, logistic, probability

LEAST = 20
"""Answers without which a method gets no weights."""
FOLDS = 4
"""Parts of the films, each of which is held out once."""


@dataclass(frozen=True)
class Sample:
    """An answer of a method: its signals, the confidence it stated, and whether it is right."""

    signals: Mapping[str, float]
    stated: float | None
    right: bool
    video: str = ""


def fit_methods(found: Mapping[str, Sequence[Sample]]) -> dict[str, dict[str, float]]:
    """Weights for every method with enough answers."""
    weights = {}
    for method, own in found.items():
        if len(own) >= LEAST:
            weights[method] = logistic([each.signals for each in own], [each.right for each in own])
    return weights


def errors(found: Mapping[str, Sequence[Sample]]) -> dict[str, dict[str, float]]:
    """Calibration error of each method: of stated confidences, and of fitted probabilities.

    The latter is measured on films that were held out of the fit.
    """
    measured = {}
    for method, own in found.items():
        stated = [each for each in own if each.stated is not None]
        claims = [each.stated or 0.0 for each in stated]
        before = expected_error(claims, [each.right for each in stated])
        row: dict[str, float] = {"answers": len(own), "stating": len(stated)}
        if stated:
            row["before"] = round(before, 4)
        if len(own) >= LEAST:
            row["after"] = round(held_out_error(own), 4)
        measured[method] = row
    return measured


def held_out_error(own: Sequence[Sample]) -> float:
    """Calibration error of probabilities that were fitted without the films they are about."""
    videos = sorted({each.video for each in own})
    chances, right = [], []
    for fold in range(FOLDS):
        out = set(videos[fold::FOLDS])
        kept = [each for each in own if each.video not in out]
        weights = logistic([each.signals for each in kept], [each.right for each in kept])
        for each in own:
            if each.video in out:
                chances.append(probability(weights, each.signals))
                right.append(each.right)
    return expected_error(chances, right)
