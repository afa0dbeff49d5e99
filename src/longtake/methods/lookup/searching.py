"""Which passages bear on a question, and which hold an answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from longtake.algorithms import lexical
from longtake.algorithms import passages as ranking
from longtake.algorithms.expected import CERTAIN, Kind, holds
from longtake.footage.protocol import Footage
from longtake.methods.lookup.reading import SHORT_SCREEN, Passage, read
from longtake.types import Line

BEARS = 0.35
"""Bearing from which a passage has to do with a question, measured by
``benchmarks/lookup_thresholds.py`` on the development half of the benchmark ``films``."""
MAY_BEAR = 0.25
"""Bearing from which a passage is read as well, once another one clears :data:`BEARS`."""
WORD_WEIGHT = 0.1
"""What the weight of the shared words adds to the closeness in meaning."""
AS_GOOD = 0.9
"""Share of the best passage's words of question and answer that another cited one must hold."""
KIND_WEIGHT = 0.2
"""What it adds to a passage's rank if it holds the kind of thing that is asked for, such as a
name."""


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


def promise(
    scores: NDArray[np.float64], passages: Sequence[Passage], kind: Kind | None
) -> NDArray[np.float64]:
    """The bearing of each passage, and more if it holds the kind of thing that is asked for."""
    if kind is None:
        return scores
    held = [holds(kind, passage.text) for passage in passages]
    return scores + KIND_WEIGHT * np.array(held, np.float64)


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
    scores: NDArray[np.float64],
    passages: Sequence[Passage],
    most: int,
    neighbours: int,
    kind: Kind | None = None,
) -> list[int]:
    """The most promising passages with their neighbours, in time order.

    None if no passage clears :data:`BEARS`. A name counts for that; a colour or a number does not,
    since many lines hold one: that a curtain is red does not make it bear on the colour of a hat.
    Below that, a passage is too weak to ask a model, but may still tell what the others only
    announce.
    """
    telling = promise(scores, passages, None if kind in CERTAIN else kind)
    if telling.size == 0 or telling.max() < BEARS:
        return []
    promising = promise(scores, passages, kind)
    order = np.argsort(-promising, kind="stable")[:most]
    best = [int(number) for number in order if promising[number] >= MAY_BEAR]
    lines = [Line(passage.segment, passage.text) for passage in passages]
    chosen = set(best)
    for source in {passages[number].source for number in best}:
        # a neighbour comes from the same source: what is said next, what is shown next
        own = [number for number, passage in enumerate(passages) if passage.source == source]
        places = [own.index(number) for number in best if passages[number].source == source]
        runs = ranking.with_neighbours(places, [lines[number] for number in own], neighbours)
        chosen |= {own[place] for run in runs for place in run}
    return sorted(chosen, key=lambda number: passages[number].segment)


def excerpt(footage: Footage, question: str, passage: Passage) -> Passage:
    """The part of a long screen around the line that is closest to the question.

    A page of small print would fill the prompt, and a small model loses the rest among it.
    """
    if passage.source != "onscreen" or len(passage.lines) <= SHORT_SCREEN:
        return passage
    rows = footage.meanings([question, *(line.text for line in passage.lines)])
    closest = int(np.argmax(rows[1:] @ rows[0]))
    first = min(max(0, closest - SHORT_SCREEN // 2), len(passage.lines) - SHORT_SCREEN)
    return replace(passage, lines=passage.lines[first : first + SHORT_SCREEN])


def holding(answer: str, question: str, passages: Sequence[Passage]) -> list[tuple[Passage, float]]:
    """The passages that hold the words of an answer, with the share they hold, best first.

    Words of the question do not count unless the answer has no others. Where no single passage
    holds the answer, two that follow each other may: speech is cut in mid-sentence. Of several,
    only those are kept that also hold about as much of the question as the best one: a price is
    named for many things.
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
            strength = [ranking.held("", asked | said, passage.text) for passage, _ in enough]
            order = sorted(range(len(enough)), key=lambda place: -strength[place])
            least = AS_GOOD * max(strength)
            return [enough[place] for place in order if strength[place] >= least]
    return []


def adds_nothing(answer: str, question: str) -> bool:
    """Whether an answer only repeats the question."""
    return not lexical.lemmas([answer]) - lexical.lemmas([question])
