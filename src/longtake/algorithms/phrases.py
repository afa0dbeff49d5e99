"""Finds a phrase in text that was recognised imperfectly.

On-screen text loses spaces and some letters ("ALLRIGHTS RESERVED"), speech loses endings. So both
sides are reduced to letters and digits, and the best-matching part of the text is scored.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import NamedTuple

from longtake.types import Line

SURE = 0.8
"""Score from which a phrase counts as found, allowing for recognition errors."""

EXACT = 1.0
SHORTEST = 3
"""A phrase with fewer letters must match a whole word: two letters occur almost everywhere."""


@lru_cache(maxsize=65536)
def squeeze(text: str) -> str:
    """Reduce to lower-case letters and digits without accents: ``Café №7`` becomes ``cafeno7``."""
    # NFKD splits accents from their letters; isalnum() then drops them
    plain = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in plain if letter.isalnum())


class Place(NamedTuple):
    """How well a phrase matches (0 to 1), and where, as shares of the letters of the text."""

    score: float
    begin: float
    end: float


NOWHERE = Place(0.0, 0.0, 0.0)


def match(phrase: str, text: str) -> float:
    """Return how well ``phrase`` occurs in ``text``, 0 to 1: the score of :func:`find`."""
    return find(phrase, text).score


def find(phrase: str, text: str) -> Place:
    """Find the part of ``text`` that matches ``phrase`` best; its score is ``1 − edits ÷ length``.

    A match that differs only in case, spaces and punctuation scores 1. Edits are insertions,
    deletions and substitutions between the squeezed phrase and the part of the squeezed text that
    matches it best (Sellers 1980). In a long line of speech, the place tells when the phrase was
    said, since a word takes roughly as long as it has letters.
    """
    needle, hay = squeeze(phrase), squeeze(text)
    if not needle or not hay:
        return NOWHERE
    if len(needle) < SHORTEST:
        return _word(needle, text)
    position = hay.find(needle)  # the common case, and much faster than counting edits
    if position >= 0:
        return Place(EXACT, position / len(hay), (position + len(needle)) / len(hay))
    edits, end = _edits(needle, hay)
    score = 1 - edits / len(needle)
    if score <= 0:
        return NOWHERE
    begin = max(0, end - len(needle))
    return Place(score, begin / len(hay), end / len(hay))


def said_at(phrase: str, line: Line) -> float:
    """Estimate when ``phrase`` begins within a line, from its place in the text."""
    place = find(phrase, line.text)
    return line.segment.start + place.begin * line.segment.duration


def _word(needle: str, text: str) -> Place:
    """Find ``needle`` as a whole word."""
    words = [squeeze(word) for word in text.split()]
    if needle not in words:
        return NOWHERE
    before = sum(map(len, words[: words.index(needle)]))
    total = sum(map(len, words))
    return Place(EXACT, before / total, (before + len(needle)) / total)


def _edits(needle: str, hay: str) -> tuple[int, int]:
    """Fewest edits between ``needle`` and any part of ``hay``, and where the first such part ends.

    Myers' bit-vector algorithm (1999): two integers encode a column of the edit table. Their bits
    say where the column rises and where it falls by one from row to row, so each letter of ``hay``
    costs a few operations however long ``needle`` is.
    """
    places: dict[str, int] = {}
    for row, letter in enumerate(needle):
        places[letter] = places.get(letter, 0) | 1 << row
    every = (1 << len(needle)) - 1
    last = 1 << len(needle) - 1
    rises, falls, edits = every, 0, len(needle)
    fewest, best = edits, 0
    for position, letter in enumerate(hay, start=1):
        same = places.get(letter, 0)
        free = (((same & rises) + rises) ^ rises) | same  # rows reached diagonally at no cost
        up, down = falls | ~(free | rises) & every, rises & free
        edits += bool(up & last) - bool(down & last)
        # a match may begin anywhere in hay, so nothing enters at the top
        up, down = up << 1 & every, down << 1 & every
        level = same | falls
        rises, falls = down | ~(level | up) & every, up & level
        if edits < fewest:
            fewest, best = edits, position
    return fewest, best
