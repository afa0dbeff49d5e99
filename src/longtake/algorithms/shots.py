"""Selects the frames an answer is based on: relevant, diverse, and exactly as many as asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

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


Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float32]
Bools: TypeAlias = NDArray[np.bool_]

CHANGE = 25.0
"""Mean difference over large tiles (0 to 255) from which two moving pictures are distinct."""
TILE_CHANGE = 90.0
"""Difference of the most changed large tile from which two moving pictures are distinct."""
CARD_CHANGE = 12.0
"""Difference of the most changed small tile from which two still pictures are distinct."""
PRINT_CHANGE = 15.0
"""Mean difference of the most changed pixels of two still thumbnails from which they show different
print. Cards of small print that follow each other differ by 17 and more, a moved pointer by 11, the
same card by up to 3."""
PRINT_PIXELS = 8
"""Number of the most changed pixels: fewer than a short name in small print covers."""
STILL = 5.0
"""Difference of the most changed small tile below which a picture stands still."""
LONGEST = 10
"""Frames after which a run is looked at again: pans and rolling credits change without a cut."""
MEMORY = 200
"""Number of chosen frames that a new one is compared with; older ones may be chosen again."""
_AT_ONCE = 256
_ROWS, _COLUMNS = 9, 16  # small tiles; a large tile is 3 × 2 of them


def tile_colours(thumbnails: NDArray[np.uint8]) -> Floats:
    """Return the mean colours of the 9 × 16 tiles of each picture."""
    if thumbnails.ndim != 4 or thumbnails.shape[-1] != 3:
        raise ValueError(f"thumbnails are frames × height × width × 3, not {thumbnails.shape}")
    count, height, width, _ = thumbnails.shape
    if height < _ROWS or width < _COLUMNS:
        raise ValueError(
            f"thumbnails of {width}×{height} are too small; the minimum is {_COLUMNS}×{_ROWS}"
        )
    high, wide = height // _ROWS, width // _COLUMNS
    tiles = np.empty((count, _ROWS, _COLUMNS, 3), np.float32)
    # some at a time: as float numbers, the thumbnails of an hour take 100 MB
    for start in range(0, count, _AT_ONCE):
        some = thumbnails[start : start + _AT_ONCE, : high * _ROWS, : wide * _COLUMNS]
        tiled = some.astype(np.float32).reshape(len(some), _ROWS, high, _COLUMNS, wide, 3)
        tiles[start : start + _AT_ONCE] = tiled.mean(axis=(2, 4))
    return tiles


def moving_distance(some: Floats, others: Floats) -> Floats:
    """Return how different pictures are, tolerating movement; 1 or more is a different shot."""
    gap = some - others
    large = gap.reshape(*gap.shape[:-3], 3, 3, 8, 2, 3).mean(axis=(-4, -2))
    size = np.abs(large).mean(axis=-1)
    whole, most = size.mean(axis=(-2, -1)), size.max(axis=(-2, -1))
    return np.asarray(np.maximum(whole / CHANGE, most / TILE_CHANGE), np.float32)


def still_distance(some: Floats, others: Floats) -> Floats:
    """Return the difference of the most changed small tile, 0 to 255."""
    return np.asarray(_by_tile(some, others).max(axis=(-2, -1)), np.float32)


def print_distance(some: NDArray[np.uint8], others: NDArray[np.uint8]) -> Floats:
    """Return the mean difference of the most changed pixels of thumbnails, 0 to 255."""
    gap = np.abs(some.astype(np.int16) - others).mean(axis=-1, dtype=np.float32)
    flat = gap.reshape(*gap.shape[:-2], -1)
    most = np.partition(flat, -PRINT_PIXELS, axis=-1)[..., -PRINT_PIXELS:]
    return np.asarray(most.mean(axis=-1), np.float32)


def still(tiles: Floats) -> Bools:
    """Mark pictures that stand still: they hardly differ from the one before or the one after."""
    if len(tiles) < 2:
        return np.ones(len(tiles), np.bool_)
    calm = still_distance(tiles[1:], tiles[:-1]) < STILL
    like_previous = np.concatenate(([False], calm))
    like_next = np.concatenate((calm, [False]))
    return np.asarray(like_previous | like_next, np.bool_)


def steady(tiles: Floats) -> Bools:
    """Mark the small tiles that stand still, hardly differing in three consecutive pictures."""
    if len(tiles) < 3:
        return np.zeros(tiles.shape[:3], np.bool_)
    # calm[k] compares picture k with the one before; the first and the last have no neighbour
    calm = np.zeros((len(tiles) + 1, *tiles.shape[1:3]), np.bool_)
    calm[1:-1] = _by_tile(tiles[1:], tiles[:-1]) < STILL
    middle = calm[:-1] & calm[1:]  # the picture in the middle of three
    resting = middle.copy()
    resting[1:] |= middle[:-1]
    resting[:-1] |= middle[1:]
    return resting


def lasting_change(tiles: Floats, resting: Bools) -> Bools:
    """Mark neighbours between which a tile at rest turns into a different tile at rest."""
    changed = _by_tile(tiles[1:], tiles[:-1]) >= CARD_CHANGE
    lasting = changed & resting[1:] & resting[:-1]
    return np.asarray(lasting.any(axis=(-2, -1)), np.bool_)


def runs(thumbnails: NDArray[np.uint8], *, longest: int = LONGEST) -> list[tuple[int, int]]:
    """Group consecutive frames that look alike into half-open ranges of at most ``longest``."""
    if len(thumbnails) == 0:
        return []
    tiles = tile_colours(thumbnails)
    calm = still(tiles)
    moved = moving_distance(tiles[1:], tiles[:-1]) >= 1
    turned = (still_distance(tiles[1:], tiles[:-1]) >= CARD_CHANGE) & (calm[1:] | calm[:-1])
    turned |= lasting_change(tiles, steady(tiles))
    for before in np.flatnonzero(calm[1:] & calm[:-1] & ~turned):
        # one pair at a time, since a long film has many pixels
        turned[before] = print_distance(*thumbnails[before : before + 2]) >= PRINT_CHANGE
    cuts = [0, *(np.flatnonzero(moved | turned) + 1).tolist(), len(tiles)]
    ranges: list[tuple[int, int]] = []
    for begin, end in pairwise(cuts):
        pieces = -(-(end - begin) // longest)  # rounded up
        edges = np.linspace(begin, end, pieces + 1).round().astype(int).tolist()
        ranges.extend(pairwise(edges))
    return ranges


@dataclass(frozen=True)
class Survey:
    """The frames to look at, and which of them represents each frame."""

    chosen: Ints
    """Positions of the frames to look at, in time order."""
    stands: Ints
    """For every frame, the position of the chosen frame that represents it."""

    def share(self, read: Ints) -> float:
        """Share of all frames that were looked at, themselves or through their representative."""
        if len(self.stands) == 0:
            return 1.0
        seen = np.isin(self.stands, read)
        seen[read] = True
        return float(seen.mean())

    def spans(self, frame: int) -> list[tuple[int, int]]:
        """Half-open ranges of the frames that ``frame`` represents."""
        where = np.concatenate(([False], self.stands == frame, [False]))
        edges = np.flatnonzero(where[1:] != where[:-1])
        return [(int(begin), int(end)) for begin, end in zip(edges[::2], edges[1::2], strict=True)]


def survey(thumbnails: NDArray[np.uint8], *, longest: int = LONGEST) -> Survey:
    """Choose the most settled frame of each run that looks like none before it.

    ``thumbnails`` is frames × height × width × 3 (the store has 36 × 64, one a second). A frame is
    settled if it differs little from its neighbours in the run, so that a dissolve or a half-faded
    caption is not what gets read.
    """
    tiles = tile_colours(thumbnails)
    calm, resting = still(tiles), steady(tiles)
    chosen: list[int] = []
    stands = np.zeros(len(tiles), np.int64)
    for begin, end in runs(thumbnails, longest=longest):
        frame = begin + _settled(tiles[begin:end])
        known = chosen[-MEMORY:]
        alike = np.flatnonzero(_alike(tiles, calm, resting, known, frame))
        if calm[frame] and len(alike):
            shown = [known[place] for place in alike]
            alike = alike[print_distance(thumbnails[shown], thumbnails[frame]) < PRINT_CHANGE]
        if len(alike):
            stands[begin:end] = known[alike[-1]]
        else:
            chosen.append(frame)
            stands[begin:end] = frame
    return Survey(np.asarray(chosen, np.int64), stands)


def distinct(
    thumbnails: NDArray[np.uint8], *, most: int | None = None, longest: int = LONGEST
) -> Ints:
    """Return the frames to look at in time order; at most ``most``, those that differ most."""
    picked = survey(thumbnails, longest=longest).chosen
    if most is not None and len(picked) > most:
        picked = np.sort(picked[farthest(tile_colours(thumbnails[picked]), most)])
    return picked


def farthest(tiles: Floats, count: int) -> Ints:
    """Choose ``count`` pictures: the first, then repeatedly the one farthest from all chosen."""
    if count <= 0 or len(tiles) == 0:
        return np.zeros(0, np.int64)
    order = [0]
    nearest = still_distance(tiles, tiles[0][None])
    while len(order) < min(count, len(tiles)):
        order.append(int(nearest.argmax()))
        nearest = np.minimum(nearest, still_distance(tiles, tiles[order[-1]][None]))
    return np.asarray(order, np.int64)


def _alike(tiles: Floats, calm: Bools, resting: Bools, known: list[int], frame: int) -> Bools:
    """Mark the known frames that can represent ``frame``."""
    shown = tiles[frame][None]
    apart = _by_tile(tiles[known], shown)
    same = apart.max(axis=(-2, -1)) < CARD_CHANGE
    # a still card represents cards like it, but never something that moves on a similar background
    if not calm[frame]:
        both_rest = resting[known] & resting[frame]
        rest_same = (apart * both_rest).max(axis=(-2, -1)) < CARD_CHANGE
        same |= (moving_distance(tiles[known], shown) < 1) & rest_same & ~calm[known]
    return np.asarray(same, np.bool_)


def _by_tile(some: Floats, others: Floats) -> Floats:
    return np.asarray(np.abs(some - others).mean(axis=-1), np.float32)


def _settled(run: Floats) -> int:
    """Position of the frame that differs least from its neighbours; the middle one of equals."""
    if len(run) < 3:
        return len(run) // 2
    gaps = still_distance(run[1:], run[:-1])
    unrest = np.concatenate(([gaps[0]], np.maximum(gaps[:-1], gaps[1:]), [gaps[-1]]))
    best = np.flatnonzero(unrest <= unrest.min() + 1e-6)
    return int(best[len(best) // 2])
