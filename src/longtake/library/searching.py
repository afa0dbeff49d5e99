"""Search across films: rankings by words, by pictures and by meaning, fused by reciprocal rank.

Scores of different sources cannot be compared, but their rankings can (Cormack, Clarke and
Büttcher, SIGIR 2009). What a source is sure of by its own measure comes first, as in the search of
one film.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from longtake.algorithms import phrases
from longtake.algorithms.fusion import reciprocal_rank
from longtake.algorithms.lexical import content_words
from longtake.index.search import check_text
from longtake.library.copies import once
from longtake.library.entries import Entry
from longtake.library.segment_index import Hit, SegmentIndex, Stored
from longtake.library.segments import SECONDS, WORDED, Sentences, Vectors
from longtake.perception.protocols import CalibratedEncoder
from longtake.types import Line, Segment

Lookup = Callable[[Collection[str]], Mapping[str, Entry]]
"""Gives the films with some fingerprints, as far as they are in the library."""
KEEP = 100
"""Rows ranked per source."""
READ = 150
"""Best rows that are read at all; more if many films are asked for."""
WEIGHED = 60
"""Best rows whose lines are ranked by how many words of the text they hold; with none, the right
film is first for 51 of the questions below."""
LOOKED_AT = 30
"""Best rows whose lines are compared with the text, letter by letter."""
SHARES = (1.0, 0.25, 0.1)
"""What a film's best moments count for its rank: evidence adds up, but three moments that fit a
little must not outweigh one that fits well. Of 60 questions to 200 lab films, a search finds the
right film first for 54; if all three count the same, for 49; if only the best counts, for 53."""
SHARP = 10
"""The constant of reciprocal rank fusion. With the usual 60, first place hardly counts for more
than tenth: the right film is first for 48 of those questions; with 20 for 51, with 5 for 53."""
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
    _weigh_lines(fused, query.text)
    for each in fused[:LOOKED_AT]:
        _judge(each, query.text)
    _judge_pictures(fused, rankings.get("picture", []), query, images)
    # what one source is unsure of must not outvote what another is sure of
    fused.sort(key=lambda each: (not each.sure, -each.score))
    entries = lookup({each.stored.film for each in fused})
    known = [each for each in fused if each.stored.film in entries]
    return _grouped(known, entries, moments)[:films]


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


def _weigh_lines(fused: list[_Fused], text: str) -> None:
    """One more ranking, of the best rows: by the share of the text's words in a single line.

    BM25 takes the words of a whole segment, in which one line may have the person and another the
    deed; a line that has both is what was asked for.
    """
    asked = set(content_words(text))
    shares = [_share(asked, each.stored) for each in fused[:WEIGHED]]
    for each, share in zip(fused, shares, strict=False):
        better = sum(other > share for other in shares)
        each.score += 1 / (SHARP + better + 1)
    fused.sort(key=lambda each: -each.score)


def _share(asked: set[str], stored: Stored) -> float:
    lines = [line for lines in stored.lines.values() for line in lines]
    shared = [len(asked.intersection(content_words(line.text))) for line in lines]
    return max(shared, default=0) / max(1, len(asked))


def _judge(each: _Fused, text: str) -> None:
    """Find the line that fits best; a source of words is sure if the text occurs in it."""
    asked = set(content_words(text))
    best = (0.0, 0.0)
    for source in WORDED:
        if SOURCES[source] not in each.sources:
            continue
        for line in each.stored.lines.get(source, ()):
            fit = _fit(text, line.text, source)
            words = content_words(line.text)
            # a question never occurs in a line as it is: the words that they share count then
            shared = len(asked.intersection(words)) / (len(words) + 5) ** 0.5
            score = (fit if fit >= phrases.SURE else 0.0, shared)
            if each.line is None or score > best:
                each.line, best = line, score
    each.sure = best[0] >= phrases.SURE


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


def _grouped(fused: Sequence[_Fused], entries: Mapping[str, Entry], moments: int) -> list[FilmHits]:
    """Films, best first: those with a sure moment, then by their leading moments."""
    by_row = {each.stored.row: each for each in fused}
    rows: dict[str, list[tuple[_Fused, list[Stored]]]] = {}
    for stored, copies in once([each.stored for each in fused]):
        rows.setdefault(stored.film, []).append((by_row[stored.row], copies))
    films = []
    for film, found in rows.items():
        merged = _moments(found, entries)
        leading = zip(SHARES, merged, strict=False)
        score = sum(share * moment.score for share, moment in leading)
        films.append(FilmHits(entries[film], score, tuple(merged[:moments])))
    return sorted(films, key=lambda film: (not film.moments[0].sure, -film.score))


def _moments(
    found: Sequence[tuple[_Fused, list[Stored]]], entries: Mapping[str, Entry]
) -> list[Moment]:
    """A film's rows as moments, best first; a row right beside a better one belongs to it."""
    runs: list[list[tuple[_Fused, list[Stored]]]] = []
    for pair in found:
        segment = pair[0].stored.segment
        for run in runs:
            best = run[0][0].stored.segment
            if max(segment.start - best.end, best.start - segment.end) < SECONDS / 2:
                run.append(pair)
                break
        else:
            runs.append([pair])
    return [_moment(run, entries) for run in runs]


def _moment(run: Sequence[tuple[_Fused, list[Stored]]], entries: Mapping[str, Entry]) -> Moment:
    best = run[0][0]
    segment, line = best.stored.segment, best.line or _first_line(best.stored)
    copies = {
        (entries[copy.film].name, copy.segment.start): None
        for _, others in run
        for copy in others
        if copy.film in entries
    }
    # only a line that fits the text tells when it happens
    time = segment.start if best.line is None else best.line.segment.start
    text = "" if line is None else line.text
    return Moment(time, segment, best.score, best.sure, tuple(best.sources), text, tuple(copies))


def _first_line(stored: Stored) -> Line | None:
    """Something to show of a row that was found by its picture or its meaning."""
    for source in ("said", "shown"):
        if stored.lines.get(source):
            return stored.lines[source][0]
    return None
