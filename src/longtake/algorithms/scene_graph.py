"""VideoDetective's scenes: a film split into them, a graph of them, and relevance that spreads.

Scenes begin where neighbouring frames differ (section 3.2.1). Edges connect scenes that look alike
or lie close in time. What is known about a few scenes is diffused to the others; Graph-NMS then
selects scenes that are relevant and unlike each other (3.2.2, 3.3.3 and appendix C). A scene is a
half-open range of frame numbers. Frames are unit rows. Graphs are dense matrices: a scene lasts at
least ten seconds by default, so a film of ten hours has at most 3,600 scenes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from longtake.algorithms import sampling

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


Span: TypeAlias = tuple[int, int]


def neighbours(vectors: NDArray[np.floating]) -> NDArray[np.float64]:
    """⟨f_t, f_{t+1}⟩ for every frame but the last."""
    return np.asarray(np.einsum("ij,ij->i", vectors[:-1], vectors[1:]), np.float64)


def scenes(
    vectors: NDArray[np.floating],
    threshold: float,
    *,
    shortest: int = 10,
    longest: int | None = None,
) -> list[Span]:
    """Split where ⟨f_t, f_{t+1}⟩ < ``threshold``; merge scenes of fewer than ``shortest`` frames.

    With ``longest``, longer scenes are divided, so that a film of one continuous shot does not
    become a single scene.
    """
    if not len(vectors):
        return []
    steps = neighbours(vectors)
    edges = [0, *(np.flatnonzero(steps < threshold) + 1).tolist(), len(vectors)]
    merged = merge_short(vectors, list(pairwise(edges)), shortest)
    if longest is None:
        return merged
    divided: list[Span] = []
    for scene in merged:
        divided += split_long(steps, scene, shortest, longest)
    return divided


def merge_short(vectors: NDArray[np.floating], spans: Sequence[Span], shortest: int) -> list[Span]:
    """Merge each short piece, from left to right, with the neighbour it resembles more."""
    spans = list(spans)
    # the cosine of two sums is that of the means, and sums merge by addition
    sums = [vectors[a:b].sum(axis=0, dtype=np.float64) for a, b in spans]
    at = 0
    while at < len(spans):
        begin, end = spans[at]
        if end - begin >= shortest or len(spans) == 1:
            at += 1
            continue
        before = _cosine(sums[at - 1], sums[at]) if at > 0 else -np.inf
        after = _cosine(sums[at + 1], sums[at]) if at + 1 < len(spans) else -np.inf
        first = at - 1 if before >= after else at
        spans[first : first + 2] = [(spans[first][0], spans[first + 1][1])]
        sums[first : first + 2] = [sums[first] + sums[first + 1]]
        at = first  # everything before it is long enough already
    return spans


def split_long(steps: NDArray[np.float64], span: Span, shortest: int, longest: int) -> list[Span]:
    """Cut a scene at its lowest cosine until no part exceeds ``longest``; ties go to the middle."""
    todo = [span]
    done: list[Span] = []
    while todo:
        begin, end = todo.pop()
        if end - begin <= max(1, longest):
            done.append((begin, end))
            continue
        margin = max(1, min(shortest, (end - begin) // 2))
        # a cut before frame c separates frames c − 1 and c, whose cosine is steps[c − 1]
        inside = steps[begin + margin - 1 : end - margin]
        lowest = np.flatnonzero(inside == inside.min())
        from_middle = np.abs(lowest - (len(inside) - 1) / 2)
        cut = begin + margin + int(lowest[from_middle.argmin()])
        todo += [(cut, end), (begin, cut)]  # a stack: the left part is next
    return done


def scene_vectors(vectors: NDArray[np.floating], spans: Sequence[Span]) -> NDArray[np.float64]:
    """h_i = norm(|c_i|⁻¹ Σ_{t∈c_i} f_t), one row per scene."""
    rows = np.array([vectors[a:b].mean(axis=0, dtype=np.float64) for a, b in spans])
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1.0))


def _cosine(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    lengths = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(one @ other) / lengths if lengths > 0 else 0.0


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
