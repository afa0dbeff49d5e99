"""Finds phrases in texts and lines close to a query, and fuses rankings of lines or of moments."""

from __future__ import annotations

import unicodedata
from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from longtake.algorithms import lexical
from longtake.algorithms.speakers import by_speaker
from longtake.types import Line, Segment

SURE = 0.8
"""Score from which a phrase counts as found, allowing for recognition errors."""

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
    matches it best (Sellers 1980). The place in a line of speech gives the time of the phrase,
    since the duration of a word is roughly proportional to its letters.
    """
    needle, hay = squeeze(phrase), squeeze(text)
    if not needle or not hay:
        return NOWHERE
    if len(needle) < SHORTEST:
        return _word(needle, text)
    position = hay.find(needle)  # the common case, and much faster than counting edits
    if position >= 0:
        return PhraseMatch(1.0, position / len(hay), (position + len(needle)) / len(hay))
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


class Occurrence(NamedTuple):
    """One place at which a phrase is said, and the lines that hold it."""

    segment: Segment
    text: str


def occurrences(phrase: str, lines: Sequence[Line]) -> list[Occurrence]:
    """Every place at which the words of a phrase follow each other, in any inflection.

    A phrase may begin in one line and end in the next one of the same speaker, if that follows
    within :data:`NEAR` seconds. The labels of speakers do not match.
    """
    found = []
    for name, spoken in by_speaker(lines).items():
        label = f"{name}: " if name else ""
        found += [hit._replace(text=label + hit.text) for hit in _in_a_row(phrase, spoken)]
    return sorted(found, key=lambda hit: hit.segment)


def _in_a_row(phrase: str, lines: Sequence[Line]) -> list[Occurrence]:
    wanted = lexical.words_in_order(phrase)
    words = [word for number, line in enumerate(lines) for word in _timed_words(line, number)]
    found: list[Occurrence] = []
    place = 0
    while wanted and place <= len(words) - len(wanted):
        run = words[place : place + len(wanted)]
        in_lines = [lines[number] for number in dict.fromkeys(word.line for word in run)]
        is_same = all(
            lexical.same_word(one, word.text) for one, word in zip(wanted, run, strict=True)
        )
        if is_same and all(_gap(one, other) <= NEAR for one, other in pairwise(in_lines)):
            text = " ".join(line.text for line in in_lines)
            found.append(Occurrence(Segment(run[0].start, max(run[0].start, run[-1].end)), text))
            place += len(wanted)
        else:
            place += 1
    return found


class _TimedWord(NamedTuple):
    text: str
    line: int
    start: float
    end: float


def _timed_words(line: Line, number: int) -> list[_TimedWord]:
    """The words of a line, with durations in proportion to their letters."""
    words = lexical.words_in_order(line.text)
    edges = np.cumsum([0, *map(len, words)]) / max(1, sum(map(len, words)))
    times = (line.segment.start + edges * line.segment.duration).tolist()
    return [
        _TimedWord(word, number, *span) for word, span in zip(words, pairwise(times), strict=True)
    ]


def _word(needle: str, text: str) -> PhraseMatch:
    """Find ``needle`` as a whole word."""
    words = [squeeze(word) for word in text.split()]
    if needle not in words:
        return NOWHERE
    before = sum(map(len, words[: words.index(needle)]))
    total = sum(map(len, words))
    return PhraseMatch(1.0, before / total, (before + len(needle)) / total)


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
"""Bonus of a line that contains a whole query."""


def by_words(queries: Sequence[str], texts: Sequence[str]) -> NDArray[np.float64]:
    """Overlap of content words, weighted by rarity, for each query and text.

    A text that contains a query of at least two words, allowing for recognition errors, gets
    :data:`QUOTED` in addition: OCR drops spaces and speech recognition drops endings, which an
    overlap of words misses.
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


def with_neighbours(chosen: Sequence[int], lines: Sequence[Line], reach: int) -> list[list[int]]:
    """Chosen lines with up to ``reach`` lines on either side, grouped into runs.

    A neighbour follows within :data:`NEAR` seconds: consecutive signs may be minutes apart and
    unrelated.
    """
    wanted: set[int] = set()
    for number in chosen:
        wanted.add(number)
        for step in (-1, 1):
            for distance in range(1, reach + 1):
                place = number + step * distance
                beside = place - step
                if not 0 <= place < len(lines) or _gap(lines[place], lines[beside]) > NEAR:
                    break
                wanted.add(place)
    runs: list[list[int]] = []
    for number in sorted(wanted):
        follows = bool(runs) and runs[-1][-1] == number - 1
        if follows and _gap(lines[number - 1], lines[number]) <= NEAR:
            runs[-1].append(number)
        else:
            runs.append([number])
    return runs


def _gap(one: Line, other: Line) -> float:
    """Seconds between two lines; 0 if they overlap."""
    return max(0.0, one.segment.start - other.segment.end, other.segment.start - one.segment.end)


T = TypeVar("T", bound=Hashable)

K = 60
"""The constant of reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009)."""


def reciprocal_rank(rankings: Sequence[Sequence[T]], *, k: int = K) -> list[tuple[T, float]]:
    """Score items by ``Σ 1 / (k + rank)`` over the rankings that contain them, best first.

    Ranks start at 1. Only ranks are used, since scores of different sources cannot be compared. An
    item counts once per ranking, at its best rank. Ties keep the order of first appearance.
    """
    scores: dict[T, float] = {}
    for ranking in rankings:
        for rank, item in enumerate(dict.fromkeys(ranking), start=1):
            scores[item] = scores.get(item, 0.0) + 1 / (k + rank)
    return sorted(scores.items(), key=lambda pair: -pair[1])


def by_moment(
    rankings: Mapping[str, Sequence[float]], *, apart: float
) -> list[tuple[float, float, dict[str, float]]]:
    """Fuse rankings of *times*: hits of different sources within ``apart`` seconds add up.

    Returns ``(time, score, {source: its time})``, best first. The time is that of the best-ranked
    hit. Each source contributes only its best hit to a moment; its later hits nearby are absorbed.
    """
    hits: list[tuple[int, str, float]] = []
    for source, times in rankings.items():
        hits += [(rank, source, time) for rank, time in enumerate(times, start=1)]
    moments: list[_Moment] = []
    for rank, source, time in sorted(hits):
        near = [moment for moment in moments if abs(moment.time - time) <= apart]
        if near:
            nearest = min(near, key=lambda moment: abs(moment.time - time))
            # hits come by rank, so the first one of a source is its best
            nearest.members.setdefault(source, (rank, time))
        else:
            moments.append(_Moment(time, {source: (rank, time)}))
    fused = []
    for moment in moments:
        score = sum(1 / (K + rank) for rank, _ in moment.members.values())
        found_at = {source: time for source, (_, time) in moment.members.items()}
        fused.append((moment.time, score, found_at))
    return sorted(fused, key=lambda entry: (-entry[1], entry[0]))


class _Moment(NamedTuple):
    """Hits that lie close together in time: rank and time by source."""

    time: float
    members: dict[str, tuple[int, float]]
