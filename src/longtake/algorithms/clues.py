"""VideoDetective: how relevant scenes are, whether to trust that, and the frames to answer from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from longtake.algorithms import sampling

Rows = NDArray[np.floating]


def prior(
    keyword: Rows, event: Rows, *, weight: float = 0.5, printed: bool = False
) -> NDArray[np.float64]:
    """Eq. 5, a row per facet: w · keyword–scene cosine + (1 − w) · query–event cosine.

    The paper adds raw cosines (``printed``). But cosines between pictures and words are far smaller
    than those between sentences, so by default the first are clipped at zero and the second are
    stretched to [0, 1] over the film.
    """
    if not printed:
        keyword, event = np.maximum(0.0, keyword), stretched(event)
    return np.asarray(weight * keyword + (1 - weight) * event, np.float64)


def stretched(values: Rows) -> NDArray[np.float64]:
    """Rescale each row to [0, 1]; a constant row becomes zeros."""
    lowest = values.min(axis=-1, keepdims=True)
    reach = values.max(axis=-1, keepdims=True) - lowest
    divisor = np.where(reach > 0, reach, 1.0)  # avoids 0/0, whose result is not used
    return np.asarray(np.where(reach > 0, (values - lowest) / divisor, 0.0), np.float64)


def pieces(text: str, words: int = 50) -> list[str]:
    """Divide a text into pieces of at most ``words`` words, which fit into a text encoder."""
    parts = text.split()
    return [" ".join(parts[at : at + words]) for at in range(0, len(parts), words)]


def semantic(text: Rows, queries: Rows) -> float:
    """Eq. 9: the highest cosine between a piece of the text and a query; 0 if either is empty.

    Both are matrices of unit rows.
    """
    if len(text) == 0 or len(queries) == 0:
        return 0.0
    return float((text @ queries.T).max())


def source_aware(lexical: float, meaning: float, weight: float) -> float:
    """Eq. 10: λ·s_lex + (1 − λ)·s_sem, not below zero; λ depends on the source of the text."""
    return max(0.0, weight * lexical + (1 - weight) * meaning)


def distrust(
    scores: Sequence[float],
    *,
    peak: float = 0.4,
    mean: float = 0.2,
    gap: float = 0.15,
    low: float = 0.2,
    share: float = 0.7,
) -> str | None:
    """Return why the observed scores cannot single out relevant scenes; ``None`` if they can."""
    if not scores:
        return "nothing was observed"
    # nothing relevant seen, too little of it, nothing that stands out, or mostly irrelevant scenes
    values = np.asarray(scores, np.float64)
    if values.max() < peak:
        return f"no score reaches {peak:g}"
    if values.mean() < mean:
        return f"scores are below {mean:g} on average"
    if values.max() - values.mean() < gap:
        return f"the best score stands out by less than {gap:g}"
    if (values < low).mean() > share:
        return f"more than {share:.0%} of the scores are below {low:g}"
    return None


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
