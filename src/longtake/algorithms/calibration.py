"""Turning signals into probabilities, and measuring how far probabilities can be trusted."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

BIAS = "bias"
"""The weight that is added whatever the signals say."""
BINS = 10
"""Bins of the expected calibration error."""
SUREST = 0.999
"""Probabilities are kept between 1 − this and this: nothing measured is certain."""


def logistic(
    rows: Sequence[Mapping[str, float]], right: Sequence[bool], *, ridge: float = 1.0
) -> dict[str, float]:
    """Weights of a logistic regression of ``right`` on signals; signals that are absent are 0.

    Fitted by Newton's method. The ridge keeps the weights finite if the signals separate the data.
    """
    names = sorted({name for row in rows for name in row})
    table = np.array([[1.0, *(row.get(name, 0.0) for name in names)] for row in rows], np.float64)
    if not len(table):
        return {BIAS: 0.0}
    target = np.asarray(right, np.float64)
    penalty = np.diag([1e-6, *([ridge] * len(names))])
    weights = np.zeros(table.shape[1])
    # a handful of steps is enough unless the signals separate the data
    for _ in range(50):
        chance = 1 / (1 + np.exp(-np.clip(table @ weights, -30, 30)))
        slope = table.T @ (target - chance) - penalty @ weights
        curve = (table * (chance * (1 - chance))[:, None]).T @ table + penalty
        change = np.linalg.solve(curve, slope)
        # far steps overshoot where the curve is flat
        weights += np.clip(change, -5, 5)
        if np.abs(change).max() < 1e-8:
            break
    return dict(zip([BIAS, *names], np.round(weights, 6).tolist(), strict=True))


def probability(weights: Mapping[str, float], signals: Mapping[str, float]) -> float:
    """The probability that fitted weights give for some signals."""
    total = weights.get(BIAS, 0.0)
    total += sum(weights.get(name, 0.0) * value for name, value in signals.items())
    return bounded(1 / (1 + math.exp(-max(-30.0, min(30.0, total)))))


def bounded(chance: float) -> float:
    """A probability that is neither certain nor impossible."""
    return min(SUREST, max(1 - SUREST, chance))


def log_odds(chance: float) -> float:
    """ln(p / (1 − p)), with p kept away from 0 and 1."""
    kept = bounded(chance)
    return math.log(kept / (1 - kept))


@dataclass(frozen=True)
class Bin:
    """Answers of similar stated probability."""

    stated: float
    """Their mean probability."""
    right: float
    """The share of them that is right."""
    count: int


def reliability(stated: Sequence[float], right: Sequence[bool], bins: int = BINS) -> list[Bin]:
    """Stated probabilities against shares of right answers, in bins of equal width."""
    chances = np.asarray(stated, np.float64)
    truths = np.asarray(right, np.float64)
    numbers = np.minimum((chances * bins).astype(np.int64), bins - 1)
    filled = []
    for number in sorted(set(numbers.tolist())):
        inside = numbers == number
        mean, share = float(chances[inside].mean()), float(truths[inside].mean())
        filled.append(Bin(mean, share, int(inside.sum())))
    return filled


def expected_error(stated: Sequence[float], right: Sequence[bool], bins: int = BINS) -> float:
    """Expected calibration error: Σ_b n_b / n · |share right in b − mean probability in b|."""
    if not len(stated):
        return 0.0
    filled = reliability(stated, right, bins)
    return sum(each.count * abs(each.right - each.stated) for each in filled) / len(stated)


def pooled(votes: Sequence[tuple[str, float]], options: int) -> dict[str, float]:
    """Probability of each answer that was given, from independent votes.

    A vote (answer, p) is right with probability p, and else is one of the other ``options`` − 1
    answers, all equally likely. What nobody voted for shares the rest.
    """
    others = max(1, options - 1)
    answers = list(dict.fromkeys(answer for answer, _ in votes))
    weights = {}
    for answer in answers:
        weights[answer] = sum(_evidence(in_bin == answer, p, others) for in_bin, p in votes)
    unnamed = max(0, options - len(answers))
    none = sum(_evidence(False, p, others) for _, p in votes)
    highest = max([*weights.values(), none])
    shares = {answer: math.exp(weight - highest) for answer, weight in weights.items()}
    total = sum(shares.values()) + unnamed * math.exp(none - highest)
    return {answer: share / total for answer, share in shares.items()}


def _evidence(agrees: bool, chance: float, others: int) -> float:
    kept = bounded(chance)
    return math.log(kept) if agrees else math.log((1 - kept) / others)
