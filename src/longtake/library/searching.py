"""Search across films: rankings by words, by pictures and by meaning, fused by reciprocal rank.

Scores of different sources cannot be compared, but their rankings can (Cormack, Clarke and
Büttcher, SIGIR 2009). What a source is sure of by its own measure comes first, as in the search of
one film.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from longtake.algorithms import phrases
from longtake.algorithms.fusion import reciprocal_rank
from longtake.index.search import check_text
from longtake.library.copies import once
from longtake.library.entries import Entry
from longtake.library.segment_index import Hit, SegmentIndex, Stored
from longtake.library.segments import SECONDS, WORDED, Sentences, Vectors
from longtake.library.statements import NOTHING, Asked, Statement
from longtake.perception.protocols import CalibratedEncoder
from longtake.types import Line, Segment

Lookup = Callable[[Collection[str]], Mapping[str, Entry]]
"""Gives the films with some fingerprints, as far as they are in the library."""
KEEP = 100
"""Rows ranked per source."""
READ = 150
"""Best rows that are read at all; more if many films are asked for."""
WEIGHED = 60
"""Best rows that are ranked by how much of the text a single sentence of theirs holds."""
LOOKED_AT = 30
"""Best rows whose lines are compared with the text, letter by letter."""
SHARES = (1.0, 0.25, 0.1)
"""What a film's best moments count for its rank: evidence adds up, but three moments that fit a
little must not outweigh one that fits well."""
SHARP = 10
"""The constant of reciprocal rank fusion. With the usual 60, first place hardly counts for more
than tenth."""
STATED = 4.0
"""Weight of the ranking by sentences, beside 1 for each source. Of 480 questions to 200 lab films,
without their options, a search finds the right film first for 437 with weight 1, for 454 with 2 and
for 462 with 4."""
WHOLE = 1.0
"""Weight of the ranking of films by what two of their sentences state together: without it, the
right film is first for 458 of those questions."""
SOURCES = {"said": "speech", "shown": "onscreen", "described": "described"}
"""Names of the sources of words in results."""


@dataclass(frozen=True)
class Moment:
    """A moment of a film that fits a text."""

    time: float
    segment: Segment
    score: float
    """Comparable within one search only."""
    sure: bool
    """Whether some source is sure of it by its own measure."""
    sources: tuple[str, ...]
    """The sources that found it, best rank first."""
    text: str = ""
    """What is said, shown or described there."""
    copies: tuple[tuple[str, float], ...] = ()
    """Other films (by name) and times at which the same clip occurs."""


@dataclass(frozen=True)
class FilmHits:
    """A film and its moments, best first."""

    entry: Entry
    score: float
    moments: tuple[Moment, ...]
    stated: float = 0.0
    """Share of the text's words that two sentences of the film hold, 0 to 1."""


@dataclass(frozen=True)
class Found:
    """What a search found."""

    films: list[FilmHits]
    searched: int
    """Films that were searched."""

    @property
    def sure(self) -> bool:
        """Whether any moment was found with confidence."""
        return any(moment.sure for film in self.films for moment in film.moments)


@dataclass(frozen=True)
class Query:
    """A text in every form in which rows are compared with it."""

    text: str
    vectors: Mapping[str, Vectors] = field(default_factory=dict)
    """Unit vectors by kind."""


@dataclass
class _Fused:
    """A row with its fused score and the sources that ranked it."""

    stored: Stored
    score: float
    sources: list[str]
    sure: bool = False
    line: Line | None = None
    """The line in which the text occurs."""
    statement: Statement = NOTHING
    """What its best sentence holds of the text; known of the first :data:`WEIGHED` rows."""


_Found: TypeAlias = tuple[_Fused, list[Stored]]
"""A row, and the rows of other films that are copies of it."""


@dataclass
class _Film:
    """A film as it is ranked."""

    name: str
    """Fingerprint."""
    score: float
    runs: list[list[_Found]]
    """Its moments, best first: rows that lie side by side."""
    stated: float


def make_query(text: str, images: Any, sentences: Sentences) -> Query:
    """The query for a text, with the encoders that made the index."""
    check_text(text)
    meaning = sentences.texts([text])[0]
    return Query(text, {"picture": images.texts([text])[0], "meaning": meaning})


def search(
    index: SegmentIndex,
    query: Query,
    lookup: Lookup,
    *,
    images: Any = None,
    among: Collection[str] | None = None,
    films: int = 10,
    moments: int = 3,
) -> list[FilmHits]:
    """The films and moments that fit a query best; ``among`` limits it to some films."""
    rankings = {source: index.words(query.text, source, KEEP, among) for source in WORDED}
    for kind, vector in query.vectors.items():
        rankings[kind] = index.nearest(vector, kind, KEEP, among)
    fused = _fuse(index, rankings, max(READ, 5 * films))
    asked = Asked(query.text)
    _weigh_statements(fused, asked)
    for each in fused[:LOOKED_AT]:
        each.line = _occurrence(query.text, each)
        each.sure = each.line is not None
    _judge_pictures(fused, rankings.get("picture", []), query, images)
    # what one source is unsure of must not outvote what another is sure of
    fused.sort(key=lambda each: (not each.sure, -each.score))
    entries = lookup({each.stored.film for each in fused})
    known = [each for each in fused if each.stored.film in entries]
    return [
        FilmHits(
            entries[film.name],
            film.score,
            tuple(_moment(run, entries, asked) for run in film.runs[:moments]),
            film.stated,
        )
        for film in _grouped(known, asked)[:films]
    ]


