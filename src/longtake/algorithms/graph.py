"""Scenes as a graph over which relevance spreads (VideoDetective, sections 3.2.2, 3.3.3 and appendix C).

An edge is the weight of two scenes that look alike or lie close in time. What is known of a few scenes is diffused
to the others; Graph-NMS then picks scenes that are relevant and unlike each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]

BLOCK = 1024
"""Rows whose weights are held at once: memory stays linear in the number of scenes."""


@dataclass(frozen=True)
class Edges:
    """The entries above zero of a square matrix, row by row; a dozen a row in a film's graph."""

    count: int
    rows: Ints
    columns: Ints
    weights: Floats

    @classmethod
    def summed(cls, count: int, rows: Ints, columns: Ints, weights: Floats) -> Edges:
        """From entries in any order; those of one place are added."""
        places, where = np.unique(rows * count + columns, return_inverse=True)
        added = np.asarray(np.bincount(where, weights, len(places)), np.float64)
        return cls(count, places // count, places % count, added)

    def __matmul__(self, vector: Floats) -> Floats:
        """The matrix times a vector."""
        return np.asarray(
            np.bincount(self.rows, self.weights * vector[self.columns], self.count), np.float64
        )

    def of(self, node: int) -> tuple[Ints, Floats]:
        """A row's columns and weights."""
        begin, end = np.searchsorted(self.rows, [node, node + 1])
        return self.columns[begin:end], self.weights[begin:end]

    def dense(self) -> Floats:
        """The matrix with its zeros."""
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
    for begin in range(0, count, BLOCK):
        part = slice(begin, min(begin + BLOCK, count))
        block = alpha * visual(vectors[part], vectors) + (1 - alpha) * temporal(
            centres[part], centres, tau
        )
        own = np.arange(len(block))
        block[own, begin + own] = 0.0
        row, column = np.nonzero(strongest(block, top))
        rows.append(row + begin)
        columns.append(column)
        weights.append(block[row, column])
    one, other, half = np.concatenate(rows), np.concatenate(columns), np.concatenate(weights) / 2
    return Edges.summed(
        count,
        np.concatenate([one, other]),
        np.concatenate([other, one]),
        np.concatenate([half, half]),
    )


def strongest(weights: Floats, top: int) -> NDArray[np.bool_]:
    """Which entries are among the ``top`` of their row and above zero; of equals, those further left."""
    if weights.shape[1] <= top:
        return weights > 0
    least = -np.partition(-weights, top - 1, axis=1)[:, top - 1 : top]
    above, equal = weights > least, weights == least
    room = top - above.sum(axis=1, keepdims=True)
    return np.asarray((above | (equal & (np.cumsum(equal, axis=1) <= room))) & (weights > 0))


def normalise(weights: Edges) -> Edges:
    """Eq. 3: D^(−1/2) W̃ D^(−1/2); a scene without edges keeps a row of zeros."""
    degrees = weights @ np.ones(weights.count)
    scale = np.where(degrees > 0, 1 / np.sqrt(np.where(degrees > 0, degrees, 1.0)), 0.0)
    return replace(weights, weights=scale[weights.rows] * weights.weights * scale[weights.columns])


def diffuse(
    weights: Edges, injected: Floats, start: Floats, *, beta: float = 0.6, steps: int = 7
) -> Floats:
    """Eq. 13, ``steps`` times from ``start``: F ← βW_norm F + (1 − β)Y.

    Started from the last belief, each new observation costs O(steps · K · top). The distance to the limit
    (1 − β)(I − βW_norm)⁻¹Y shrinks at least by β a step, since no eigenvalue of W_norm exceeds 1.
    """
    belief = start
    for _ in range(steps):
        belief = beta * (weights @ belief) + (1 - beta) * injected
    return belief


def graph_nms(
    belief: Floats, channels: Floats, weights: Edges, *, most: int = 8, eta: float = 0.2
) -> list[int]:
    """Algorithm 2: each facet's best scene, then the most believed ones, each damping its neighbours by ``eta``.

    ``channels`` holds (Y_r)_i, a row per facet. Where facets alone would give more than ``most`` scenes, those of the
    highest (Y_r)_i · F_i stay.
    """
    left = np.array(belief, np.float64)
    chosen = _representatives(left, channels, most)
    while len(chosen) < most:
        open_ = left.copy()
        open_[chosen] = -np.inf
        best = int(open_.argmax()) if len(chosen) < len(left) else -1
        if best < 0 or left[best] <= 0:
            break
        chosen.append(best)
        neighbours, _ = weights.of(best)
        left[neighbours] *= eta
    return chosen


def _representatives(belief: Floats, channels: Floats, most: int) -> list[int]:
    """Lines 3 to 6, highest product first."""
    products = channels * belief
    best = [(float(row.max()), int(row.argmax())) for row in products]
    ranked = [node for _, node in sorted(best, key=lambda one: -one[0])]
    return list(dict.fromkeys(ranked))[:most]


def strongest_neighbour(
    weights: Edges, node: int, belief: Floats, open_: NDArray[np.bool_]
) -> int | None:
    """Eq. 6: arg max over unvisited j with W̃_ij > 0 of W̃_ij · F_j; ``None`` where there is no such j."""
    edges = [(w, int(j)) for j, w in zip(*weights.of(node), strict=True) if open_[j] and w > 0]
    if not edges:
        return None
    return max(edges, key=lambda edge: (edge[0] * belief[edge[1]], edge[0], -edge[1]))[1]


def most_believed(belief: Floats, open_: NDArray[np.bool_]) -> int | None:
    """Eq. 7: the unvisited scene of highest belief; ``None`` where all were visited."""
    return int(np.where(open_, belief, -np.inf).argmax()) if open_.any() else None


def in_order(selected: Sequence[int], belief: Floats) -> list[int]:
    """Selected scenes by descending belief."""
    return sorted(selected, key=lambda node: (-float(belief[node]), node))
