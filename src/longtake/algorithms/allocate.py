"""How many frames each part of a film gets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def shares(logits: Sequence[float], rho: float | None = None) -> NDArray[np.float64]:
    """A4VL, lines 12 to 14 and 17, 18: the softmax over the blocks whose logit exceeds ρ.

    Where none does, everything goes to the best one. Without a ρ no block is excluded.
    """
    s = np.asarray(logits, np.float64)
    if rho is not None and s.max() <= rho:  # 17, 18
        return np.asarray(np.arange(len(s)) == s.argmax(), np.float64)
    kept = np.where(s > rho, s, -np.inf) if rho is not None else s  # 12, 13
    weights = np.exp(kept - kept.max())  # 14
    return np.asarray(weights / weights.sum())


def counts(share: NDArray[np.float64], total: int, room: Sequence[int]) -> list[int]:
    """A4VL, line 15: ``⌊N2 · share⌋`` each, the rest to the largest remainders; exactly ``total`` in all.

    With more parts to choose from than frames, the best get one each. No part gets more than its ``room``;
    what it cannot take goes to the others in proportion, so that fewer than ``total`` are used only where the
    parts together hold fewer.
    """
    chosen = np.flatnonzero(share > 0)
    if len(chosen) > total:
        best = set(chosen[np.argsort(-share[chosen], kind="stable")][:total].tolist())
        share = np.array([1.0 if part in best else 0.0 for part in range(len(share))])
    given = np.zeros(len(share), np.int64)
    limit = np.where(share > 0, np.asarray(room, np.int64), 0)
    total = min(total, int(limit.sum()))
    while (left := total - int(given.sum())) > 0:
        open_share = np.where(given < limit, share, 0.0)
        given = np.minimum(given + _largest_remainders(open_share, left), limit)
    return [int(n) for n in given]


def _largest_remainders(share: NDArray[np.float64], total: int) -> NDArray[np.int64]:
    exact = share / share.sum() * total
    floors = np.floor(exact + 1e-9).astype(np.int64)
    order = np.argsort(-(exact - floors), kind="stable")
    order = order[share[order] > 0]
    floors[order[: total - int(floors.sum())]] += 1
    return np.asarray(floors, np.int64)
