"""Recognises a clip that occurs in two films, so that a search shows it once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from longtake.library.segment_index import Stored
from longtake.library.segments import Prints

NEAR = 6
"""Bits of 64 by which two prints of one picture may differ."""
SHARE = 0.6
"""Share of a segment's pictures that must occur in the other one."""
FEWEST = 3
"""Pictures that must be comparable at all."""
SAME_WORDS = 0.5
"""Share of the words of the shorter text that must occur in the longer one."""
COMPARED = 60
"""Rows of a search that are compared with one another."""
TELLING = 8
"""Words from which equal texts alone make a copy, where there are no pictures to compare."""
NO_PRINTS: Prints = np.zeros(0, np.uint64)


@dataclass(frozen=True, eq=False)
class _Clip:
    """What a row is compared by, prepared once."""

    film: str
    words: frozenset[str]
    prints: Prints


def same_clip(one: Stored, other: Stored) -> bool:
    """Whether two segments of different films show the same thing.

    Equal pictures under different words are no copies: a lecture hall looks alike for years.
    """
    return _same(_clip(one), _clip(other))


def same_pictures(one: Prints, other: Prints) -> bool | None:
    """Whether most pictures of one segment occur in the other; ``None`` if too few can be told.

    The clip may begin at another second of its segment, so every pair is compared.
    """
    if min(len(one), len(other)) < FEWEST:
        return None
    near = np.bitwise_count(one[:, None] ^ other[None, :]) <= NEAR
    return bool(max(near.any(axis=1).mean(), near.any(axis=0).mean()) >= SHARE)


def once(rows: Sequence[Stored], most: int = COMPARED) -> list[tuple[Stored, list[Stored]]]:
    """Rows, best first, each with those further down that are copies of it.

    Only the first ``most`` rows are compared, each with those before it.
    """
    kept: list[tuple[_Clip, Stored, list[Stored]]] = []
    for row in rows[:most]:
        clip = _clip(row)
        for first, _, copies in kept:
            if _same(first, clip):
                copies.append(row)
                break
        else:
            kept.append((clip, row, []))
    rest: list[tuple[Stored, list[Stored]]] = [(row, []) for row in rows[most:]]
    return [(row, copies) for _, row, copies in kept] + rest


def _same(one: _Clip, other: _Clip) -> bool:
    if one.film == other.film or bool(one.words) != bool(other.words):
        return False
    if one.words:
        # words first: they rule out most pairs, and cost less than pictures
        shorter = min(len(one.words), len(other.words))
        if len(one.words & other.words) < SAME_WORDS * shorter:
            return False
    alike = same_pictures(one.prints, other.prints)
    if alike is None:
        return len(one.words) >= TELLING and one.words == other.words
    return alike


def _clip(row: Stored) -> _Clip:
    words = frozenset(f"{row.text('said')} {row.text('shown')}".casefold().split())
    prints = np.frombuffer(row.prints, np.uint64) if len(row.prints) % 8 == 0 else NO_PRINTS
    return _Clip(row.film, words, prints[prints != 0])
