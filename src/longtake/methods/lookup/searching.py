"""Which passages bear on a question, and which hold an answer."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from longtake.algorithms import lexical
from longtake.algorithms import passages as ranking
from longtake.footage.protocol import Footage
from longtake.methods.lookup.reading import Passage, read
from longtake.types import Line

BEARS = 0.35
"""Bearing from which a passage has to do with a question, measured by
``benchmarks/lookup_thresholds.py`` on the development half of the benchmark ``films``."""
WORD_WEIGHT = 0.1
"""What the weight of the shared words adds to the closeness in meaning."""


def bearing(
    footage: Footage, queries: Sequence[str], passages: Sequence[Passage], most: int
) -> NDArray[np.float64]:
    """How much each passage has to do with the closest query: meaning, plus the shared words.

    Meaning is compared for the ``most`` passages that share the most words; of a screen, the
    closest line counts, since the others may be about something else.
    """
    texts = [passage.text for passage in passages]
    by_words = ranking.by_words(queries, texts).max(axis=0)
    kept = np.argsort(-by_words, kind="stable")[:most]
    parts = compared([passages[number] for number in kept])
    rows = footage.meanings([*queries, *parts])
    closest = (rows[: len(queries)] @ rows[len(queries) :].T).max(axis=0)
    closeness = dict(zip(parts, closest.tolist(), strict=True))
    scores = np.full(len(passages), -1.0)
    for number in kept:
        own = [closeness[line.text] for line in passages[number].lines]
        meaning = max(closeness[texts[number]], *own)
        scores[number] = meaning + WORD_WEIGHT * by_words[number]
    return scores


def compared(passages: Sequence[Passage]) -> list[str]:
    """The texts of passages whose meaning is compared: each as a whole, and each of its lines."""
    texts: dict[str, None] = {}
    for passage in passages:
        texts |= dict.fromkeys([passage.text, *(line.text for line in passage.lines)])
    return list(texts)


def prepare(footage: Footage) -> None:
    """Have the meanings of everything said and shown computed, so that no question waits for it."""
    footage.meanings(compared(read(footage, None)))


def choose(
    scores: NDArray[np.float64], passages: Sequence[Passage], most: int, neighbours: int
) -> list[int]:
    """The passages that bear on the question with their neighbours, in time order."""
    order = np.argsort(-scores, kind="stable")[:most]
    best = [int(number) for number in order if scores[number] >= BEARS]
    lines = [Line(passage.segment, passage.text) for passage in passages]
    chosen = set(best)
    for source in {passages[number].source for number in best}:
        # a neighbour comes from the same source: what is said next, what is shown next
        own = [number for number, passage in enumerate(passages) if passage.source == source]
        places = [own.index(number) for number in best if passages[number].source == source]
        runs = ranking.with_neighbours(places, [lines[number] for number in own], neighbours)
        chosen |= {own[place] for run in runs for place in run}
    return sorted(chosen, key=lambda number: passages[number].segment)


def holding(answer: str, question: str, passages: Sequence[Passage]) -> list[tuple[Passage, float]]:
    """The passages that hold the words of an answer, with the share they hold, best first.

    Words of the question do not count unless the answer has no others. Where no single passage
    holds the answer, two that follow each other may: speech is cut in mid-sentence.
    """
    asked, said = lexical.lemmas([question]), lexical.lemmas([answer])
    wanted = said - asked or said
    pairs = []
    for one, other in pairwise(passages):
        if one.source == other.source == "speech":
            pairs.append(Passage(one.source, (*one.lines, *other.lines)))
    for candidates in (passages, pairs):
        shares = [(each, ranking.held(answer, wanted, each.text)) for each in candidates]
        enough = [each for each in shares if each[1] >= ranking.HELD]
        if enough:
            return sorted(enough, key=lambda each: -each[1])
    return []


def adds_nothing(answer: str, question: str) -> bool:
    """Whether an answer only repeats the question."""
    return not lexical.lemmas([answer]) - lexical.lemmas([question])
