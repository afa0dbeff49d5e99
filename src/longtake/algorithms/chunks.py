"""Selects the parts of a film that match a text: LVAgent's retrieval over equal chunks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from random import Random

import numpy as np
from numpy.typing import NDArray

from longtake.types import Segment


def equal(duration: float, count: int) -> list[Segment]:
    """Divide the film into ``count`` chunks of equal length."""
    edges = [duration * number / count for number in range(count + 1)]
    return [Segment(start, end) for start, end in pairwise(edges)]


def draw(rows: Sequence[int], n: int, chance: Random) -> list[int]:
    """Draw ``n`` different rows at random, in ascending order; all if there are fewer."""
    # sample() rejects a size larger than the population
    return sorted(chance.sample(list(rows), min(n, len(rows))))


def minmax(similarity: NDArray[np.floating]) -> NDArray[np.float64]:
    """Rescale the similarities of all chunks with one text to [0, 1]; 0.5 each if all are equal."""
    low, high = float(similarity.min()), float(similarity.max())
    # float32 is not more precise than this
    if high - low <= 1e-6:
        return np.full(len(similarity), 0.5)  # no chunk is better or worse than another
    return np.asarray((similarity - low) / (high - low), np.float64)


def between(similarity: NDArray[np.floating], low: float, high: float) -> NDArray[np.float64]:
    """Rescale similarities from a known range to [0, 1]: 0 up to ``low``, 1 from ``high`` on."""
    return np.asarray(np.clip((similarity - low) / (high - low), 0.0, 1.0), np.float64)


def overall(
    similarities: NDArray[np.floating],
    scale: tuple[float, float] | None = None,
    *,
    calibrate: bool = True,
) -> NDArray[np.float64]:
    """LVAgent, equation 5: ``Sim(chk_i) = ASP(f_i, K) + ASP(f_i, Q)``.

    ``similarities`` has a row per chunk and a column per text. The paper's threshold of 0.8 assumes
    scores in [0, 1], so each column is first rescaled to that range (from ``scale`` if it is known,
    otherwise over the chunks of the film) and averaged instead of summed. Without ``calibrate`` the
    result is the plain sum.
    """
    if not calibrate:
        return np.asarray(similarities.sum(axis=1), np.float64)
    if scale is None:
        columns = [minmax(column) for column in similarities.T]
    else:
        columns = [between(column, *scale) for column in similarities.T]
    return np.asarray(np.mean(columns, axis=0), np.float64)


def chosen(scores: Sequence[float] | NDArray[np.floating], threshold: float | None) -> list[int]:
    """Return the chunks whose score exceeds the threshold, in time order.

    If there is no such chunk, or no threshold, return the best one.
    """
    above: list[int] = []
    if threshold is not None:
        above = [number for number, score in enumerate(scores) if score > threshold]
    return above or [int(np.argmax(scores))]
