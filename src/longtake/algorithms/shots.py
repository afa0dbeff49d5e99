"""Which frames are worth an expensive look: one per visually distinct shot, and every still card of text.

::

    thumbnails   a a a a b b b c a a a d d d'd'     (what a shot looks like; d, d' two cards of the credits)
    runs         └─────┘└───┘└┘└───┘└─┘└─┘
    chosen           ↑    ↑   ↑       ↑   ↑         the most settled frame of each *new* look

Pictures that move are told apart by the mean colours of large blocks, which stay when things move a little.
Pictures that stand still are told apart by small blocks: there a line of text is the only thing that changes. In
between, where some of a picture moves, the small blocks that stand still tell: a sign or a caption comes, stays for
some seconds, and goes, whatever happens around it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float32]

CHANGE = 25.0
"""Mean difference of two moving pictures (0..255, over large blocks) from which they are different looks."""
BLOCK_CHANGE = 90.0
"""The same for their most changed large block."""
CARD_CHANGE = 12.0
"""Difference of the most changed small block from which two still pictures are different cards."""
STILL = 5.0
"""The same below which a picture stands still."""
LONGEST = 10
"""A run is looked at once more after this many frames: slow pans and rolling credits change without a cut."""
MEMORY = 200
"""Looks that a new one is held against; what was seen longer ago may be read again."""
_ROWS, _COLUMNS = 9, 16  # small blocks; a large one is 3 × 2 of them


def looks(thumbnails: NDArray[np.uint8]) -> Floats:
    """Each picture as the mean colours of 9 × 16 blocks."""
    if thumbnails.ndim != 4 or thumbnails.shape[-1] != 3:
        raise ValueError(f"thumbnails are frames × height × width × 3, not {thumbnails.shape}")
    count, height, width, _ = thumbnails.shape
    if height < _ROWS or width < _COLUMNS:
        raise ValueError(
            f"thumbnails of {width}×{height} are too small; {_COLUMNS}×{_ROWS} is the least"
        )
    high, wide = height // _ROWS, width // _COLUMNS
    trimmed = thumbnails[:, : high * _ROWS, : wide * _COLUMNS].astype(np.float32)
    return np.asarray(
        trimmed.reshape(count, _ROWS, high, _COLUMNS, wide, 3).mean(axis=(2, 4)), np.float32
    )


def moving_distance(some: Floats, others: Floats) -> Floats:
    """How different pictures are, movement forgiven; 1 and more is another shot."""
    gap = some - others
    large = gap.reshape(*gap.shape[:-3], 3, 3, 8, 2, 3).mean(axis=(-4, -2))
    size = np.abs(large).mean(axis=-1)
    whole, most = size.mean(axis=(-2, -1)), size.max(axis=(-2, -1))
    return np.asarray(np.maximum(whole / CHANGE, most / BLOCK_CHANGE), np.float32)


def still_distance(some: Floats, others: Floats) -> Floats:
    """Difference of the most changed small block, 0..255."""
    return np.asarray(_by_block(some, others).max(axis=(-2, -1)), np.float32)


def still(seen: Floats) -> NDArray[np.bool_]:
    """Which pictures stand still: hardly different from the one before or the one after."""
    if len(seen) < 2:
        return np.ones(len(seen), np.bool_)
    calm = still_distance(seen[1:], seen[:-1]) < STILL
    return np.asarray(np.concatenate(([False], calm)) | np.concatenate((calm, [False])), np.bool_)


def steady(seen: Floats) -> NDArray[np.bool_]:
    """Which small blocks of each picture stand still: hardly different in three pictures that follow one another."""
    if len(seen) < 3:
        return np.zeros(seen.shape[:3], np.bool_)
    calm = np.zeros(
        (len(seen) + 1, *seen.shape[1:3]), np.bool_
    )  # between each picture and the one before
    calm[1:-1] = _by_block(seen[1:], seen[:-1]) < STILL
    pairs = calm[:-1] & calm[1:]  # a picture with both its neighbours
    found = pairs.copy()
    found[1:] |= pairs[:-1]
    found[:-1] |= pairs[1:]
    return found


def lasting_change(seen: Floats, rest: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Between which neighbours a block that stood still turns into another that stands still."""
    turned = (_by_block(seen[1:], seen[:-1]) >= CARD_CHANGE) & rest[1:] & rest[:-1]
    return np.asarray(turned.any(axis=(-2, -1)), np.bool_)


