"""Search across films: rankings by words and vectors, fused, grouped by film.

The best rows are also ranked by the share of the text that a single sentence contains. BM25 counts
the words of a whole segment, in which one sentence may name the person and another the action; a
sentence with both is a better match. A question with two parts ("what does the person who … do
there?") is matched by two sentences of one film. Words are compared by their base forms, and
neighbouring words count as pairs: "the red coat" is not a red hat beside a blue coat (the
sequential dependence model of Metzler and Croft, SIGIR 2005, with its weight of pairs).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from longtake.algorithms import passages
from longtake.algorithms.lexical import lemma
from longtake.algorithms.passages import reciprocal_rank
from longtake.index.search import check_text
from longtake.library.catalog import Entry
from longtake.library.fts_index import SegmentIndex
from longtake.library.segments import SECONDS, WORDED, RowHit, StoredRow, Vectors, query_words
from longtake.perception.protocols import CalibratedEncoder, TextEncoder
from longtake.types import Line, Segment

Lookup = Callable[[Collection[str]], Mapping[str, Entry]]
"""Returns the library's entries for some fingerprints."""
KEEP = 100
"""Rows ranked per source."""
WEIGHED = 60
"""Number of best rows that are also ranked by their sentences."""
SHARES = (1.0, 0.25, 0.1)
"""Weights of a film's best moments in its rank: evidence adds up, but three weak matches must not
outweigh a good one."""
SHARP = 10
"""The constant of reciprocal rank fusion. With the usual 60, first place hardly counts for more
than tenth."""
SOURCES = {"said": "speech", "shown": "onscreen", "described": "described"}
"""Names of the sources of words in results."""


@dataclass(frozen=True)
class FoundMoment:
    """A moment of a film that fits a text."""

    time: float
    segment: Segment
    score: float
    """Comparable within one search only."""
    sure: bool
    """Whether at least one source is sure of it."""
    sources: tuple[str, ...]
    """The sources that found it, best rank first."""
    text: str = ""
    """What is said, shown or described there."""
    described: bool = False
    """Whether the text is a guess at what the picture shows rather than words of the film."""

    @property
    def words(self) -> str:
        """The text in quotation marks, or a guess at the picture in parentheses; may be empty."""
        if not self.text:
            return ""
        return f"(perhaps {self.text})" if self.described else f"“{self.text}”"


@dataclass(frozen=True)
class FilmHits:
    """A film and its moments, best first."""

    entry: Entry
    score: float
    moments: tuple[FoundMoment, ...]
    stated: float = 0.0
    """Share of the text's words that two sentences of the film contain, 0 to 1."""


@dataclass(frozen=True)
class LibrarySearchResult:
    """What a search found."""

    films: list[FilmHits]
    searched: int
    """Films that were searched."""

    @property
    def sure(self) -> bool:
        """Whether there is any confident hit."""
        return any(moment.sure for film in self.films for moment in film.moments)


class Statement(NamedTuple):
    """What a sentence contains of a text: words and pairs of neighbouring words."""

    words: frozenset[str] = frozenset()
    pairs: frozenset[tuple[str, str]] = frozenset()
    share: float = 0.0
    """Their share of the text, 0 to 1."""


NOTHING = Statement()


@dataclass
class _Fused:
    """A row with its fused score and the sources that ranked it."""

    stored: StoredRow
    score: float
    sources: list[str]
    sure: bool = False
    line: Line | None = None
    """The line in which the text occurs."""
    statement: Statement = NOTHING
    """What its best sentence contains of the text; only for the first :data:`WEIGHED` rows."""


@dataclass
class _Film:
    """A film as it is ranked."""

    name: str
    """Fingerprint."""
    score: float
    runs: list[list[_Fused]]
    """Its moments, best first: rows that lie side by side."""
    stated: float


