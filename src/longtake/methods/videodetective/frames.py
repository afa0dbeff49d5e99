"""The frames of the final call (appendix E.8), as in the paper and as in the released code."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from longtake.algorithms import sampling


@dataclass(frozen=True)
class FrameRule:
    """How the final frames are chosen (VideoDetective, table 7)."""

    rule: Literal["belief", "released"] = "belief"
    """Frames of the scenes of highest belief first, or those that the released code chooses."""
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

    def as_released(
        self,
        vectors: NDArray[np.floating],
        packages: Sequence[tuple[int, int]],
        relevance: NDArray[np.float64],
        *,
        count: int,
        uniform: Sequence[int],
        recalled: int,
    ) -> list[int]:
        """Return at most ``count`` frames in order, as the released code chooses them.

        The most relevant frames of each scene are put in time order before all but the first
        ``recalled`` are dropped. The first pass compares them with the first chosen frame only.
        Other frames follow by their lowest cosine to those chosen so far, without the first and the
        last twentieth of the film.
        """
        chosen = list(uniform)
        best: set[int] = set()
        for begin, end in packages:
            ranked = np.argsort(-relevance[begin:end], kind="stable")[: self.per_package]
            best.update((begin + ranked).tolist())
        candidates = sorted(best)[:recalled]
        for limit, compared in ((self.duplicate, 1), (self.relaxed, None)):
            for row in candidates:
                closest = (vectors[chosen[:compared]] @ vectors[row]).max(initial=-1.0)
                if len(chosen) < count and row not in chosen and closest <= limit:
                    chosen.append(row)
        rows = np.arange(len(vectors))
        inside = (rows >= len(rows) * 0.05) & (rows <= len(rows) * 0.95)
        rest = rows[inside & ~np.isin(rows, chosen)]
        lowest = np.clip((vectors[rest] @ vectors[chosen].T).min(axis=1, initial=1.0), 0.0, 1.0)
        worth = self.diversity * (1 - lowest) + (1 - self.diversity) * relevance[rest]
        for place in np.argsort(-worth, kind="stable").tolist():
            if len(chosen) < count and lowest[place] < self.similar:
                chosen.append(int(rest[place]))
        return sorted(chosen)


def with_focus(text: str, count: int, n: int, duration: float) -> list[int]:
    """``n`` of ``count`` frames: those that a question about time points to, then uniform ones.

    From the released code: windows such as "the first 2 minutes", the first or the last tenth of
    the film, its quarters for questions about order.
    """
    focus: set[int] = set()

    def window(first: int, last: int, most: int) -> None:
        first, last = sorted((min(max(first, 0), count - 1), min(max(last, 0), count - 1)))
        focus.update((first + sampling.uniform(last - first + 1, min(most, n))).tolist())

    text, rate = text.lower(), count / duration
    for side, number, unit in re.findall(r"\b(first|last)\s+(\d+)\s*(sec|min)", text):
        rows = int(int(number) * (60 if unit == "min" else 1) * rate)
        window(*((0, rows) if side == "first" else (count - rows - 1, count - 1)), 4)
    if re.search(r"\b(beginning|start|first|early)\b", text):
        window(0, int(count * 0.1), 3)
    if re.search(r"\b(end|last|final|finally|later)\b", text):
        window(count - max(1, int(count * 0.1)), count - 1, 3)
    if re.search(r"\b(before|after|then|next|previous|order|sequence)\b", text):
        focus.update([*(int(count * share) for share in (0, 0.25, 0.5, 0.75)), count - 1])
    first = sorted(focus)
    first = [first[place] for place in sampling.uniform(len(first), n)]
    return sorted(list(dict.fromkeys([*first, *sampling.uniform(count, n).tolist()]))[:n])


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
