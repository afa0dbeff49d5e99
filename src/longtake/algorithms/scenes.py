r"""Splits a film into scenes where neighbouring frames differ (VideoDetective, section 3.2.1).

::

    cosine of neighbours   ‾‾‾‾‾\_/‾‾‾‾‾‾\_/‾\_/‾‾‾‾‾‾‾‾     a boundary where it is below θ
    boundaries                   |        |   |
    short pieces merge           |        |~~>|

A scene is a half-open range of frame numbers. Frames are unit rows.
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
