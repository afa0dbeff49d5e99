"""Which passages may answer a question: by meaning, shared words, and the reranker."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from longtake.algorithms import lexical
from longtake.algorithms import passages as matching
from longtake.footage.look import likeness
from longtake.footage.protocol import Footage
from longtake.retrieval.passages import Passage, fitting, is_aside
from longtake.retrieval.question_kinds import (
    CERTAIN,
    AnswerType,
    answer_type,
    asks_for_words,
    holds,
)
from longtake.retrieval.relevance import WINDOW, Reader
from longtake.types import Line, Question, Segment

LONG_OPTION = 12
"""Words above which an option is an account of its own."""


RELEVANT = 0.35
"""Relevance from which a passage is about a question, measured by
``benchmarks/lookup_thresholds.py`` on the development half of the benchmark ``films``."""


READ = 16
"""Passages that the reader reads, at about 60 ms each on two cores."""


MAYBE_RELEVANT = 0.25
"""Relevance from which a further passage is read, once one reaches :data:`RELEVANT`."""


def queries_of(footage: Footage, question: Question) -> list[str]:
    """The queries of the search.

    Long options of a talk are left out: all of them are about the same talk, and with them fewer
    questions of ``meetings`` are answered right.
    """
    about = asks_for_words(question) or question.text
    written = any(len(each.split()) > LONG_OPTION for each in question.options)
    if written and "captions" not in footage.has:
        return [about]
    return [about, *question.options]


def closest(
    footage: Footage, question: Question, spoken: Sequence[Line], stretch: Segment, max_words: int
) -> list[Line]:
    """The lines of the stretch that are closest to the question, in time order.

    None if no line is relevant.
    """
    inside = [line for line in spoken if line.segment.middle in stretch and not is_aside(line)]
    if not inside:
        return []
    keywords = lexical.lemmas([question.text])
    meanings = likeness(footage, question.text, [line.text for line in inside])
    scores = dict(zip(inside, meanings.tolist(), strict=True))
    for line in inside:
        shared = keywords & lexical.lemmas([line.text])
        scores[line] += 0.1 * sum(map(lexical.idf, sorted(shared)))
    chosen = fitting(sorted(inside, key=lambda line: -scores[line]), max_words)
    reader = Reader(footage, question)
    if reader:
        read_now = reader.relevance([line.text for line in chosen[:READ]])
        is_relevant = read_now.max(initial=-np.inf) >= reader.threshold("account")
    else:
        is_relevant = max((scores[line] for line in chosen), default=0.0) >= RELEVANT
    return sorted(chosen, key=lambda line: line.segment) if is_relevant else []


def may_tell(question: Question, texts: Sequence[str]) -> bool:
    """Whether a text holds the type of answer asked for; true if the type is uncertain."""
    kind = asked_for(question)
    if kind not in CERTAIN:
        return True
    return any(holds(kind, text) for text in texts)


def asked_for(question: Question) -> AnswerType | None:
    """The type of answer that an open question asks for; ``None`` with options."""
    return None if question.options else answer_type(question.text)


def relevance_of(
    footage: Footage, queries: Sequence[str], passages: Sequence[Passage], most: int
) -> NDArray[np.float64]:
    """The relevance of each passage to its closest query: similarity plus shared words.

    Similarity is computed for the ``most`` passages that share the most words. Of a screen, the
    closest line counts, since the others may be about something else.
    """
    texts = [passage.text for passage in passages]
    by_words = matching.by_words(queries, texts).max(axis=0)
    kept = np.argsort(-by_words, kind="stable")[:most]
    parts = compared([passages[number] for number in kept])
    rows = footage.meanings([*queries, *parts])
    closest = (rows[: len(queries)] @ rows[len(queries) :].T).max(axis=0)
    closeness = dict(zip(parts, closest.tolist(), strict=True))
    scores = np.full(len(passages), -1.0)
    for number in kept:
        by_line = [closeness[line.text] for line in passages[number].lines]
        meaning = max(closeness[texts[number]], *by_line)
        # shared words break ties between passages of similar meaning
        scores[number] = meaning + 0.1 * by_words[number]
    return scores


def relevance_with_type(
    scores: NDArray[np.float64], passages: Sequence[Passage], kind: AnswerType | None
) -> NDArray[np.float64]:
    """The relevance of each passage, raised if it holds the type of answer asked for."""
    if kind is None:
        return scores
    held = [holds(kind, passage.text) for passage in passages]
    return scores + 0.2 * np.array(held, np.float64)


def compared(passages: Sequence[Passage]) -> list[str]:
    """The texts to embed: each passage as a whole, and each of its lines."""
    texts: dict[str, None] = {}
    for passage in passages:
        texts |= dict.fromkeys([passage.text, *(line.text for line in passage.lines)])
    return list(texts)


def reread(
    reader: Reader, passages: Sequence[Passage], promising: NDArray[np.float64]
) -> tuple[int, float]:
    """The most promising passage that the reader finds most relevant, and the highest relevance.

    That may be one of two or three passages that answer only together.
    """
    numbers = np.argsort(-promising, kind="stable")[:READ].tolist()
    scores = reader.relevance([passages[number].text for number in numbers])
    together = []
    for number in numbers:
        for size in range(2, WINDOW + 1):
            run = passages[number : number + size]
            if len(run) == size and all(each.source == "speech" for each in run):
                together.append(" ".join(each.text for each in run))
    highest = max(float(scores.max()), float(reader.relevance(together).max(initial=-np.inf)))
    return int(numbers[int(scores.argmax())]), highest


def choose(
    scores: NDArray[np.float64],
    passages: Sequence[Passage],
    most: int,
    neighbours: int,
    kind: AnswerType | None = None,
) -> list[int]:
    """The most promising passages with their neighbours, in time order.

    None if no passage reaches :data:`RELEVANT`. A name counts towards that; a colour or number does
    not, since many lines hold one: a red curtain says nothing about the colour of a hat. Once one
    passage reaches it, weaker ones are read too, since they may hold what the first only announces.
    """
    telling = relevance_with_type(scores, passages, None if kind in CERTAIN else kind)
    if telling.size == 0 or telling.max() < RELEVANT:
        return []
    promising = relevance_with_type(scores, passages, kind)
    order = np.argsort(-promising, kind="stable")[:most]
    best = [int(number) for number in order if promising[number] >= MAYBE_RELEVANT]
    return beside(best, passages, neighbours)


def beside(best: Sequence[int], passages: Sequence[Passage], neighbours: int) -> list[int]:
    """Passages with their neighbours, in time order."""
    lines = [Line(passage.segment, passage.text) for passage in passages]
    chosen = set(best)
    for source in {passages[number].source for number in best}:
        # a neighbour comes from the same source: what is said next, what is shown next
        of_source = [number for number, passage in enumerate(passages) if passage.source == source]
        places = [of_source.index(number) for number in best if passages[number].source == source]
        runs = matching.with_neighbours(places, [lines[number] for number in of_source], neighbours)
        chosen |= {of_source[place] for run in runs for place in run}
    return sorted(chosen, key=lambda number: passages[number].segment)
