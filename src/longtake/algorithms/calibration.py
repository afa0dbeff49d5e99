"""Turns signals into probabilities, and measures how well probabilities are calibrated."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

BIAS = "bias"
"""The name of the constant term among the weights."""

BINS = 10
"""Bins of the expected calibration error."""
SUREST = 0.999
"""Upper bound of probabilities; 1 − this is the lower bound."""


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
        # long steps overshoot where the curvature is small
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


def reliability(stated: Sequence[float], right: Sequence[bool]) -> list[tuple[float, float, int]]:
    """Mean probability, share of right answers and their number, in bins of equal width."""
    chances, truths = np.asarray(stated, np.float64), np.asarray(right, np.float64)
    numbers = np.minimum((chances * BINS).astype(np.int64), BINS - 1)
    filled = []
    for number in sorted(set(numbers.tolist())):
        inside = numbers == number
        mean, share = float(chances[inside].mean()), float(truths[inside].mean())
        filled.append((mean, share, int(inside.sum())))
    return filled


def expected_error(stated: Sequence[float], right: Sequence[bool]) -> float:
    """Expected calibration error: Σ_b n_b / n · |share right in b − mean probability in b|."""
    filled = reliability(stated, right)
    return sum(count * abs(share - mean) for mean, share, count in filled) / max(1, len(stated))


def chance_error(stated: Sequence[float]) -> float:
    """The calibration error that exact probabilities would show by chance alone, in 300 draws."""
    rng = np.random.default_rng(0)
    chances = np.asarray(stated, np.float64)
    drawn = [(rng.random(len(chances)) < chances).tolist() for _ in range(300)]
    return float(np.mean([expected_error(stated, right) for right in drawn]))


def brier(stated: Sequence[float], right: Sequence[bool]) -> float:
    """Mean squared difference of probabilities and outcomes."""
    return float(np.mean((np.asarray(stated, np.float64) - np.asarray(right, np.float64)) ** 2))


def auroc(stated: Sequence[float], right: Sequence[bool]) -> float:
    """Chance that a right answer has a higher probability than a wrong one; ties count half."""
    chances, truths = np.asarray(stated, np.float64), np.asarray(right, np.bool_)
    gaps = chances[truths][:, None] - chances[~truths][None, :]
    return float(((gaps > 0) + 0.5 * (gaps == 0)).mean()) if gaps.size else 0.5


def surest(stated: Sequence[float], right: Sequence[bool], share: float) -> float:
    """The share of right answers among the surest ``share`` of all."""
    order = np.argsort(-np.asarray(stated, np.float64), kind="stable")
    kept = order[: max(1, round(share * len(order)))]
    return float(np.asarray(right, np.float64)[kept].mean())
