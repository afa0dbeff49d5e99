"""Sampling of frames: evenly, one per bin, or in proportion to a block's similarity (A4VL); and
LVAgent's choice of the chunks that match a text."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from random import Random
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from longtake.types import Segment


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


def starts(count: int, n: int) -> NDArray[np.int64]:
    """Return the first index of each of ``n`` equal stretches of ``count`` items, or all.

    ::

        starts(9, 3)    x . . x . . x . .      never the last item
    """
    n = max(0, min(n, count))
    return np.arange(n, dtype=np.int64) * count // max(1, n)


Bins: TypeAlias = Literal["equal", "rest_last"]


def bins(count: int, n: int, kind: Bins = "equal") -> list[NDArray[np.int64]]:
    """Divide ``count`` items into ``n`` bins, or one per item.

    The rest of the division is spread over the first bins, or all goes into the last one.
    """
    n = max(1, min(n, count))
    if kind == "equal":
        return np.array_split(np.arange(count), n)
    return np.split(np.arange(count), np.arange(1, n) * (count // n))


def one_per_bin(count: int, n: int, chance: Random, kind: Bins = "equal") -> NDArray[np.int64]:
    """Draw one index below ``count`` from each of ``n`` bins, ascending; or return all."""
    if n <= 0 or count <= 0:
        return np.zeros(0, dtype=np.int64)
    drawn = [chance.choice(part.tolist()) for part in bins(count, n, kind)]
    return np.array(drawn, dtype=np.int64)


def shares(logits: Sequence[float], rho: float | None = None) -> NDArray[np.float64]:
    """A4VL, lines 12 to 14, 17 and 18: the softmax over the blocks whose logit exceeds ρ.

    If no logit does, the best block gets everything. Without ρ, no block is excluded.
    """
    s = np.asarray(logits, np.float64)
    if rho is not None:
        if s.max() <= rho:  # 17, 18
            return np.asarray(np.arange(len(s)) == s.argmax(), np.float64)
        s = np.where(s > rho, s, -np.inf)  # 12, 13
    weights = np.exp(s - s.max())  # 14; the shift avoids overflow and cancels out
    return np.asarray(weights / weights.sum())


def counts(share: NDArray[np.float64], total: int, room: Sequence[int]) -> list[int]:
    """A4VL, line 15: ``⌊N2 · share⌋`` each, the rest to the largest remainders.

    If at least as many blocks have a share as there are frames, the best get one frame each. No
    block gets more than its ``room``; the excess goes to the others in proportion, so the counts
    add up to ``total`` unless all blocks are full.
    """
    chosen = np.flatnonzero(share > 0)
    if len(chosen) >= total:
        by_share = chosen[np.argsort(-share[chosen], kind="stable")]
        share = np.zeros(len(share))
        share[by_share[:total]] = 1.0
    given = np.zeros(len(share), np.int64)
    limit = np.where(share > 0, np.asarray(room, np.int64), 0)
    total = min(total, int(limit.sum()))
    # each pass fills at least one block or gives out everything that is left
    while (left := total - int(given.sum())) > 0:
        open_share = np.where(given < limit, share, 0.0)
        given = np.minimum(given + _largest_remainders(open_share, left), limit)
    return [int(n) for n in given]


def _largest_remainders(share: NDArray[np.float64], total: int) -> NDArray[np.int64]:
    exact = share / share.sum() * total
    floors = np.floor(exact + 1e-9).astype(np.int64)  # 2.9999999998 is a 3 that was rounded
    order = np.argsort(-(exact - floors), kind="stable")
    order = order[share[order] > 0]
    floors[order[: total - int(floors.sum())]] += 1
    return np.asarray(floors, np.int64)


def equal_chunks(duration: float, count: int) -> list[Segment]:
    """Divide the film into ``count`` chunks of equal length."""
    edges = [duration * number / count for number in range(count + 1)]
    return [Segment(start, end) for start, end in pairwise(edges)]


def inner_chunks(count: int, chunks: int) -> list[range]:
    """Divide ``count`` items into chunks of ``count // chunks``, each without its last item.

    ::

        inner_chunks(14, 3)   x x x . x x x . x x x . . .
    """
    size = count // chunks
    return [range(n * size, (n + 1) * size - 1) for n in range(chunks)]


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
    return between(similarity, low, high)


def between(similarity: NDArray[np.floating], low: float, high: float) -> NDArray[np.float64]:
    """Rescale similarities from a known range to [0, 1]: 0 up to ``low``, 1 from ``high`` on."""
    return np.asarray(np.clip((similarity - low) / (high - low), 0.0, 1.0), np.float64)


def chunk_scores(
    similarities: NDArray[np.floating],
    scale: tuple[float, float] | None = None,
    *,
    calibrate: bool = True,
) -> NDArray[np.float64]:
    """LVAgent, equation 5: ``Sim(chk_i) = ASP(f_i, K) + ASP(f_i, Q)``.

    ``similarities`` has a row per chunk and a column per text. The paper's threshold of 0.8 assumes
    scores in [0, 1]. Each column is therefore rescaled to that range, from ``scale`` or else over
    the chunks of the film, and the sum becomes a mean. Without ``calibrate`` it is the plain sum.
    """
    if not calibrate:
        return np.asarray(similarities.sum(axis=1), np.float64)
    if scale is None:
        columns = [minmax(column) for column in similarities.T]
    else:
        columns = [between(column, *scale) for column in similarities.T]
    return np.asarray(np.mean(columns, axis=0), np.float64)


def chosen_chunks(
    scores: Sequence[float] | NDArray[np.floating], threshold: float | None
) -> list[int]:
    """Return the chunks whose score exceeds the threshold, in time order.

    If there is no such chunk, or no threshold, return the best one.
    """
    above: list[int] = []
    if threshold is not None:
        above = [number for number, score in enumerate(scores) if score > threshold]
    return above or [int(np.argmax(scores))]
