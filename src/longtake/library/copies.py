"""Recognises a clip that occurs in two films, so that a search shows it once."""

from __future__ import annotations

from collections.abc import Sequence

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
TELLING = 8
"""Words from which equal texts alone make a copy, where there are no pictures to compare."""


def same_clip(one: Stored, other: Stored) -> bool:
    """Whether two segments of different films show the same thing.

    Equal pictures under different words are no copies: a lecture hall looks alike for years.
    """
    if one.film == other.film:
        return False
    alike = same_pictures(one.prints, other.prints)
    words, others = _words(one), _words(other)
    if alike is None:
        shorter = min(len(words), len(others))
        return shorter >= TELLING and words == others
    if not words or not others:
        return alike and not (words or others)
    shared = len(words & others) / min(len(words), len(others))
    return alike and shared >= SAME_WORDS


def same_pictures(one: bytes, other: bytes) -> bool | None:
    """Whether most pictures of one segment occur in the other; ``None`` if too few can be told.

    The clip may begin at another second of its segment, so every pair is compared.
    """
    left, right = _prints(one), _prints(other)
    if min(len(left), len(right)) < FEWEST:
        return None
    apart = np.bitwise_count(left[:, None] ^ right[None, :])
    matches = (apart <= NEAR).any(axis=1).mean(), (apart <= NEAR).any(axis=0).mean()
    return bool(max(matches) >= SHARE)


def once(rows: Sequence[Stored]) -> list[tuple[Stored, list[Stored]]]:
    """Rows, best first, each with those further down that are copies of it."""
    kept: list[tuple[Stored, list[Stored]]] = []
    for row in rows:
        for first, copies in kept:
            if same_clip(first, row):
                copies.append(row)
                break
        else:
            kept.append((row, []))
    return kept


def _prints(packed: bytes) -> Prints:
    prints: Prints = np.frombuffer(packed, np.uint64)
    return prints[prints != 0]


def _words(row: Stored) -> set[str]:
    return set(f"{row.text('said')} {row.text('shown')}".casefold().split())
