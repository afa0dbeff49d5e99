"""Ranks lines of text against queries, by words and by meaning, and groups them into passages."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from longtake.algorithms import lexical, phrases
from longtake.algorithms.fusion import reciprocal_rank
from longtake.types import Line

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
    if phrases.match(answer, text) >= phrases.SURE:
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
            if is_phrase and phrases.match(query, text) >= phrases.SURE:
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
