"""A graph of scenes, and relevance that spreads over it (VideoDetective, 3.2.2, 3.3.3, appendix C).

Edges connect scenes that look alike or lie close in time. What is known about a few scenes is
diffused to the others; Graph-NMS then selects scenes that are relevant and unlike each other.
Graphs are dense matrices: a scene lasts at least ten seconds by default, so a film of ten hours has
at most 3,600 scenes.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]


def visual(vectors: NDArray[np.floating]) -> Floats:
    """Eq. 1: (W^sim)_ij = max{0, ⟨h_i, h_j⟩}."""
    return np.maximum(0.0, np.asarray(vectors @ vectors.T, np.float64))


def temporal(centres: NDArray[np.floating], tau: float) -> Floats:
    """Eq. 2: (W^time)_ij = exp(−|t_i − t_j| / τ)."""
    return np.asarray(np.exp(-np.abs(np.subtract.outer(centres, centres)) / tau), np.float64)


def affinity(
    vectors: NDArray[np.floating],
    centres: NDArray[np.floating],
    *,
    alpha: float = 0.6,
    tau: float = 30.0,
    top: int = 8,
) -> Floats:
    """W̃: αW^sim + (1 − α)W^time without self-loops, the ``top`` of each row, then (W̃ + W̃ᵀ)/2."""
    weights = alpha * visual(vectors) + (1 - alpha) * temporal(centres, tau)
    np.fill_diagonal(weights, 0.0)
    kept = np.where(strongest(weights, top), weights, 0.0)
    return np.asarray((kept + kept.T) / 2)


def strongest(weights: Floats, top: int) -> NDArray[np.bool_]:
    """Mark the positive entries that are among the ``top`` of their row; ties go to the left."""
    if weights.shape[1] <= top:
        return weights > 0
    bar = -np.partition(-weights, top - 1, axis=1)[:, top - 1 : top]
    above, equal = weights > bar, weights == bar
    room = top - above.sum(axis=1, keepdims=True)
    admitted = equal & (np.cumsum(equal, axis=1) <= room)
    return np.asarray((above | admitted) & (weights > 0))


def normalise(weights: Floats) -> Floats:
    """Eq. 3: D^(−1/2) W̃ D^(−1/2); the row of a scene without edges stays zero."""
    degrees = weights.sum(axis=1)
    # the edges of a scene without any are zero, whatever they are divided by
    scale = 1 / np.sqrt(np.where(degrees > 0, degrees, 1.0))
    return np.asarray(scale[:, None] * weights * scale)


def diffuse(
    weights: Floats, injected: Floats, start: Floats, *, beta: float = 0.6, steps: int = 7
) -> Floats:
    """Eq. 13, repeated ``steps`` times from ``start``: F ← βW_norm F + (1 − β)Y.

    Each step multiplies the distance to the limit (1 − β)(I − βW_norm)⁻¹Y by at most β, since no
    eigenvalue of W_norm exceeds 1. Starting from the last belief, few steps are therefore enough.
    """
    belief = start
    for _ in range(steps):
        belief = beta * (weights @ belief) + (1 - beta) * injected
    return belief


def graph_nms(
    belief: Floats, channels: Floats, weights: Floats, *, max_scenes: int = 8, eta: float = 0.2
) -> list[int]:
    """Algorithm 2: the best scene of each facet, then those of highest belief.

    A scene chosen by belief damps its neighbours by ``eta``. ``channels`` holds (Y_r)_i, a row per
    facet. If the facets alone give more than ``max_scenes``, those with the highest (Y_r)_i · F_i
    stay.
    """
    damped = np.array(belief, np.float64)
    chosen = _representatives(damped, channels, max_scenes)
    while len(chosen) < min(max_scenes, len(damped)):
        candidates = damped.copy()
        candidates[chosen] = -np.inf
        best = int(candidates.argmax())
        if damped[best] <= 0:
            break  # the rest is irrelevant
        chosen.append(best)
        damped[weights[best] > 0] *= eta  # similar scenes add little
    return chosen


def _representatives(belief: Floats, channels: Floats, max_scenes: int) -> list[int]:
    """Lines 3 to 6: the best scene of each facet, highest product first."""
    products = channels * belief
    best = [(float(row.max()), int(row.argmax())) for row in products]
    ranked = [node for _, node in sorted(best, key=lambda one: -one[0])]
    return list(dict.fromkeys(ranked))[:max_scenes]  # several facets may share a scene


def strongest_neighbour(
    weights: Floats, node: int, belief: Floats, open_: NDArray[np.bool_]
) -> int | None:
    """Eq. 6: arg max of W̃_ij · F_j over unvisited j with W̃_ij > 0; ``None`` if there is none."""
    candidates = np.flatnonzero(open_ & (weights[node] > 0)).tolist()
    # ties go to the stronger edge, then to the earlier scene
    return max(
        candidates, key=lambda j: (weights[node, j] * belief[j], weights[node, j]), default=None
    )


def most_believed(belief: Floats, open_: NDArray[np.bool_]) -> int | None:
    """Eq. 7: the unvisited scene of highest belief; ``None`` if all were visited."""
    if not open_.any():
        return None
    return int(np.where(open_, belief, -np.inf).argmax())