def _fuse(index: SegmentIndex, rankings: Mapping[str, Sequence[Hit]], most: int) -> list[_Fused]:
    ordered = [[hit.row for hit in hits] for hits in rankings.values()]
    scores = dict(reciprocal_rank(ordered, k=SHARP)[:most])
    places: dict[int, list[tuple[int, str]]] = {}
    for source, hits in rankings.items():
        for rank, hit in enumerate(hits):
            places.setdefault(hit.row, []).append((rank, source))
    fused = []
    for stored in index.fetch(list(scores)):
        named = [SOURCES.get(source, source) for _, source in sorted(places[stored.row])]
        fused.append(_Fused(stored, scores[stored.row], named))
    return fused


def _weigh_statements(fused: list[_Fused], asked: Asked) -> None:
    """One more ranking, of the best rows: by the share of the text in a single sentence."""
    leading = fused[:WEIGHED]
    statements = asked.of_rows([each.stored for each in leading])
    ranks = ranked([statement.share for statement in statements])
    for each, statement, rank in zip(leading, statements, ranks, strict=True):
        each.statement = statement
        # by the share as well: in a small library, a row that holds one word may be second
        each.score += STATED * statement.share / (SHARP + rank)
    fused.sort(key=lambda each: -each.score)


def _occurrence(text: str, each: _Fused) -> Line | None:
    """The line in which a text occurs, of the sources that found the row by its words."""
    best, line_of_best = phrases.SURE, None
    for source in WORDED:
        lines = each.stored.lines.get(source, ()) if SOURCES[source] in each.sources else ()
        for line in lines:
            fit = _fit(text, line.text, source)
            if fit > best or (fit == best and line_of_best is None):
                best, line_of_best = fit, line
    return line_of_best


def _fit(text: str, line: str, source: str) -> float:
    """How well a text occurs in a line, 0 to 1; recognition errors are allowed for."""
    if source == "described":
        # captions and tags were written, not recognised
        return float(phrases.squeeze(text) in phrases.squeeze(line))
    return phrases.match(text, line)


def _judge_pictures(
    fused: Sequence[_Fused], hits: Sequence[Hit], query: Query, images: Any
) -> None:
    """Mark rows whose picture stands out for the text, if the encoder can tell."""
    if not hits or not isinstance(images, CalibratedEncoder):
        return
    vector = query.vectors["picture"]
    # the measure depends on the cosine alone, so a vector with that cosine stands in for the row's
    cosines = np.array([hit.score for hit in hits], np.float32)
    surprise = images.surprise(vector[None], cosines[:, None] * vector[None])[0]
    sure = {
        hit.row
        for hit, value in zip(hits, surprise, strict=True)
        if value >= images.thresholds["surprise"]
    }
    for each in fused:
        each.sure = each.sure or each.stored.row in sure


def _grouped(fused: Sequence[_Fused], asked: Asked) -> list[_Film]:
    """Films, best first: those with a sure moment, then by their leading moments and in whole."""
    by_row = {each.stored.row: each for each in fused}
    rows: dict[str, list[_Found]] = {}
    for stored, copies in once([each.stored for each in fused]):
        rows.setdefault(stored.film, []).append((by_row[stored.row], copies))
    films = []
    for name, found in rows.items():
        runs = _runs(found)
        score = sum(share * run[0][0].score for share, run in zip(SHARES, runs, strict=False))
        stated = asked.together(each.statement for each, _ in found)
        films.append(_Film(name, score, runs, stated))
    for film, rank in zip(films, ranked([film.stated for film in films]), strict=True):
        film.score += WHOLE * film.stated / (SHARP + rank)
    return sorted(films, key=lambda film: (not film.runs[0][0][0].sure, -film.score))


def ranked(values: Sequence[float]) -> list[int]:
    """The rank of each value from 1, the largest first; equal values have one rank."""
    ascending = sorted(values)
    return [len(values) - bisect_right(ascending, value) + 1 for value in values]


def _runs(found: Sequence[_Found]) -> list[list[_Found]]:
    """A film's rows as moments, best first; a row right beside a better one belongs to it."""
    runs: list[list[_Found]] = []
    for pair in found:
        segment = pair[0].stored.segment
        for run in runs:
            best = run[0][0].stored.segment
            if max(segment.start - best.end, best.start - segment.end) < SECONDS / 2:
                run.append(pair)
                break
        else:
            runs.append([pair])
    return runs


def _moment(run: Sequence[_Found], entries: Mapping[str, Entry], asked: Asked) -> Moment:
    best = run[0][0]
    segment = best.stored.segment
    line, fits = (best.line, True) if best.line else _best_line(best.stored, asked)
    copies = {
        (entries[copy.film].name, copy.segment.start): None
        for _, others in run
        for copy in others
        if copy.film in entries
    }
    # only a line that fits the text tells when it happens
    time = line.segment.start if line is not None and fits else segment.start
    text = "" if line is None else line.text
    return Moment(time, segment, best.score, best.sure, tuple(best.sources), text, tuple(copies))


def _best_line(stored: Stored, asked: Asked) -> tuple[Line | None, bool]:
    """The line to show of a row, and whether it holds any word of the text."""
    lines = [line for source in WORDED for line in stored.lines.get(source, ())]
    shares = [statement.share for statement in asked.best([line.text for line in lines])]
    best = max(range(len(lines)), key=shares.__getitem__, default=None)
    return (None, False) if best is None else (lines[best], shares[best] > 0)
