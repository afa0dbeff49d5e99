"""Finding a moment by words: pictures, on-screen text and speech, fused.

Scores of different sources cannot be compared, so their rankings are fused by reciprocal rank. Each
source also decides by its own threshold whether a hit is *sure*: even a nonsense query ranks some
moment first, but no hit is sure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from longtake._util.timecode import clock
from longtake.algorithms import lexical, passages
from longtake.algorithms.intervals import coverage
from longtake.algorithms.passages import by_moment
from longtake.algorithms.speakers import speaker
from longtake.errors import ConfigError, MediaError
from longtake.index.film import Film
from longtake.index.store import LayerKey
from longtake.perception.protocols import CalibratedEncoder
from longtake.types import Line, Segment

APART = 3.0
"""Hits within this many seconds are one moment."""
STANDS_OUT = 5.0
"""For encoders without a threshold, a picture is a sure hit from this many spreads (MAD) above the
film's median."""
NEAR = 0.6
"""A line is shown if it matches this share of a phrase's letters."""
KEEP = 50
"""Maximum hits per source."""


@dataclass(frozen=True)
class SearchHit:
    """A moment that fits a text."""

    time: float
    score: float
    """Reciprocal-rank score; comparable within one search only."""
    sure: bool
    """Whether it exceeds the threshold of any source."""
    sources: dict[str, float]
    """The sources that found it, each with its own score."""
    segment: Segment
    """The segment of the matching words, or just the moment."""
    text: str = ""
    """What is said or shown there, if words matched."""


@dataclass(frozen=True)
class SearchResult:
    """The hits of a search, as a sequence, and the share of the film that each source knows."""

    hits: list[SearchHit]
    covered: dict[str, float]

    def __iter__(self) -> Iterator[SearchHit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, place: int) -> SearchHit:
        return self.hits[place]


@dataclass(frozen=True)
class _Candidate:
    """One source's hit."""

    time: float
    score: float
    sure: bool
    line: Line | None = None


def check_text(text: str) -> None:
    """Raise if a text is empty, which would match anything, or not valid UTF-8."""
    if not text.strip():
        raise ConfigError("the text to search for is empty")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ConfigError("the text to search for is not valid UTF-8") from error


def stretch_of(film: Film, within: Segment | None) -> Segment:
    """The part of ``within`` that lies inside the film; the whole film if it is not given."""
    if within is None:
        return Segment(0.0, film.duration)
    if within.start >= film.duration:
        stretch, end = f"{clock(within.start)}-{clock(within.end)}", clock(film.duration)
        detail = f"{stretch} is outside the film, which ends at {end}"
        raise MediaError(film.path, "out_of_range", detail)
    return Segment(within.start, min(within.end, film.duration))


def search(
    film: Film,
    text: str,
    *,
    within: Segment | None = None,
    top: int = 10,
    pictures: bool = True,
    by: str = "",
) -> SearchResult:
    """The moments that match ``text`` best, among the known words and all pictures.

    Without ``pictures``, which are indexed if necessary, only words are searched; with ``by``, only
    the words of that speaker.
    """
    # before anything is computed for a text that cannot match
    check_text(text)
    stretch = stretch_of(film, within)
    speech, onscreen = _line_layers(film)
    found = {
        "image": _images(film, text, stretch) if pictures and film.has and not by else [],
        "speech": _lines(film, text, speech, stretch, by),
        "onscreen": [] if by else _lines(film, text, onscreen, stretch),
    }
    # sure hits come first, whatever the ranks of the others
    sure = _fuse({source: [hit for hit in hits if hit.sure] for source, hits in found.items()})
    # matching words are more reliable than matching pictures
    sure.sort(key=lambda hit: not hit.text)
    rest = [hit for hit in _fuse(found) if is_apart(hit, sure)]
    return SearchResult([*sure, *rest][:top], covered(film, stretch))


def covered(film: Film, within: Segment | None = None) -> dict[str, float]:
    """The share of the film, or of a segment, that each source knows."""
    stretch = within or Segment(0.0, film.duration)
    speech, onscreen = _line_layers(film)
    return {
        "image": 1.0,
        "speech": _coverage(film, speech, stretch),
        "onscreen": _coverage(film, onscreen, stretch),
    }


def _coverage(film: Film, key: LayerKey | None, stretch: Segment) -> float:
    return 0.0 if key is None else coverage(film.source.text.covered(key), stretch)


