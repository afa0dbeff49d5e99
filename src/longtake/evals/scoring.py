"""What a set of results says, with how sure one can be of it.

Questions on one video stand or fall together, so every interval treats videos, not questions, as the sample.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from longtake.evals.items import Item

Z95 = 1.959963984540054
"""Two-sided 95 % of the normal distribution."""
DRAWS = 2000
"""Bootstrap samples."""


@dataclass(frozen=True)
class Rate:
    """A share with its 95 % interval."""

    value: float
    low: float
    high: float
    count: int

    def __str__(self) -> str:
        return f"{self.value:6.1%} [{self.low:.1%}, {self.high:.1%}] of {self.count}"


@dataclass(frozen=True)
class Difference:
    """One method minus another on the same questions, with its 95 % interval, and McNemar's exact p."""

    value: float
    low: float
    high: float
    only_first: int
    only_second: int
    p: float

    def __str__(self) -> str:
        return f"{self.value:+.1%} [{self.low:+.1%}, {self.high:+.1%}], p = {self.p:.3g}"


def correct(item: Item, choice: str | None, text: str) -> bool:
    """Whether an answer is right; nothing answered is wrong. Words are compared without case and punctuation."""
    if item.label is None:
        raise ValueError(f"{item.asked.id} has no public label; it can be submitted, not scored")
    if item.asked.question.options:
        return choice == item.label
    said, truth = _plain(text), _plain(item.label)
    return bool(truth) and f" {truth} " in f" {said} "


def accuracy(right: Sequence[bool], videos: Sequence[str]) -> Rate:
    """Mean with a standard error clustered by video, and never narrower than if questions were independent.

    With a handful of videos the clustered error is itself a guess, and can be zero by chance; Wilson's interval
    is the floor.
    """
    values = np.asarray(right, np.float64)
    if not len(values):
        return Rate(0.0, 0.0, 1.0, 0)
    mean = float(values.mean())
    low, high = wilson(int(values.sum()), len(values))
    if (error := clustered_error(values, videos)) is not None:
        low, high = min(low, max(0.0, mean - Z95 * error)), max(high, min(1.0, mean + Z95 * error))
    return Rate(mean, low, high, len(values))


def clustered_error(values: NDArray[np.float64], clusters: Sequence[str]) -> float | None:
    """Standard error of a mean whose observations come in clusters; ``None`` with fewer than two clusters.

    √(G/(G−1) · Σ_g (Σ_{i∈g} (x_i − x̄))²) / n
    """
    names = sorted(set(clusters))
    if len(names) < 2:
        return None
    rest = values - values.mean()
    place = {name: row for row, name in enumerate(names)}
    sums = np.bincount([place[name] for name in clusters], weights=rest)
    groups = len(names)
    return float(math.sqrt(groups / (groups - 1) * float((sums**2).sum())) / len(values))


def wilson(successes: int, count: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share."""
    if count == 0:
        return 0.0, 1.0
    share, z2 = successes / count, Z95**2
    middle = (share + z2 / (2 * count)) / (1 + z2 / count)
    reach = Z95 / (1 + z2 / count) * math.sqrt(share * (1 - share) / count + z2 / (4 * count**2))
    return max(0.0, middle - reach), min(1.0, middle + reach)


def paired(
    first: Sequence[bool], second: Sequence[bool], videos: Sequence[str], *, seed: int = 0
) -> Difference:
    """The first minus the second on the same questions: bootstrap over videos, McNemar over questions."""
    gaps = np.asarray(first, np.float64) - np.asarray(second, np.float64)
    names = sorted(set(videos))
    place = {name: row for row, name in enumerate(names)}
    rows = np.array([place[name] for name in videos], np.int64)
    sums = np.bincount(rows, weights=gaps, minlength=len(names))
    counts = np.bincount(rows, minlength=len(names))
    draws = np.random.default_rng(seed).integers(0, len(names), (DRAWS, len(names)))
    means = sums[draws].sum(axis=1) / counts[draws].sum(axis=1)
    only_first, only_second = int((gaps > 0).sum()), int((gaps < 0).sum())
    low, high = np.quantile(means, [0.025, 0.975])
    return Difference(
        float(gaps.mean()),
        float(low),
        float(high),
        only_first,
        only_second,
        mcnemar(only_first, only_second),
    )


def mcnemar(only_first: int, only_second: int) -> float:
    """Exact two-sided p: could the disagreements have fallen this way by coin flips?"""
    count = only_first + only_second
    if count == 0:
        return 1.0
    tail = sum(math.comb(count, k) for k in range(min(only_first, only_second) + 1))
    return min(1.0, float(2 * tail / 2**count))


def by_tag(items: Sequence[Item], right: Sequence[bool], tag: str) -> Mapping[str, Rate]:
    """Accuracy for each value of a tag."""
    values = sorted({item.tags.get(tag, "") for item in items})
    found = {}
    for value in values:
        chosen = [i for i, item in enumerate(items) if item.tags.get(tag, "") == value]
        found[value] = accuracy([right[i] for i in chosen], [items[i].asked.video for i in chosen])
    return found


def _plain(text: str) -> str:
    words = re.sub(r"[^\w\s]", " ", text.lower()).split()
    return " ".join(word for word in words if word not in ("a", "an", "the"))
