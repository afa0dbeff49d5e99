"""Finds the stretch of a talk that is about a query, and where its topics change.

A line seldom contains all the words of a question, so the talk is searched in longer units::

    1  cut the talk into bins of 15 seconds
    2  compare each bin with the query: BM25 over the minute around it, closeness in meaning, and,
       where the query names a speaker, that speaker's share of the words; each smoothed over three
       bins, as standard deviations from its mean
    3  p ← the probability that a bin is part of the evidence, by logistic regression
    4  the stretch is the run of bins with the greatest expected F1: 2 Σ p in the run, over the
       length of the run plus the evidence expected everywhere: Σ p, 15 bins at most

The weights are fitted to the 301 questions of ``meetings`` (46 meetings of 11 to 46 minutes).
``benchmarks/meetings.py`` measures them, and weights fitted to the other teams' meetings. In these
meetings the evidence grows with their length, as Σ p does; in a talk of hours, Σ p would exceed the
evidence for any question.

Topics are separated as in TextTiling (Hearst 1997), by meaning instead of words::

    1  compare the two minutes before the end of each bin with the two minutes after it: their mean
       meaning, and who speaks how much; each change as standard deviations from its mean
    2  a topic begins where the sum of both is a peak among the highest quarter

``benchmarks/chapters.py`` compares other lengths and quantiles, chosen on half of the teams and
measured on the other half.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from longtake.algorithms import changepoint, lexical
from longtake.algorithms.speakers import speaker
from longtake.types import Line, Segment

STEP = 15.0
"""Seconds of a bin."""
WEIGHTS = (0.25, 0.4, 0.7, 0.9, -2.5)
"""Of shared words, meaning, a named speaker, a question about all of a topic, and the constant."""
EVIDENCE = 15
"""Maximum expected number of bins of evidence: the average over the questions of ``meetings``."""
SIDE = 8
"""Bins that are compared on either side of a change of topic."""
HIGH = 0.75
"""Quantile that a change of topic exceeds."""
APART = 3
"""Minimum number of bins between two changes of topic."""
_BROAD = re.compile(r"\b(?:summar|describe|overview)", re.IGNORECASE)

Meanings = Callable[[Sequence[str]], NDArray[np.float32]]
"""One unit row per text."""


class Talk:
    """What is said in a film, in bins."""

    def __init__(self, lines: Sequence[Line], duration: float, meanings: Meanings) -> None:
        self._meanings, self._duration = meanings, duration
        # subtitles may name any time
        end = min(duration, max((line.segment.end for line in lines), default=0.0))
        count = max(1, math.ceil(end / STEP))
        words: list[list[str]] = [[] for _ in range(count)]
        speakers = [Counter[str]() for _ in range(count)]
        for line in lines:
            name, text = speaker(line.text)
            spoken = text.split()
            for place, word in enumerate(spoken):
                # words are spread evenly over their line, which may last for minutes
                time = line.segment.start + line.segment.duration * place / len(spoken)
                number = min(count - 1, int(time / STEP))
                words[number].append(word)
                speakers[number][name.lower()] += 1
        self.texts = [" ".join(spoken) for spoken in words]
        self._speakers = speakers
        stems = [[lexical.lemma(word) for word in lexical.content_words(t)] for t in self.texts]
        # one bin before and two after: a minute
        self._windows = [
            Counter(
                stem for bin_stems in stems[max(0, number - 1) : number + 3] for stem in bin_stems
            )
            for number in range(count)
        ]

    def features(self, question: str, drafts: Sequence[str] = ()) -> NDArray[np.float64]:
        """A row per bin, in the order of :data:`WEIGHTS`.

        A draft of the answer is a further query: it has words that the question does not have.
        """
        queries = [question, *drafts]
        rows = self._meanings([*queries, *self.texts]).astype(np.float64)
        meaning = rows[len(queries) :] @ rows[: len(queries)].T
        by_words = np.stack([bm25(query, self._windows) for query in queries], axis=1)
        speakers = [name for name in self._everyone if name and name in question.lower()]
        named = self._shares(speakers)
        columns = [
            _standard(_smoothed(_standard(values).mean(axis=1)))
            for values in (by_words, meaning, named[:, None])
        ]
        is_broad = np.full(len(self.texts), _BROAD.search(question) is not None)
        return np.stack([*columns, is_broad, np.ones(len(self.texts))], axis=1)

    def find(self, question: str, drafts: Sequence[str] = ()) -> Segment:
        """The stretch that is about a question."""
        logits = self.features(question, drafts) @ np.array(WEIGHTS)
        first, last = expected_best(1 / (1 + np.exp(-logits)))
        return Segment(first * STEP, last * STEP)

    def topics(self, max_topics: int, *, side: int = SIDE, quantile: float = HIGH) -> list[Segment]:
        """The film divided where the topic changes; the strongest changes count."""
        if len(self.texts) < 2:
            return [Segment(0.0, self._duration)]
        shares = np.stack([self._shares([name]) for name in self._everyone], axis=1)
        rows = self._meanings(self.texts).astype(np.float64)
        changes = _standard(_changes(rows, side)) + _standard(_changes(shares, side))
        cuts = changepoint.peaks(changes, APART, quantile)
        strongest = sorted(cuts, key=lambda cut: -changes[cut])[: max_topics - 1]
        edges = [0.0, *((cut + 1) * STEP for cut in sorted(strongest)), self._duration]
        return [Segment(start, end) for start, end in pairwise(edges)]

    @property
    def _everyone(self) -> list[str]:
        """The names of all speakers; without names, nobody's."""
        return sorted(frozenset[str]().union(*self._speakers)) or [""]

    def _shares(self, names: Sequence[str]) -> NDArray[np.float64]:
        """The share of each bin's words that these speakers say."""
        shares = []
        for counts in self._speakers:
            spoken = sum(counts[name] for name in names)
            shares.append(spoken / max(1, counts.total()))
        return np.array(shares)