def _line_layers(film: Film) -> tuple[LayerKey | None, LayerKey | None]:
    """The layers of speech and on-screen text; subtitles, which cost nothing, are read now."""
    film.words.subtitles.lines()
    readable = film.words.readable
    return film.words.speech_key(), readable.key if readable else None


def is_apart(hit: SearchHit, others: list[SearchHit]) -> bool:
    """Whether a hit is another moment than all of the others."""
    return all(abs(hit.time - other.time) > APART for other in others)


def _fuse(found: dict[str, list[_Candidate]]) -> list[SearchHit]:
    """The hits of all sources as moments, by reciprocal rank."""
    times = {source: [hit.time for hit in hits] for source, hits in found.items()}
    fused = []
    for time, score, members in by_moment(times, apart=APART):
        parts = {}
        # sources that agree on a moment differ by up to ``APART`` in its exact time
        for source, found_at in members.items():
            parts[source] = next(hit for hit in found[source] if hit.time == found_at)
        fused.append(_hit(time, score, parts))
    return fused


def _hit(time: float, score: float, parts: dict[str, _Candidate]) -> SearchHit:
    """One moment from the hits of its sources; the best matching line gives time and text."""
    sure = any(part.sure for part in parts.values())
    sources = {source: part.score for source, part in parts.items()}
    worded = [part for part in parts.values() if part.line is not None]
    if not worded:
        return SearchHit(time, score, sure, sources, Segment(time, time))
    # the times of words are more exact than those of pictures
    best = max(worded, key=lambda part: part.score)
    assert best.line is not None
    return SearchHit(best.time, score, sure, sources, best.line.segment, best.line.text)


def _images(film: Film, text: str, stretch: Segment) -> list[_Candidate]:
    vectors, query = film.embeddings(), film.encode([text])
    encoder = film.senses.images
    if isinstance(encoder, CalibratedEncoder):
        scores, sure = encoder.surprise(query, vectors)[0], encoder.thresholds["surprise"]
    else:
        scores, sure = _standing_out(vectors @ query[0]), STANDS_OUT
    # scores are relative to the whole film, of which the stretch is then cut out
    times = film.times
    inside = np.flatnonzero((times >= stretch.start) & (times < stretch.end))
    return [
        _Candidate(float(times[row]), float(scores[row]), bool(scores[row] >= sure))
        for row in _peaks(scores, inside, times)
    ]


def _standing_out(cosines: NDArray[np.float32]) -> NDArray[np.float32]:
    """Distance from the median in spreads; zero for all if more than half of them are equal."""
    # median and MAD, so that the few matching frames do not widen the spread
    centred = cosines - np.median(cosines)
    spread = 1.4826 * float(np.median(np.abs(centred)))
    return centred / spread if spread > 0 else np.zeros_like(cosines)


def _peaks(
    scores: NDArray[np.float32], inside: NDArray[np.int64], times: NDArray[np.float64]
) -> list[int]:
    """The best rows, none within ``APART`` of a better one: a shot is one hit."""
    chosen: list[int] = []
    for row in inside[np.argsort(-scores[inside], kind="stable")]:
        if all(abs(times[row] - times[other]) > APART for other in chosen):
            chosen.append(int(row))
            if len(chosen) == KEEP:
                break
    return chosen


def _lines(
    film: Film, text: str, key: LayerKey | None, stretch: Segment, by: str = ""
) -> list[_Candidate]:
    if key is None:
        return []
    store = film.source.text
    lines = store.lines(key, stretch)
    if by:
        lines = [line for line in lines if speaker(line.text)[0].lower() == by.lower()]
    # matching is slow, so each distinct text is compared once; by letters as well as words, because
    # OCR drops spaces and speech recognition mishears letters
    distinct, asked = {line.text for line in lines}, lexical.lemmas([text])
    similarity = {words: passages.match(text, words) for words in distinct}
    shared = {words: len(asked & lexical.lemmas([words])) for words in distinct}
    fits = {line: similarity[line.text] for line in lines}
    worth = [line for line in fits if fits[line] >= NEAR or shared[line.text]]
    worth.sort(key=lambda line: (-fits[line], -shared[line.text], line.segment.start))
    return [
        _Candidate(_moment(line, text, key), fits[line], fits[line] >= passages.SURE, line)
        for line in worth[:KEEP]
    ]


def _moment(line: Line, text: str, key: LayerKey) -> float:
    """When the words are said, by their place in the line; signs are shown from the start."""
    if key.name.startswith("onscreen"):
        return line.segment.start
    return passages.said_at(text, line)
