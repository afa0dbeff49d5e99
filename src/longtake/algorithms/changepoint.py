"""Finds where a sequence changes: PELT for signals, checkerboard and KTS for embeddings.

These are the three heads of A4VL's event partition (appendix D). A cut lies between two items: cut
``k`` comes before item ``k``, so its two sides are ``x[:k]`` and ``x[k:]``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]


def pelt(signal: Floats, penalty: float, min_size: int) -> list[int]:
    """Find the cuts that minimise ``Σ_segments Σ_j (s_j − mean)² + penalty · |cuts|``.

    No segment is shorter than ``min_size``. The result is exact, by dynamic programming: the best
    cuts of ``s[:end]`` extend the best cuts of some shorter ``s[:start]``. The signals have at most
    a few hundred values, so PELT's pruning of starts would save nothing over one array operation
    that weighs them all.
    """
    min_size, count = max(1, min_size), len(signal)
    # centring keeps the sums of squares small, and with them the rounding
    centred = np.asarray(signal, np.float64) - np.mean(signal) if count else signal
    sums = np.concatenate(([0.0], np.cumsum(centred)))
    squares = np.concatenate(([0.0], np.cumsum(centred**2)))
    lowest = np.full(count + 1, np.inf)
    lowest[0] = -penalty  # the first segment has no cut before it
    begins = np.zeros(count + 1, np.int64)
    for end in range(min_size, count + 1):
        starts = np.arange(end - min_size + 1)
        spread = squares[end] - squares[starts] - (sums[end] - sums[starts]) ** 2 / (end - starts)
        costs = lowest[starts] + spread + penalty
        begins[end] = np.argmin(costs)
        lowest[end] = costs[begins[end]]
    cuts, end = [], count
    while end > 0:  # walk back from the end, segment by segment
        end = int(begins[end])
        cuts.append(end)
    return sorted(cuts)[1:]  # the first one is the start of the signal, which is no cut


def local_strength(signal: Floats, cut: int, window: int) -> float:
    """``γ_k = |mean(s_k … s_{k+W−1}) − mean(s_{k−W} … s_{k−1})|``, windows clipped at both ends."""
    before, after = signal[max(0, cut - window) : cut], signal[cut : cut + window]
    if len(before) == 0 or len(after) == 0:
        return 0.0
    return float(abs(after.mean() - before.mean()))


def gram(rows: Floats) -> Floats:
    """``S_pq = ⟨ê_p, ê_q⟩`` of rows normalised to unit length; a row of zeros has cosine 0."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    unit = np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0)
    return np.asarray(unit @ unit.T)


def checkerboard(half: int, sigma: float = 0.5) -> Floats:
    """Foote's kernel, 2w × 2w: +1 on one side, −1 across, tapered by a Gaussian of σ·w."""
    offsets = np.arange(2 * half) - half + 0.5
    taper = np.exp(-(offsets**2) / (2 * (half * sigma) ** 2))
    signed = np.sign(offsets) * taper
    return np.asarray(np.outer(signed, signed))


def ssm_novelty(similarity: Floats, half: int, sigma: float = 0.5) -> Floats:
    """``n_c = Σ_ij K_ij S_{c+i−w, c+j−w}`` for the cuts ``c = w … Q − w`` where the kernel fits."""
    kernel = checkerboard(half, sigma)
    return _along_diagonal(similarity, half, lambda window: float((kernel * window).sum()))


def ssm_contrast(similarity: Floats, half: int) -> Floats:
    """Mean cosine of frames on the same side of a cut, minus the mean cosine of frames across it.

    Uses the windows of :func:`ssm_novelty` without the taper, and ignores the similarity of a frame
    to itself, so that a film that does not change has contrast 0 whatever its noise.
    """
    side = np.arange(2 * half) < half
    across = side[:, None] != side[None, :]
    within = ~across & ~np.eye(2 * half, dtype=bool)

    def contrast(window: Floats) -> float:
        return float(window[within].mean() - window[across].mean())

    return _along_diagonal(similarity, half, contrast)


def peaks(values: Floats, apart: int, quantile: float) -> list[int]:
    """Find local maxima above a quantile; of two closer than ``apart`` the higher one stays."""
    if len(values) == 0:
        return []
    left = np.concatenate(([-np.inf], values[:-1]))
    right = np.concatenate((values[1:], [-np.inf]))
    # a plateau counts at its first place; a flat line exceeds no quantile of itself
    high = (values > left) & (values >= right) & (values > np.quantile(values, quantile))
    kept: list[int] = []
    for place in sorted(np.flatnonzero(high).tolist(), key=lambda c: (-values[c], c)):
        if all(abs(place - other) >= apart for other in kept):
            kept.append(place)
    return sorted(kept)


class SegmentCost:
    """``C(a, b) = −mean of G over [a, b] × [a, b]``, in O(1) each from the integral image of G."""

    def __init__(self, similarity: Floats) -> None:
        self._sums = np.zeros((len(similarity) + 1, len(similarity) + 1))
        self._sums[1:, 1:] = similarity.cumsum(axis=0).cumsum(axis=1)

    def __call__(self, first: Ints | int, last: Ints | int) -> Floats:
        """Return the cost of the segments from ``first`` to ``last`` inclusive, elementwise."""
        a, b = np.asarray(first, np.int64), np.asarray(last, np.int64) + 1
        sums = self._sums
        inside = sums[b, b] - sums[a, b] - sums[b, a] + sums[a, a]
        return np.asarray(-inside / (b - a) ** 2, np.float64)


def kts(
    similarity: Floats,
    penalty: Callable[[float], float],
    min_size: int = 1,
    *,
    max_cuts: int | None = None,
    ends: Callable[[int, int], Ints] | None = None,
) -> list[int]:
    """Split recursively where ``C(a, b) − C(a, k) − C(k + 1, b) − λ`` is largest and positive.

    ``penalty`` computes λ from the cost ``C(a, b)`` of the segment being split. Neither side may be
    shorter than ``min_size``, or ``ends`` names every allowed ``k``. ``max_cuts`` limits the number
    of splits; left segments go first.
    """
    if len(similarity) == 0:
        return []
    cost, min_size = SegmentCost(similarity), max(1, min_size)
    if ends is None:

        def ends(a: int, b: int) -> Ints:
            return np.arange(a + min_size - 1, b - min_size + 1, dtype=np.int64)

    cuts: list[int] = []
    todo = [(0, len(similarity) - 1)]
    while todo and (max_cuts is None or len(cuts) < max_cuts):
        a, b = todo.pop()
        last = ends(a, b)
        if len(last) == 0:
            continue
        whole = float(cost(a, b))
        gains = whole - cost(a, last) - cost(last + 1, b) - penalty(whole)
        best = int(np.argmax(gains))
        # rounding in the integral image must not split a segment of identical items
        if gains[best] > 1e-9:
            cut = int(last[best]) + 1
            cuts.append(cut)
            todo += [(cut, b), (a, cut - 1)]  # a stack: the left part is next
    return sorted(cuts)


def bins_of(seconds: float, step: float) -> int:
    """Number of items of ``step`` seconds that together last at least ``seconds``."""
    return max(1, math.ceil(seconds / step - 1e-9))


def _along_diagonal(similarity: Floats, half: int, measure: Callable[[Floats], float]) -> Floats:
    """Apply ``measure`` to the 2w × 2w window around every cut where it fits."""
    measured = []
    for cut in range(half, len(similarity) - half + 1):
        side = slice(cut - half, cut + half)
        measured.append(measure(similarity[side, side]))
    return np.asarray(measured, np.float64)
