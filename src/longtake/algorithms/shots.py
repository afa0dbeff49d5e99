"""Finds the frames of a film that look different, so that each picture is read only once."""

from __future__ import annotations

from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float32]
Bools: TypeAlias = NDArray[np.bool_]

CARD_CHANGE = 12.0
"""Two still pictures are distinct if their most changed small tile differs by this or more."""
PRINT_CHANGE = 15.0
"""Two still thumbnails show different print if their most changed pixels differ by this on average.
Consecutive cards of small print differ by 17 and more, a moved pointer by 11, the same card by up
to 3."""
STILL = 5.0
"""A picture stands still if its most changed small tile differs by less than this."""
LONGEST = 10
"""Longest run in frames: pans and rolling credits change without a cut."""
_ROWS, _COLUMNS = 9, 16  # small tiles; a large tile is 3 × 2 of them


def tile_colours(thumbnails: NDArray[np.uint8]) -> Floats:
    """Return the mean colours of the 9 × 16 tiles of each picture."""
    count, height, width, _ = thumbnails.shape
    high, wide = height // _ROWS, width // _COLUMNS
    tiles = np.empty((count, _ROWS, _COLUMNS, 3), np.float32)
    # 256 at a time: as float numbers, the thumbnails of an hour take 100 MB
    for start in range(0, count, 256):
        some = thumbnails[start : start + 256, : high * _ROWS, : wide * _COLUMNS]
        tiled = some.astype(np.float32).reshape(len(some), _ROWS, high, _COLUMNS, wide, 3)
        tiles[start : start + 256] = tiled.mean(axis=(2, 4))
    return tiles


def moving_distance(some: Floats, others: Floats) -> Floats:
    """Return how different pictures are, tolerating movement; 1 or more is a different shot."""
    gap = some - others
    large = gap.reshape(*gap.shape[:-3], 3, 3, 8, 2, 3).mean(axis=(-4, -2))
    size = np.abs(large).mean(axis=-1)
    whole, largest = size.mean(axis=(-2, -1)), size.max(axis=(-2, -1))
    # of 255: a new shot changes the whole picture by this much, or one large tile far more
    return np.asarray(np.maximum(whole / 25.0, largest / 90.0), np.float32)


def still_distance(some: Floats, others: Floats) -> Floats:
    """Return the difference of the most changed small tile, 0 to 255."""
    return np.asarray(_by_tile(some, others).max(axis=(-2, -1)), np.float32)


def print_distance(some: NDArray[np.uint8], others: NDArray[np.uint8]) -> Floats:
    """Return the mean difference of the most changed pixels of thumbnails, 0 to 255."""
    gap = np.abs(some.astype(np.int16) - others).mean(axis=-1, dtype=np.float32)
    flat = gap.reshape(*gap.shape[:-2], -1)
    # eight pixels: fewer than a short name in small print covers
    largest = np.partition(flat, -8, axis=-1)[..., -8:]
    return np.asarray(largest.mean(axis=-1), np.float32)


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


def runs(thumbnails: NDArray[np.uint8]) -> list[tuple[int, int]]:
    """Group consecutive frames that look alike into half-open ranges of at most :data:`LONGEST`."""
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
        pieces = -(-(end - begin) // LONGEST)  # rounded up
        edges = np.linspace(begin, end, pieces + 1).round().astype(int).tolist()
        ranges.extend(pairwise(edges))
    return ranges


def spans(stands: Ints, frame: int) -> list[tuple[int, int]]:
    """Half-open ranges of the frames that ``frame`` represents in the result of :func:`survey`."""
    where = np.concatenate(([False], stands == frame, [False]))
    edges = np.flatnonzero(where[1:] != where[:-1])
    return [(int(begin), int(end)) for begin, end in zip(edges[::2], edges[1::2], strict=True)]


def survey(thumbnails: NDArray[np.uint8]) -> Ints:
    """For every frame, the index of the frame that represents it.

    Each run is represented by its most settled frame, or by that of an earlier run that looks the
    same. ``thumbnails`` is frames × height × width × 3 (the store has 36 × 64, one a second). A
    frame is settled if it differs little from its neighbours in the run, so that a dissolve or a
    half-faded caption is not read.
    """
    tiles = tile_colours(thumbnails)
    calm, resting = still(tiles), steady(tiles)
    chosen: list[int] = []
    stands = np.zeros(len(tiles), np.int64)
    for begin, end in runs(thumbnails):
        frame = begin + _settled(tiles[begin:end])
        # older frames may be chosen again
        known = chosen[-200:]
        alike = np.flatnonzero(_alike(tiles, calm, resting, known, frame))
        if calm[frame] and len(alike):
            shown = [known[place] for place in alike]
            alike = alike[print_distance(thumbnails[shown], thumbnails[frame]) < PRINT_CHANGE]
        if len(alike):
            stands[begin:end] = known[alike[-1]]
        else:
            chosen.append(frame)
            stands[begin:end] = frame
    return stands


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