def search(
    index: SegmentIndex,
    text: str,
    lookup: Lookup,
    *,
    images: Any,
    sentences: TextEncoder,
    among: Collection[str] | None,
    films: int,
    moments: int,
) -> list[FilmHits]:
    """The films and moments that fit a text best; ``among`` limits it to some films.

    The encoders of ``images`` and ``sentences`` are those that made the index.
    """
    check_text(text)
    picture, meaning = images.texts([text])[0], sentences.texts([text])[0]
    rankings = {source: index.words(text, source, KEEP, among) for source in WORDED}
    rankings["picture"] = index.nearest(picture, "picture", KEEP, among)
    rankings["meaning"] = index.nearest(meaning, "meaning", KEEP, among)
    fused = _fuse(index, rankings, max(150, 5 * films))
    matcher = SentenceMatcher(text)
    _weigh_statements(fused, matcher)
    # comparing lines letter by letter is slow, so only the best rows are compared
    for each in fused[:30]:
        each.line = _occurrence(text, each)
        each.sure = each.line is not None
    _judge_pictures(fused, rankings["picture"], picture, images)
    # unsure sources must not outvote a sure one
    fused.sort(key=lambda each: (not each.sure, -each.score))
    entries = lookup({each.stored.film for each in fused})
    known = [each for each in fused if each.stored.film in entries]
    results = []
    for film in _grouped(known, matcher)[:films]:
        found = tuple(_moment(run[0], matcher) for run in film.runs[:moments])
        results.append(FilmHits(entries[film.name], film.score, found, film.stated))
    return results


def _fuse(
    index: SegmentIndex, rankings: Mapping[str, Sequence[RowHit]], limit: int
) -> list[_Fused]:
    ordered = [[hit.row for hit in hits] for hits in rankings.values()]
    scores = dict(reciprocal_rank(ordered, k=SHARP)[:limit])
    places: dict[int, list[tuple[int, str]]] = {}
    for source, hits in rankings.items():
        for rank, hit in enumerate(hits):
            places.setdefault(hit.row, []).append((rank, source))
    fused = []
    for stored in index.fetch(list(scores)):
        named = [SOURCES.get(source, source) for _, source in sorted(places[stored.row])]
        fused.append(_Fused(stored, scores[stored.row], named))
    return fused


def _weigh_statements(fused: list[_Fused], matcher: SentenceMatcher) -> None:
    """Add a ranking of the best rows: by the share of the text in a single sentence."""
    leading = fused[:WEIGHED]
    statements = matcher.of_rows([each.stored for each in leading])
    ranks = ranked([statement.share for statement in statements])
    for each, statement, rank in zip(leading, statements, ranks, strict=True):
        each.statement = statement
        # times the share, since in a small library a row with a single word may rank second.
        # The weight is 4 beside 1 for each source: of 480 questions to 200 lab films, without their
        # options, a search finds the right film first for 437 with weight 1, for 454 with 2 and for
        # 462 with 4
        each.score += 4.0 * statement.share / (SHARP + rank)
    fused.sort(key=lambda each: -each.score)


def _occurrence(text: str, each: _Fused) -> Line | None:
    """The line in which a text occurs, in the sources that found the row by its words."""
    best, occurrence = passages.SURE, None
    for source in WORDED:
        if SOURCES[source] not in each.sources:
            continue
        for line in each.stored.lines.get(source, ()):
            fit = _fit(text, line.text, source)
            if fit > best or (fit == best and occurrence is None):
                best, occurrence = fit, line
    return occurrence


def _fit(text: str, line: str, source: str) -> float:
    """How well a text occurs in a line, 0 to 1; recognition errors are allowed for."""
    if source == "described":
        # captions and tags contain no recognition errors
        return float(passages.squeeze(text) in passages.squeeze(line))
    return passages.match(text, line)


def _judge_pictures(
    fused: Sequence[_Fused], hits: Sequence[RowHit], vector: Vectors, images: Any
) -> None:
    """Mark rows whose picture stands out for the query's vector, if the encoder is calibrated."""
    if not hits or not isinstance(images, CalibratedEncoder):
        return
    # the measure depends on the cosine only, so a vector with that cosine stands in for the row's
    cosines = np.array([hit.score for hit in hits], np.float32)
    surprise = images.surprise(vector[None], cosines[:, None] * vector[None])[0]
    least = images.thresholds["surprise"]
    sure = {hit.row for hit, value in zip(hits, surprise, strict=True) if value >= least}
    for each in fused:
        each.sure = each.sure or each.stored.row in sure


def _grouped(fused: Sequence[_Fused], matcher: SentenceMatcher) -> list[_Film]:
    """Films, best first: those with a sure moment, then by their best moments and sentences."""
    rows: dict[str, list[_Fused]] = {}
    for each in fused:
        rows.setdefault(each.stored.film, []).append(each)
    films = []
    for name, of_film in rows.items():
        runs = _runs(of_film)
        score = sum(share * run[0].score for share, run in zip(SHARES, runs, strict=False))
        stated = matcher.together(each.statement for each in of_film)
        films.append(_Film(name, score, runs, stated))
    for film, rank in zip(films, ranked([film.stated for film in films]), strict=True):
        # films are also ranked by what two of their sentences state together: without this, the
        # right film is first for 458 of those questions
        film.score += film.stated / (SHARP + rank)
    return sorted(films, key=lambda film: (not film.runs[0][0].sure, -film.score))


