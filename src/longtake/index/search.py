"""Finding a moment by words: pictures, on-screen text and speech, fused.

Scores of different sources cannot be compared, only their rankings can, so they are fused by reciprocal rank.
Each source also says for itself whether it is *sure*, by a yardstick of its own; a nonsense query ranks some
moment first as well, but no source is sure of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from longtake.algorithms import phrases
from longtake.algorithms.coverage import coverage
from longtake.algorithms.fusion import by_moment
from longtake.errors import ConfigError, MediaError
from longtake.index.film import Film
from longtake.index.store import LayerKey
from longtake.perception.conse import CONFIDENT, ConSE
from longtake.timecode import clock
from longtake.types import Line, Segment

APART = 3.0
"""Hits this close in time are one moment."""
STANDS_OUT = 5.0
"""Spreads (MAD) from the film's median by which a picture must stand out, for encoders without a yardstick."""
NEAR = 0.6
"""Share of a phrase's letters from which a line is worth showing."""
KEEP = 50
"""Hits of one source that are ranked."""


@dataclass(frozen=True)
class Hit:
    """A moment that fits a text."""

    time: float
    score: float
    """Reciprocal-rank score; comparable within one search only."""
    sure: bool
    """Whether a source is sure of it by its own yardstick."""
    sources: dict[str, float]
    """Each source that found it, with that source's own score."""
    segment: Segment
    """The matching words' stretch, or just the moment."""
    text: str = ""
    """What is said or shown there, where words matched."""


@dataclass(frozen=True)
class Search:
    """What was found, and how much of the film each source could know about."""

    hits: list[Hit]
    covered: dict[str, float]


@dataclass(frozen=True)
class _Found:
    time: float
    score: float
    sure: bool
    line: Line | None = None


def check_text(text: str) -> None:
    """Refuse a text that says nothing, which would fit some moment or other, and one that is no text."""
    if not text.strip():
        raise ConfigError("the text to search for is empty")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ConfigError("the text to search for is not valid UTF-8") from error


def stretch_of(film: Film, within: Segment | None) -> Segment:
    """The part of ``within`` that is inside the film; all of the film where nothing is given."""
    if within is None:
        return Segment(0.0, film.duration)
    if within.start >= film.duration:
        asked, end = f"{clock(within.start)}-{clock(within.end)}", clock(film.duration)
        raise MediaError(
            film.path, "out_of_range", f"{asked} is outside the film, which ends at {end}"
        )
    return Segment(within.start, min(within.end, film.duration))


def search(film: Film, text: str, *, within: Segment | None = None, top: int = 10) -> Search:
    """The moments that fit ``text`` best, among what has been indexed."""
    check_text(text)
    stretch = stretch_of(film, within)
    found = {
        "image": _images(film, text, stretch),
        "speech": _lines(film, text, _speech_key(film), stretch),
        "onscreen": _lines(film, text, film.reading.key if film.reading else None, stretch),
    }
    # what a source is not sure of must not outvote what another is sure of
    sure = _fuse({source: [f for f in hits if f.sure] for source, hits in found.items()})
    rest = [
        hit for hit in _fuse(found) if all(abs(hit.time - known.time) > APART for known in sure)
    ]
    return Search([*sure, *rest][:top], covered(film, stretch))


def _fuse(found: dict[str, list[_Found]]) -> list[Hit]:
    """Moments by reciprocal rank over the sources that found them."""
    hits = []
    for time, score, members in by_moment(
        {s: [f.time for f in fs] for s, fs in found.items()}, apart=APART
    ):
        parts = {s: next(f for f in found[s] if f.time == t) for s, t in members.items()}
        best = max(
            (f for f in parts.values() if f.line is not None), key=lambda f: f.score, default=None
        )
        line = best.line if best else None
        hits.append(
            Hit(
                best.time if best else time,
                score,
                any(f.sure for f in parts.values()),
                {s: f.score for s, f in parts.items()},
                line.segment if line else Segment(time, time),
                line.text if line else "",
            )
        )
    return hits


def covered(film: Film, within: Segment | None = None) -> dict[str, float]:
    """Share of the stretch that each source knows about."""
    stretch = within or Segment(0.0, film.duration)
    speech, reading = _speech_key(film), film.reading
    return {
        "image": 1.0,
        "speech": coverage(film.text.covered(speech), stretch) if speech else 0.0,
        "onscreen": coverage(film.text.covered(reading.key), stretch) if reading else 0.0,
    }


def _speech_key(film: Film) -> LayerKey | None:
    if (key := film.subtitle_key()) is not None:
        film.subtitles()
        return key
    return film.hearing.key if film.hearing else None


def _images(film: Film, text: str, stretch: Segment) -> list[_Found]:
    vectors, query = film.embeddings(), film.encode([text])
    encoder = film.senses.encoder
    if isinstance(encoder, ConSE):
        scores, sure = encoder.surprise(query, vectors)[0], CONFIDENT
    else:
        cosines = vectors @ query[0]
        spread = 1.4826 * float(np.median(np.abs(cosines - np.median(cosines))))
        scores = (cosines - np.median(cosines)) / spread if spread > 0 else np.zeros_like(cosines)
        sure = STANDS_OUT
    inside = np.flatnonzero((film.times >= stretch.start) & (film.times < stretch.end))
    return [
        _Found(float(film.times[i]), float(scores[i]), bool(scores[i] >= sure))
        for i in _peaks(scores, inside, film.times)
    ]


def _peaks(
    scores: NDArray[np.float32], inside: NDArray[np.int64], times: NDArray[np.float64]
) -> list[int]:
    """The best moments, none within ``APART`` of a better one: a shot is one hit, not one a second."""
    chosen: list[int] = []
    for i in inside[np.argsort(-scores[inside], kind="stable")]:
        if all(abs(times[i] - times[j]) > APART for j in chosen):
            chosen.append(int(i))
            if len(chosen) == KEEP:
                break
    return chosen


def _lines(film: Film, text: str, key: LayerKey | None, stretch: Segment) -> list[_Found]:
    if key is None:
        return []
    shortlist = {m.line: m.score for m in film.text.match(text, [key], within=stretch, limit=KEEP)}
    # reading drops spaces and mishears letters, which an index of words cannot find
    lines = film.text.lines(key, stretch)
    near = {words: phrases.match(text, words) for words in {line.text for line in lines}}
    best = {line: near[line.text] for line in lines if near[line.text] >= NEAR or line in shortlist}
    ranked = sorted(
        best, key=lambda line: (-best[line], -shortlist.get(line, 0.0), line.segment.start)
    )
    return [
        _Found(_moment(line, text, key), best[line], best[line] >= phrases.SURE, line)
        for line in ranked[:KEEP]
    ]


def _moment(line: Line, text: str, key: LayerKey) -> float:
    """When the words are said, as far as their place in a long line tells; a sign is there all along."""
    if key.name == "onscreen":
        return line.segment.start
    return phrases.said_at(text, line)
