"""Which parts of a film fit a text: LVAgent's retrieval over equal chunks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from random import Random

import numpy as np
from numpy.typing import NDArray

from longtake.types import Segment

FLAT = 1e-6
"""Similarities that differ by less are equal: float32 holds no more."""


def equal(duration: float, count: int) -> list[Segment]:
    """The film in ``count`` chunks of equal length."""
    edges = [duration * number / count for number in range(count + 1)]
    return [Segment(start, end) for start, end in pairwise(edges)]


def draw(rows: Sequence[int], n: int, chance: Random) -> list[int]:
    """``n`` different ones at random, ascending; all where there are fewer."""
    return sorted(chance.sample(list(rows), min(n, len(rows))))


def minmax(similarity: NDArray[np.floating]) -> NDArray[np.float64]:
    """Similarities of all chunks with one text, spread over [0, 1]; 0.5 each where all are equal."""
    low, high = float(similarity.min()), float(similarity.max())
    if high - low <= FLAT:
        return np.full(len(similarity), 0.5)
    return np.asarray((similarity - low) / (high - low), np.float64)


def between(similarity: NDArray[np.floating], low: float, high: float) -> NDArray[np.float64]:
    """Similarities on a scale of which both ends are known: 0 up to ``low``, 1 from ``high`` on."""
    return np.asarray(np.clip((similarity - low) / (high - low), 0.0, 1.0), np.float64)


def overall(
    similarities: NDArray[np.floating],
    scale: tuple[float, float] | None = None,
    *,
    calibrate: bool = True,
) -> NDArray[np.float64]:
    """LVAgent, equation 5: ``Sim(chk_i) = ASP(f_i, K) + ASP(f_i, Q)``, a row per chunk, a column per text.

    A threshold of 0.8 presumes scores in [0, 1]. So each column is brought there first, by the known ends of its
    scale or else over the chunks of the film, and the mean stands for the sum. Without calibration it is the sum.
    """
    if not calibrate:
        return np.asarray(similarities.sum(axis=1), np.float64)
    columns = [
        minmax(column) if scale is None else between(column, *scale) for column in similarities.T
    ]
    return np.asarray(np.mean(columns, axis=0), np.float64)


def chosen(scores: Sequence[float] | NDArray[np.floating], threshold: float | None) -> list[int]:
    """The chunks whose score exceeds the threshold, in time order; the best one where none does, or without one."""
    above = (
        []
        if threshold is None
        else [number for number, score in enumerate(scores) if score > threshold]
    )
    return above or [int(np.argmax(scores))]
