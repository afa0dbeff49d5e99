r"""A film in scenes: cut where neighbouring frames stop resembling each other (VideoDetective, section 3.2.1).

::

    cosine of neighbours   ‾‾‾‾‾\_/‾‾‾‾‾‾\_/‾\_/‾‾‾‾‾‾‾‾     below θ: a boundary
    boundaries                   |        |   |
    short pieces merge           |        |~~>|

A scene is a pair of frame numbers, half-open. Frames are unit rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

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
    """Scenes that begin where ⟨f_t, f_{t+1}⟩ < ``threshold``; those under ``shortest`` frames merge.

    With ``longest``, a scene that is longer is divided: a single continuous shot must not become a single scene.
    """
    if not len(vectors):
        return []
    steps = neighbours(vectors)
    edges = [0, *(np.flatnonzero(steps < threshold) + 1).tolist(), len(vectors)]
    merged = merge_short(vectors, list(pairwise(edges)), shortest)
    if longest is None:
        return merged
    return [part for scene in merged for part in split_long(steps, scene, shortest, longest)]


def merge_short(vectors: NDArray[np.floating], spans: Sequence[Span], shortest: int) -> list[Span]:
    """From left to right, each short piece joined to the neighbour it resembles more, until none is short."""
    spans = list(spans)
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
        at = first  # what lies before it is long enough already
    return spans


def split_long(steps: NDArray[np.float64], span: Span, shortest: int, longest: int) -> list[Span]:
    """A scene in parts of at most ``longest`` frames, cut at its lowest cosine, of equals at the middle one."""
    todo, done = [span], list[Span]()
    while todo:
        begin, end = todo.pop()
        if end - begin <= max(1, longest):
            done.append((begin, end))
            continue
        margin = max(1, min(shortest, (end - begin) // 2))
        inside = steps[
            begin + margin - 1 : end - margin
        ]  # steps[c − 1] is what a cut before frame c goes through
        lowest = np.flatnonzero(inside == inside.min())
        cut = begin + margin + int(lowest[np.abs(lowest - (len(inside) - 1) / 2).argmin()])
        todo += [(cut, end), (begin, cut)]
    return done


def scene_vectors(vectors: NDArray[np.floating], spans: Sequence[Span]) -> NDArray[np.float64]:
    """h_i = norm(|c_i|⁻¹ Σ_{t∈c_i} f_t), a row per scene."""
    rows = np.array([vectors[a:b].mean(axis=0, dtype=np.float64) for a, b in spans])
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1.0))


def _cosine(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    lengths = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(one @ other) / lengths if lengths > 0 else 0.0
