"""Probabilities for the answers of methods, fitted to results with labels."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from longtake.algorithms.calibration import expected_error, logistic, probability
from longtake.steps.signals import weighed

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
            weights[method] = fit_samples(own)
    return weights


def fit_samples(own: Sequence[Sample]) -> dict[str, float]:
    """Weights for the signals of answers."""
    return logistic([weighed(each.signals) for each in own], [each.right for each in own])


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


def held_out(videos: Iterable[str]) -> list[set[str]]:
    """The films of each part, in random order: names often tell of what kind a film is."""
    names = sorted(set(videos))
    random.Random(0).shuffle(names)
    return [set(names[number::FOLDS]) for number in range(min(FOLDS, len(names)))]


def held_out_error(own: Sequence[Sample]) -> float:
    """Calibration error of probabilities that were fitted without the films they are about."""
    chances, right = [], []
    for out in held_out(each.video for each in own):
        kept = [each for each in own if each.video not in out]
        weights = fit_samples(kept)
        for each in own:
            if each.video in out:
                chances.append(probability(weights, weighed(each.signals)))
                right.append(each.right)
    return expected_error(chances, right)
