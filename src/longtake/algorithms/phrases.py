"""Finding a phrase in text that was read or heard imperfectly.

On-screen text loses its spaces and a letter here and there ("ALLRIGHTS RESERVED"), speech loses endings. So
both sides are squeezed to letters and digits, and the best-matching stretch of the text is scored.
"""

from __future__ import annotations

import unicodedata
from typing import NamedTuple

from longtake.types import Line

SURE = 0.8
"""Share of a phrase's letters that must be there to be sure of it, misreadings allowed."""

EXACT = 1.0
SHORTEST = 3
"""A phrase with fewer letters matches only itself as a whole word: two letters are in everything."""


def squeeze(text: str) -> str:
    """Letters and digits only, lower case, accents and width variants removed: ``Café №7`` is ``cafeno7``."""
    plain = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in plain if letter.isalnum())


class Place(NamedTuple):
    """Where a phrase stands in a text, as shares of the text's letters, and how well it fits, 0 to 1."""

    score: float
    begin: float
    end: float


NOWHERE = Place(0.0, 0.0, 0.0)


def match(phrase: str, text: str) -> float:
    """How well ``text`` holds ``phrase``, 0 to 1: the score of :func:`find`."""
    return find(phrase, text).score


def find(phrase: str, text: str) -> Place:
    """The stretch of ``text`` that fits ``phrase`` best; its score is ``1 − edits ÷ length``.

    Verbatim up to case, spaces and marks is 1. Edits are insertions, deletions and substitutions between the
    squeezed phrase and the stretch of the squeezed text that fits it best (Sellers 1980). The place tells when,
    within a long line of speech, the phrase was said: words take about as long as they have letters.
    """
    needle, hay = squeeze(phrase), squeeze(text)
    if not needle or not hay:
        return NOWHERE
    if len(needle) < SHORTEST:
        return _word(needle, text)
    position = hay.find(needle)
    if position >= 0:
        return Place(EXACT, position / len(hay), (position + len(needle)) / len(hay))
    edits, end = _edits(needle, hay)
    score = 1 - edits / len(needle)
    return (
        Place(score, max(0, end - len(needle)) / len(hay), end / len(hay)) if score > 0 else NOWHERE
    )


def said_at(phrase: str, line: Line) -> float:
    """The moment within a line at which ``phrase`` begins, as near as its place in the text tells."""
    return line.segment.start + find(phrase, line.text).begin * line.segment.duration


def _word(needle: str, text: str) -> Place:
    words = [squeeze(word) for word in text.split()]
    if needle not in words:
        return NOWHERE
    before = sum(map(len, words[: words.index(needle)]))
    total = sum(map(len, words))
    return Place(EXACT, before / total, (before + len(needle)) / total)


def _edits(needle: str, hay: str) -> tuple[int, int]:
    """Fewest edits between ``needle`` and any stretch of ``hay``, and where the first such stretch ends.

    Myers' algorithm (1999): a column of the table of edits is two numbers, whose bits say where it rises and where
    it falls by one from row to row, so that a letter of ``hay`` costs a few operations however long ``needle`` is.
    """
    places: dict[str, int] = {}
    for row, letter in enumerate(needle):
        places[letter] = places.get(letter, 0) | 1 << row
    every, last = (1 << len(needle)) - 1, 1 << len(needle) - 1
    rises, falls, edits = every, 0, len(needle)
    fewest, best = edits, 0
    for position, letter in enumerate(hay, start=1):
        same = places.get(letter, 0)
        free = (((same & rises) + rises) ^ rises) | same  # rows reached diagonally at no cost
        up, down = falls | ~(free | rises) & every, rises & free
        edits += bool(up & last) - bool(down & last)
        up, down = (
            up << 1 & every,
            down << 1 & every,
        )  # a stretch may begin anywhere: nothing enters at the top
        level = same | falls
        rises, falls = down | ~(level | up) & every, up & level
        if edits < fewest:
            fewest, best = edits, position
    return fewest, best
