"""Finds the stretches of a talk that are about a query.

A discussion seldom repeats the words of a question in one line, so lines are too small to find it::

    1  cut the talk into bins of 15 seconds
    2  score each bin: BM25 over the minute around it, closeness in meaning over three bins, and,
       where the query names a speaker, that speaker's share of the words; z-scores, added
    3  a stretch is the run of bins with the greatest sum of score minus threshold

Bins, windows, equal weights and thresholds come from ``meetings`` (46 meetings); finer tuning did
not carry over from one half of the teams to the other. ``benchmarks/meetings.py`` prints what is
found with them, and with thresholds that are chosen on the other teams.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from longtake.algorithms import lexical
from longtake.types import Line, Segment

STEP = 15.0
"""Seconds of a bin."""
THRESHOLDS = (1.0, 0.3)
"""Score that a bin adds to a stretch from; the lower one is for questions about all of a topic."""
_BROAD = re.compile(r"\b(?:summar|describe|overview)", re.IGNORECASE)
_SPEAKER = re.compile(r"([^\W\d_][\w .'’-]{0,40}):\s")

Meanings = Callable[[Sequence[str]], NDArray[np.float32]]
"""One unit row per text."""


class Talk:
    """What is said in a film, in bins; queries are compared with it."""

    def __init__(self, lines: Sequence[Line], duration: float, meanings: Meanings) -> None:
        self._meanings = meanings
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

    def scores(self, queries: Sequence[str]) -> NDArray[np.float64]:
        """How much each bin has to do with the queries, in standard deviations, added up."""
        rows = self._meanings([*queries, *self.texts]).astype(np.float64)
        total = np.zeros(len(self.texts))
        for query, row in zip(queries, rows, strict=False):
            closeness = _smoothed(rows[len(queries) :] @ row)
            total += _standard(bm25(query, self._windows)) + _standard(closeness)
        return total + _standard(_smoothed(self._named(queries[0]))) / 2

    def _named(self, query: str) -> NDArray[np.float64]:
        """The share of each bin's words that is said by speakers whom the query names."""
        everyone = frozenset().union(*self._speakers) - {""}
        named = [name for name in everyone if name in query.lower()]
        shares = []
        for counts in self._speakers:
            spoken = sum(counts[name] for name in named)
            shares.append(spoken / max(1, counts.total()))
        return np.array(shares)


def find(
    scores: NDArray[np.float64],
    query: str,
    queries: int = 1,
    *,
    max_stretches: int = 2,
    thresholds: tuple[float, float] = THRESHOLDS,
) -> list[Segment]:
    """The stretches with the greatest scores of that many queries, the best first; at least one."""
    threshold = thresholds[_BROAD.search(query) is not None] * queries
    left = scores - threshold
    found: list[tuple[float, Segment]] = []
    for _ in range(max_stretches):
        first, last = best_run(left)
        gain = float(left[first:last].sum())
        # a second stretch counts if it is nearly as good as the first
        if found and gain < 0.6 * found[0][0]:
            break
        found.append((gain, Segment(first * STEP, last * STEP)))
        left[first:last] = -np.inf
    return [segment for _, segment in found]


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


def speaker(text: str) -> tuple[str, str]:
    """Who says a line, and what: subtitles put a name and a colon before it."""
    match = _SPEAKER.match(text)
    return (match[1], text[match.end() :]) if match else ("", text)


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


def _standard(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values as standard deviations from their mean."""
    deviation = float(values.std())
    return (values - values.mean()) / deviation if deviation > 1e-9 else np.zeros_like(values)


def _smoothed(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean of each value and its two neighbours."""
    padded = np.pad(values, 1, mode="edge")
    return (padded[:-2] + padded[1:-1] + padded[2:]) / 3
