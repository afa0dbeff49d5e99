"""The frames that an answer is given from: relevant ones first, no two alike, exactly as many as wanted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from longtake.algorithms import sampling


@dataclass(frozen=True)
class FrameRule:
    """How final frames are chosen (VideoDetective, table 7)."""

    per_package: int = 4
    """Frames of each selected scene (n_f)."""
    duplicate: float = 0.92
    """Cosine to a chosen frame above which a scene's frame is passed over …"""
    relaxed: float = 0.95
    """… and above which it is passed over the second time."""
    similar: float = 0.90
    """Cosine below which any other frame of the film may still be taken."""
    diversity: float = 0.7
    """Weight of being unlike what was chosen, against relevance, among those."""

    def __call__(
        self,
        vectors: NDArray[np.floating],
        packages: Sequence[tuple[int, int]],
        relevance: NDArray[np.float64],
        *,
        count: int,
        uniform: int,
    ) -> list[int]:
        """``count`` frames in order, fewer only if there are no more; ``packages`` are spans, the best first."""
        chosen = _Chosen(vectors, count)
        chosen.take(sampling.uniform(len(vectors), min(uniform, count)).tolist())
        candidates = [
            row
            for a, b in packages
            for row in (a + sampling.uniform(b - a, self.per_package)).tolist()
        ]
        for limit in (self.duplicate, self.relaxed):
            for row in candidates:
                if chosen.closest[row] <= limit:
                    chosen.take([row])
        while not chosen.full:
            open_ = chosen.free & (chosen.closest < self.similar)
            if not open_.any():
                break
            worth = self.diversity * (1 - chosen.closest) + (1 - self.diversity) * relevance
            chosen.take([int(np.where(open_, worth, -np.inf).argmax())])
        rest = np.flatnonzero(chosen.free)
        chosen.take(rest[sampling.uniform(len(rest), count - len(chosen.rows))].tolist())
        return sorted(chosen.rows)


class _Chosen:
    """Frames chosen so far, and how close every frame is to the closest of them."""

    def __init__(self, vectors: NDArray[np.floating], count: int) -> None:
        self._vectors, self._count = vectors, count
        self.rows: list[int] = []
        self.free = np.ones(len(vectors), np.bool_)
        self.closest = np.full(len(vectors), -1.0)

    @property
    def full(self) -> bool:
        return len(self.rows) >= self._count

    def take(self, rows: Sequence[int]) -> None:
        for row in rows:
            if self.free[row] and not self.full:
                self.rows.append(row)
                self.free[row] = False
                self.closest = np.maximum(self.closest, self._vectors @ self._vectors[row])
