"""Samples indices."""

from __future__ import annotations

from random import Random

import numpy as np
from numpy.typing import NDArray


def uniform(count: int, n: int) -> NDArray[np.int64]:
    """Return ``n`` indices spread evenly over ``count`` items including both ends, or all.

    ::

        uniform(9, 3)   x . . . x . . . x      n = 1 gives the middle
    """
    if n <= 0 or count <= 0:
        return np.zeros(0, dtype=np.int64)
    if n == 1:
        return np.array([(count - 1) // 2], dtype=np.int64)
    if n >= count:
        return np.arange(count, dtype=np.int64)
    return np.linspace(0, count - 1, n).astype(np.int64)


def one_per_bin(count: int, n: int, chance: Random) -> NDArray[np.int64]:
    """Draw one index below ``count`` from each of ``n`` equal bins, ascending; or return all."""
    if n <= 0 or count <= 0:
        return np.zeros(0, dtype=np.int64)
    bins = np.array_split(np.arange(count), min(n, count))
    return np.array([chance.choice(part.tolist()) for part in bins], dtype=np.int64)
