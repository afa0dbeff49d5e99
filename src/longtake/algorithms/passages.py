"""Ranks lines of text against queries, by words and by meaning, and groups them into passages."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from longtake.algorithms import lexical
from longtake.algorithms.novelty import reciprocal_rank
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


class PhraseMatch(NamedTuple):
    """How well a phrase matches (0 to 1), and where, as shares of the letters of the text."""

    score: float
    begin: float
    end: float


NOWHERE = PhraseMatch(0.0, 0.0, 0.0)


def match(phrase: str, text: str) -> float:
    """Return how well ``phrase`` occurs in ``text``, 0 to 1: the score of :func:`find`."""
    return find(phrase, text).score


def find(phrase: str, text: str) -> PhraseMatch:
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
        return PhraseMatch(EXACT, position / len(hay), (position + len(needle)) / len(hay))
    edits, end = _edits(needle, hay)
    score = 1 - edits / len(needle)
    if score <= 0:
        return NOWHERE
    begin = max(0, end - len(needle))
    return PhraseMatch(score, begin / len(hay), end / len(hay))


def said_at(phrase: str, line: Line) -> float:
    """Estimate when ``phrase`` begins within a line, from its place in the text."""
    place = find(phrase, line.text)
    return line.segment.start + place.begin * line.segment.duration


def _word(needle: str, text: str) -> PhraseMatch:
    """Find ``needle`` as a whole word."""
    words = [squeeze(word) for word in text.split()]
    if needle not in words:
        return NOWHERE
    before = sum(map(len, words[: words.index(needle)]))
    total = sum(map(len, words))
    return PhraseMatch(EXACT, before / total, (before + len(needle)) / total)


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


NEAR = 5.0
"""Seconds between lines that still belong together."""
QUOTED = 2.0
"""Word score of a line that holds a whole query: more than any overlap of single words."""


_NUMBER = re.compile(r"\d+")

HELD = 0.6
"""Share of an answer's words, weighted by rarity, that a text must hold to be cited for it."""


def held(answer: str, wanted: frozenset[str], text: str) -> float:
    """The share of the wanted base forms in a text; 1 if it holds the answer letter for letter.

    It is 0 if a number of the answer is missing: one digit is a small edit and another fact.
    """
    if not set(_NUMBER.findall(answer)) <= set(_NUMBER.findall(text)):
        return 0.0
    if match(answer, text) >= SURE:
        return 1.0
    total = sum(lexical.idf(word) for word in wanted)
    shared = sum(lexical.idf(word) for word in wanted & lexical.lemmas([text]))
    return shared / total if total else 0.0


def by_words(queries: Sequence[str], texts: Sequence[str]) -> NDArray[np.float64]:
    """Overlap of content words, weighted by rarity, for each query and text.

    A text that holds an option or a phrase of at least two words, recognition errors allowed, gets
    :data:`QUOTED` on top: reading drops spaces and hearing drops endings, which an overlap of words
    misses.
    """
    forms = [lexical.lemmas([text]) for text in texts]
    scores = np.zeros((len(queries), len(texts)))
    for row, query in enumerate(queries):
        keywords = lexical.lemmas([query])
        is_phrase = len(query.split()) >= 2
        for column, text in enumerate(texts):
            scores[row, column] = sum(lexical.idf(word) for word in forms[column] & keywords)
            if is_phrase and match(query, text) >= SURE:
                scores[row, column] += QUOTED
    return scores


def best_lines(
    words: NDArray[np.float64], meanings: NDArray[np.float64], most: int
) -> list[tuple[int, float]]:
    """The best columns over all queries, with their fused scores, best first.

    ``words`` and ``meanings`` hold a score per query and line. Scores of different kinds cannot be
    compared, so rankings are fused by reciprocal rank; a line without any shared word has no rank
    by words.
    """
    rankings = []
    for scores, least in ((words, 0.0), (meanings, -np.inf)):
        for row in scores:
            order = np.argsort(-row, kind="stable").tolist()
            rankings.append([column for column in order if row[column] > least])
    return reciprocal_rank(rankings)[:most]


def with_neighbours(
    chosen: Sequence[int], lines: Sequence[Line], reach: int, near: float = NEAR
) -> list[list[int]]:
    """Chosen lines with up to ``reach`` lines on either side, grouped into runs.

    A neighbour follows within ``near`` seconds: signs that are minutes apart stand side by side in
    a list, but have nothing to do with each other.
    """
    wanted: set[int] = set()
    for number in chosen:
        wanted.add(number)
        for step in (-1, 1):
            for distance in range(1, reach + 1):
                place = number + step * distance
                beside = place - step
                if not 0 <= place < len(lines) or _gap(lines[place], lines[beside]) > near:
                    break
                wanted.add(place)
    runs: list[list[int]] = []
    for number in sorted(wanted):
        follows = bool(runs) and runs[-1][-1] == number - 1
        if follows and _gap(lines[number - 1], lines[number]) <= near:
            runs[-1].append(number)
        else:
            runs.append([number])
    return runs


def _gap(one: Line, other: Line) -> float:
    """Seconds between two lines; 0 if they overlap."""
    return max(0.0, one.segment.start - other.segment.end, other.segment.start - one.segment.end)