def expected_best(probabilities: NDArray[np.float64]) -> tuple[int, int]:
    """Where the run with the greatest expected F1 begins and ends.

    Found by Dinkelbach's method (1967) for ratios: subtract the best ratio so far from the
    probabilities, take the run with the greatest sum, and repeat while its ratio increases.
    """
    everywhere = min(float(probabilities.sum()), EVIDENCE)
    ratio = -1.0
    while True:
        first, last = best_run(probabilities - ratio)
        raised = float(probabilities[first:last].sum()) / (last - first + everywhere)
        if raised <= ratio:
            return first, last
        ratio = raised


def best_run(gains: NDArray[np.float64]) -> tuple[int, int]:
    """Where the run with the greatest sum begins and ends (Kadane); it holds at least one."""
    best, place = -math.inf, (0, 1)
    total, first = -math.inf, 0
    for number, gain in enumerate(gains.tolist()):
        if total <= 0:
            total, first = 0.0, number
        total += gain
        if total > best:
            best, place = total, (first, number + 1)
    return place


def bm25(query: str, documents: Sequence[Counter[str]]) -> NDArray[np.float64]:
    """Okapi BM25 of each document with the usual constants (Robertson and Zaragoza 2009)."""
    k1, b = 1.2, 0.75
    lengths = np.array([document.total() for document in documents], np.float64)
    relative = lengths / max(1.0, float(lengths.mean()))
    scores = np.zeros(len(documents))
    for stem in sorted(lexical.lemmas([query])):  # a sum of floats depends on the order
        counts = np.array([document[stem] for document in documents], np.float64)
        having = float((counts > 0).sum())
        rarity = math.log(1 + (len(documents) - having + 0.5) / (having + 0.5))
        scores += rarity * counts * (k1 + 1) / (counts + k1 * (1 - b + b * relative))
    return scores


def _changes(rows: NDArray[np.float64], side: int) -> NDArray[np.float64]:
    """How far the sums of rows before and after each gap are apart: 1 − cosine."""
    gaps = []
    for gap in range(1, len(rows)):
        sums = [rows[max(0, gap - side) : gap].sum(axis=0), rows[gap : gap + side].sum(axis=0)]
        gaps.append(1 - changepoint.gram(np.array(sums))[0, 1])
    return np.array(gaps)


def _standard(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each column as standard deviations from its mean; zeros where all values are the same."""
    deviations = values.std(axis=0)
    centred = values - values.mean(axis=0)
    return np.where(deviations > 1e-9, centred / np.maximum(deviations, 1e-9), 0.0)


def _smoothed(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean of each value and its two neighbours."""
    padded = np.pad(values, 1, mode="edge")
    return (padded[:-2] + padded[1:-1] + padded[2:]) / 3