def ranked(values: Sequence[float]) -> list[int]:
    """The rank of each value from 1, largest first; equal values share a rank."""
    ascending = sorted(values)
    return [len(values) - bisect_right(ascending, value) + 1 for value in values]


def _runs(rows: Sequence[_Fused]) -> list[list[_Fused]]:
    """Group the rows of a film into moments, best first: adjacent rows are one moment."""
    runs: list[list[_Fused]] = []
    for row in rows:
        segment = row.stored.segment
        for run in runs:
            best = run[0].stored.segment
            if max(segment.start - best.end, best.start - segment.end) < SECONDS / 2:
                run.append(row)
                break
        else:
            runs.append([row])
    return runs


def _moment(best: _Fused, matcher: SentenceMatcher) -> FoundMoment:
    segment = best.stored.segment
    line, fits = (best.line, True) if best.line else _best_line(best.stored, matcher)
    # only the time of a matching line is more precise than the segment
    time = line.segment.start if line is not None and fits else segment.start
    text = "" if line is None else line.text
    described = line is not None and line in best.stored.lines.get("described", ())
    return FoundMoment(time, segment, best.score, best.sure, tuple(best.sources), text, described)


def _best_line(stored: StoredRow, matcher: SentenceMatcher) -> tuple[Line | None, bool]:
    """The line of a row to show, and whether it contains any word of the text."""
    lines = [line for source in WORDED for line in stored.lines.get(source, ())]
    shares = [statement.share for statement in matcher.best([line.text for line in lines])]
    best = max(range(len(lines)), key=shares.__getitem__, default=None)
    return (None, False) if best is None else (lines[best], shares[best] > 0)


PAIRS = 0.15
"""Weight of the pairs of neighbouring words; single words have the rest."""
_END = re.compile(r"(?<=[.!?])\s+")
_SHARE = attrgetter("share")


class SentenceMatcher:
    """Compares sentences with a text; each line is analysed once."""

    def __init__(self, text: str) -> None:
        words = _base_forms(text)
        self._words, self._pairs = frozenset(words), frozenset(pairwise(words))
        self._known: dict[str, Statement] = {}

    def best(self, texts: Sequence[str]) -> list[Statement]:
        """For each text, what its best sentence contains."""
        for text in texts:
            if text not in self._known:
                held = [self._held(_base_forms(sentence)) for sentence in _END.split(text)]
                self._known[text] = max(held, key=_SHARE)
        return [self._known[text] for text in texts]

    def of_rows(self, rows: Sequence[StoredRow]) -> list[Statement]:
        """For each row, what the best sentence of its lines contains."""
        statements = []
        for row in rows:
            texts = [line.text for lines in row.lines.values() for line in lines]
            statements.append(max(self.best(texts), key=_SHARE, default=NOTHING))
        return statements

    def together(self, statements: Iterable[Statement]) -> float:
        """The largest share that two statements contain together."""
        leading = sorted(statements, key=_SHARE, reverse=True)[:8]
        shares = [leading[0].share] if leading else [0.0]
        for one, other in combinations(leading, 2):
            words, pairs = one.words | other.words, one.pairs | other.pairs
            # unless the second one adds nothing
            if len(words) > len(one.words) or len(pairs) > len(one.pairs):
                shares.append(self._share(words, pairs))
        return max(shares)

    def _held(self, sentence: Sequence[str]) -> Statement:
        words = self._words.intersection(sentence)
        pairs = self._pairs.intersection(pairwise(sentence)) if len(words) > 1 else frozenset()
        return Statement(words, pairs, self._share(words, pairs))

    def _share(self, words: Collection[str], pairs: Collection[tuple[str, str]]) -> float:
        share = len(words) / max(1, len(self._words))
        if not self._pairs:
            return share
        return (1 - PAIRS) * share + PAIRS * len(pairs) / len(self._pairs)


def _base_forms(text: str) -> list[str]:
    return [lemma(word) for word in query_words(text)]