def runs(seen: Floats, *, longest: int = LONGEST) -> list[tuple[int, int]]:
    """Half-open ranges of consecutive frames that look alike, none longer than ``longest``."""
    if len(seen) == 0:
        return []
    calm = still(seen)
    moved = moving_distance(seen[1:], seen[:-1]) >= 1
    turned = (still_distance(seen[1:], seen[:-1]) >= CARD_CHANGE) & (calm[1:] | calm[:-1])
    turned |= lasting_change(seen, steady(seen))
    cuts = [0, *(np.flatnonzero(moved | turned) + 1).tolist(), len(seen)]
    found: list[tuple[int, int]] = []
    for begin, end in pairwise(cuts):
        pieces = -(-(end - begin) // longest)
        edges = np.linspace(begin, end, pieces + 1).round().astype(int).tolist()
        found.extend(pairwise(edges))
    return found


@dataclass(frozen=True)
class Survey:
    """Which frames to look at, and which frame each of them stands for."""

    chosen: Ints
    """Positions of the frames to look at, in time order."""
    stands: Ints
    """For every frame, the position of the frame that looks like it and is to be looked at in its place."""

    def share(self, read: Ints) -> float:
        """Share of all frames that have been looked at, in person or by the frame that stands for them."""
        if len(self.stands) == 0:
            return 1.0
        seen = np.isin(self.stands, read)
        seen[read] = True
        return float(seen.mean())

    def spans(self, frame: int) -> list[tuple[int, int]]:
        """Half-open ranges of frames that ``frame`` stands for."""
        where = np.concatenate(([False], self.stands == frame, [False]))
        edges = np.flatnonzero(where[1:] != where[:-1])
        return [(int(begin), int(end)) for begin, end in zip(edges[::2], edges[1::2], strict=True)]


def survey(thumbnails: NDArray[np.uint8], *, longest: int = LONGEST) -> Survey:
    """The most settled frame of each run that looks like none before it, and whom it stands for.

    ``thumbnails`` is frames × height × width × 3 (36 × 64 at one a second in the store). A frame is settled
    when it differs little from its neighbours in the run, so that a dissolve or a caption fading in is not
    what gets read.
    """
    seen = looks(thumbnails)
    calm, rest = still(seen), steady(seen)
    chosen: list[int] = []
    stands = np.zeros(len(seen), np.int64)
    for begin, end in runs(seen, longest=longest):
        frame = begin + _settled(seen[begin:end])
        known = chosen[-MEMORY:]
        same = _alike(
            seen[known], calm[known], rest[known], seen[frame], bool(calm[frame]), rest[frame]
        )
        alike = np.flatnonzero(same)
        if len(alike) == 0:
            chosen.append(frame)
        stands[begin:end] = known[alike[-1]] if len(alike) else frame
    return Survey(np.asarray(chosen, np.int64), stands)


def distinct(
    thumbnails: NDArray[np.uint8], *, most: int | None = None, longest: int = LONGEST
) -> Ints:
    """Frames to look at, in time order; ``most`` keeps only those that differ most from one another."""
    picked = survey(thumbnails, longest=longest).chosen
    if most is not None and len(picked) > most:
        picked = np.sort(picked[farthest(looks(thumbnails[picked]), most)])
    return picked


def farthest(seen: Floats, count: int) -> Ints:
    """Positions of ``count`` looks, each the one farthest from all before it; the first is the first."""
    if count <= 0 or len(seen) == 0:
        return np.zeros(0, np.int64)
    order = [0]
    nearest = still_distance(seen, seen[0][None])
    while len(order) < min(count, len(seen)):
        order.append(int(nearest.argmax()))
        nearest = np.minimum(nearest, still_distance(seen, seen[order[-1]][None]))
    return np.asarray(order, np.int64)


def _alike(
    known: Floats,
    known_calm: NDArray[np.bool_],
    known_rest: NDArray[np.bool_],
    look: Floats,
    calm: bool,
    rest: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    apart = _by_block(known, look[None])
    same = apart.max(axis=(-2, -1)) < CARD_CHANGE
    if (
        not calm
    ):  # a card of text stands for cards like it, never for something that moves on a like ground
        resting = (apart * (known_rest & rest)).max(axis=(-2, -1)) < CARD_CHANGE
        same |= (moving_distance(known, look[None]) < 1) & resting & ~known_calm
    return np.asarray(same, np.bool_)


def _by_block(some: Floats, others: Floats) -> Floats:
    return np.asarray(np.abs(some - others).mean(axis=-1), np.float32)


def _settled(run: Floats) -> int:
    if len(run) < 3:
        return len(run) // 2
    gaps = still_distance(run[1:], run[:-1])
    unrest = np.concatenate(([gaps[0]], np.maximum(gaps[:-1], gaps[1:]), [gaps[-1]]))
    best = np.flatnonzero(unrest <= unrest.min() + 1e-6)
    return int(best[len(best) // 2])
