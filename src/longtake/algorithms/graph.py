"""A graph of scenes over which relevance spreads (VideoDetective, 3.2.2, 3.3.3 and appendix C).

Edges connect scenes that look alike or lie close in time. What is known about a few scenes is
diffused to the others; Graph-NMS then selects scenes that are relevant and unlike each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]

BATCH = 1024
"""Rows whose weights are computed at a time; memory stays linear in the number of scenes."""


@dataclass(frozen=True)
class Edges:
    """The positive entries of a square matrix, row by row; in a film's graph, a dozen per row."""

    count: int
    rows: Ints
    columns: Ints
    weights: Floats

    @classmethod
    def summed(cls, count: int, rows: Ints, columns: Ints, weights: Floats) -> Edges:
        """Build from entries in any order; entries at the same position are added."""
        # one number per position, so that np.unique both sorts by row and finds repeats
        positions, where = np.unique(rows * count + columns, return_inverse=True)
        sums = np.asarray(np.bincount(where, weights, len(positions)), np.float64)
        return cls(count, positions // count, positions % count, sums)

    def __matmul__(self, vector: Floats) -> Floats:
        """Multiply the matrix by a vector."""
        products = self.weights * vector[self.columns]
        return np.asarray(np.bincount(self.rows, products, self.count), np.float64)

    def of(self, node: int) -> tuple[Ints, Floats]:
        """Return the columns and weights of a row."""
        begin, end = np.searchsorted(self.rows, [node, node + 1])
        return self.columns[begin:end], self.weights[begin:end]

    def dense(self) -> Floats:
        """Return the full matrix."""
        matrix = np.zeros((self.count, self.count))
        matrix[self.rows, self.columns] = self.weights
        return matrix


def visual(one: NDArray[np.floating], other: NDArray[np.floating]) -> Floats:
    """Eq. 1: (W^sim)_ij = max{0, ⟨h_i, h_j⟩}."""
    return np.maximum(0.0, np.asarray(one @ other.T, np.float64))


def temporal(one: NDArray[np.floating], other: NDArray[np.floating], tau: float) -> Floats:
    """Eq. 2: (W^time)_ij = exp(−|t_i − t_j| / τ)."""
    return np.asarray(np.exp(-np.abs(np.subtract.outer(one, other)) / tau), np.float64)


def affinity(
    vectors: NDArray[np.floating],
    centres: NDArray[np.floating],
    *,
    alpha: float = 0.6,
    tau: float = 30.0,
    top: int = 8,
) -> Edges:
    """W̃: αW^sim + (1 − α)W^time without self-loops, the ``top`` of each row, then (W̃ + W̃ᵀ)/2."""
    count = len(vectors)
    rows, columns, weights = [], [], []
    for begin in range(0, count, BATCH):
        part = slice(begin, min(begin + BATCH, count))
        w_sim = visual(vectors[part], vectors)
        w_time = temporal(centres[part], centres, tau)
        batch = alpha * w_sim + (1 - alpha) * w_time
        row_numbers = np.arange(len(batch))
        batch[row_numbers, begin + row_numbers] = 0.0  # no self-loops
        row, column = np.nonzero(strongest(batch, top))
        rows.append(row + begin)
        columns.append(column)
        weights.append(batch[row, column])
    one, other = np.concatenate(rows), np.concatenate(columns)
    half = np.concatenate(weights) / 2
    # each edge goes in both directions; where both ends chose it, the halves add up
    return Edges.summed(
        count,
        np.concatenate([one, other]),
        np.concatenate([other, one]),
        np.concatenate([half, half]),
    )


def strongest(weights: Floats, top: int) -> NDArray[np.bool_]:
    """Mark the positive entries that are among the ``top`` of their row; ties go to the left."""
    if weights.shape[1] <= top:
        return weights > 0
    bar = -np.partition(-weights, top - 1, axis=1)[:, top - 1 : top]
    above, equal = weights > bar, weights == bar
    room = top - above.sum(axis=1, keepdims=True)
    admitted = equal & (np.cumsum(equal, axis=1) <= room)
    return np.asarray((above | admitted) & (weights > 0))


def normalise(weights: Edges) -> Edges:
    """Eq. 3: D^(−1/2) W̃ D^(−1/2); the row of a scene without edges stays zero."""
    degrees = weights @ np.ones(weights.count)
    divisors = np.where(degrees > 0, degrees, 1.0)
    scale = np.where(degrees > 0, 1 / np.sqrt(divisors), 0.0)
    scaled = scale[weights.rows] * weights.weights * scale[weights.columns]
    return replace(weights, weights=scaled)


def diffuse(
    weights: Edges, injected: Floats, start: Floats, *, beta: float = 0.6, steps: int = 7
) -> Floats:
    """Eq. 13, repeated ``steps`` times from ``start``: F ← βW_norm F + (1 − β)Y.

    When it starts from the last belief, an update after an observation costs O(steps · K · top).
    Each step multiplies the distance to the limit (1 − β)(I − βW_norm)⁻¹Y by at most β, since no
    eigenvalue of W_norm exceeds 1.
    """
    belief = start
    for _ in range(steps):
        belief = beta * (weights @ belief) + (1 - beta) * injected
    return belief


def graph_nms(
    belief: Floats, channels: Floats, weights: Edges, *, most: int = 8, eta: float = 0.2
) -> list[int]:
    """Algorithm 2: the best scene of each facet, then those of highest belief.

    A scene chosen by belief damps its neighbours by ``eta``. ``channels`` holds (Y_r)_i, a row per
    facet. If the facets alone give more than ``most`` scenes, those with the highest (Y_r)_i · F_i
    stay.
    """
    damped = np.array(belief, np.float64)
    chosen = _representatives(damped, channels, most)
    while len(chosen) < min(most, len(damped)):
        candidates = damped.copy()
        candidates[chosen] = -np.inf
        best = int(candidates.argmax())
        if damped[best] <= 0:
            break  # the rest is irrelevant
        chosen.append(best)
        neighbours, _ = weights.of(best)
        damped[neighbours] *= eta  # similar scenes add little
    return chosen


def _representatives(belief: Floats, channels: Floats, most: int) -> list[int]:
    """Lines 3 to 6: the best scene of each facet, highest product first."""
    products = channels * belief
    best = [(float(row.max()), int(row.argmax())) for row in products]
    ranked = [node for _, node in sorted(best, key=lambda one: -one[0])]
    return list(dict.fromkeys(ranked))[:most]  # several facets may share a scene


def strongest_neighbour(
    weights: Edges, node: int, belief: Floats, open_: NDArray[np.bool_]
) -> int | None:
    """Eq. 6: arg max of W̃_ij · F_j over unvisited j with W̃_ij > 0; ``None`` if there is none."""
    best: tuple[float, float, int] | None = None
    for j, weight in zip(*weights.of(node), strict=True):
        if open_[j] and weight > 0:
            # ties go to the stronger edge, then to the earlier scene
            rank = (weight * belief[j], weight, -int(j))
            best = rank if best is None else max(best, rank)
    return None if best is None else -best[2]


def most_believed(belief: Floats, open_: NDArray[np.bool_]) -> int | None:
    """Eq. 7: the unvisited scene of highest belief; ``None`` if all were visited."""
    if not open_.any():
        return None
    return int(np.where(open_, belief, -np.inf).argmax())


def in_order(selected: Sequence[int], belief: Floats) -> list[int]:
    """Sort selected scenes by descending belief."""
    return sorted(selected, key=lambda node: (-float(belief[node]), node))
