"""Selects the frames an answer is based on: relevant, diverse, and exactly as many as asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from longtake.algorithms import sampling


@dataclass(frozen=True)
class FrameRule:
    """How the final frames are chosen (VideoDetective, table 7)."""

    per_package: int = 4
    """Frames per selected scene (n_f)."""
    duplicate: float = 0.92
    """A scene's frame is skipped if its cosine to a chosen frame exceeds this …"""
    relaxed: float = 0.95
    """… and in a second pass, if it exceeds this."""
    similar: float = 0.90
    """Any other frame of the film must have cosines to all chosen frames below this."""
    diversity: float = 0.7
    """Among those frames, the weight of being unlike the chosen ones, against relevance."""

    def __call__(
        self,
        vectors: NDArray[np.floating],
        packages: Sequence[tuple[int, int]],
        relevance: NDArray[np.float64],
        *,
        count: int,
        uniform: int,
    ) -> list[int]:
        """Return ``count`` frames in order, or all if the film has fewer.

        ``uniform`` of them are spread over the film first. ``packages`` are the frame spans of the
        selected scenes, best first.
        """
        chosen = _Chosen(vectors, count)
        chosen.take(sampling.uniform(len(vectors), min(uniform, count)).tolist())
        candidates: list[int] = []
        for begin, end in packages:
            candidates += (begin + sampling.uniform(end - begin, self.per_package)).tolist()
        for limit in (self.duplicate, self.relaxed):
            for row in candidates:
                if chosen.closest[row] <= limit:
                    chosen.take([row])
        self._diversify(chosen, relevance)
        # what is left resembles something chosen; spread it evenly
        rest = np.flatnonzero(chosen.free)
        chosen.take(rest[sampling.uniform(len(rest), count - len(chosen.rows))].tolist())
        return sorted(chosen.rows)

    def _diversify(self, chosen: _Chosen, relevance: NDArray[np.float64]) -> None:
        """Add frames from anywhere in the film, those of highest worth first."""
        while not chosen.full:
            open_ = chosen.free & (chosen.closest < self.similar)
            if not open_.any():
                break
            worth = self.diversity * (1 - chosen.closest) + (1 - self.diversity) * relevance
            chosen.take([int(np.where(open_, worth, -np.inf).argmax())])


class _Chosen:
    """The frames chosen so far, and every frame's cosine to the closest of them."""

    def __init__(self, vectors: NDArray[np.floating], count: int) -> None:
        self._vectors, self._count = vectors, count
        self.rows: list[int] = []
        self.free = np.ones(len(vectors), np.bool_)
        self.closest = np.full(len(vectors), -1.0)  # the lowest cosine: nothing is close yet

    @property
    def full(self) -> bool:
        return len(self.rows) >= self._count

    def take(self, rows: Sequence[int]) -> None:
        """Choose the rows that are not chosen yet, while there is room."""
        for row in rows:
            if self.free[row] and not self.full:
                self.rows.append(row)
                self.free[row] = False
                self.closest = np.maximum(self.closest, self._vectors @ self._vectors[row])
