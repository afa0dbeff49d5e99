"""A film in scenes: cut where neighbouring frames differ, short ones merged, long ones divided.

VideoDetective, section 3.2.1. A scene is a half-open range of frame numbers. Frames are unit rows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Span: TypeAlias = tuple[int, int]
Likeness: TypeAlias = Literal["product", "cosine"]
_Piece: TypeAlias = tuple[Span, NDArray[np.float64]]


def neighbours(vectors: NDArray[np.floating]) -> NDArray[np.float64]:
    """⟨f_t, f_{t+1}⟩ for every frame but the last."""
    return np.asarray(np.einsum("ij,ij->i", vectors[:-1], vectors[1:]), np.float64)


def scenes(
    vectors: NDArray[np.floating],
    threshold: float,
    *,
    shortest: int = 10,
    longest: int | None = None,
    likeness: Likeness = "product",
) -> list[Span]:
    """Split where ⟨f_t, f_{t+1}⟩ < ``threshold``; merge scenes of fewer than ``shortest`` frames.

    A short scene joins the neighbour it resembles more, by the product of their mean vectors, which
    are not normalised. By their cosine, a scene of many shots attracts every short one, and a film
    of fast cuts becomes a single scene.

    With ``longest``, longer scenes are divided, so that a film of one continuous shot does not
    become a single scene.
    """
    if not len(vectors):
        return []
    steps = neighbours(vectors)
    edges = [0, *(np.flatnonzero(steps < threshold) + 1).tolist(), len(vectors)]
    merged = merge_short(vectors, list(pairwise(edges)), shortest, likeness)
    if longest is None:
        return merged
    divided: list[Span] = []
    for scene in merged:
        divided += split_long(steps, scene, shortest, longest)
    return divided


def merge_short(
    vectors: NDArray[np.floating], spans: Sequence[Span], shortest: int, likeness: Likeness
) -> list[Span]:
    """Merge short pieces with the neighbour they resemble more, until nothing changes.

    A piece stays short if it resembles neither, that is, if no likeness is positive.
    """
    # sums merge by addition, and give the means
    pieces = [(span, vectors[slice(*span)].sum(axis=0, dtype=np.float64)) for span in spans]
    while True:
        merged = _merge_once(pieces, shortest, likeness)
        if len(merged) == len(pieces):
            return [span for span, _ in pieces]
        pieces = merged


def _merge_once(pieces: Sequence[_Piece], shortest: int, likeness: Likeness) -> list[_Piece]:
    """One pass from left to right."""
    done: list[_Piece] = []
    todo = deque(pieces)
    while todo:
        piece = todo.popleft()
        if _length(piece) >= shortest:
            done.append(piece)
            continue
        before = _alike(done[-1], piece, likeness) if done else 0.0
        after = _alike(todo[0], piece, likeness) if todo else 0.0
        if before > 0 and before >= after:
            done[-1] = _joined(done[-1], piece)
        elif after > 0:
            todo[0] = _joined(piece, todo[0])
        else:
            done.append(piece)
    return done


def _length(piece: _Piece) -> int:
    return piece[0][1] - piece[0][0]


def _joined(left: _Piece, right: _Piece) -> _Piece:
    return (left[0][0], right[0][1]), left[1] + right[1]


def _alike(one: _Piece, other: _Piece, likeness: Likeness) -> float:
    product = float(one[1] @ other[1])
    if likeness == "product":
        return product / (_length(one) * _length(other))
    norms = float(np.linalg.norm(one[1]) * np.linalg.norm(other[1]))
    return product / norms if norms > 0 else 0.0


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
