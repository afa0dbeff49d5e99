"""A film as rows of the library's index: one per segment of ten seconds.

A row holds what is said, shown and described in its segment, how it looks (the mean of its
pictures' vectors), and what its words mean.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longtake.algorithms.intervals import coverage
from longtake.algorithms.lexical import STOP
from longtake.footage.protocol import Footage
from longtake.index.film import Film
from longtake.perception.protocols import TextEncoder
from longtake.types import Line, Segment

Vectors = NDArray[np.float32]

SECONDS = 10.0
"""Length of a segment."""
WORDED = ("said", "shown", "described")
"""Sources of words, by the name of their column."""
VERSION = "1"
"""Increased when rows are made differently, so that films are indexed again."""


@dataclass(frozen=True)
class Material:
    """What is known about a film, from its layers."""

    duration: float
    lines: dict[str, list[Line]] = field(default_factory=dict)
    """Lines by source, as in :data:`WORDED`."""
    times: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    pictures: Vectors | None = None
    """A unit row for each of the times."""
    parts: dict[str, str] = field(default_factory=dict)
    """Which layers this came from: equal parts give equal rows."""


@dataclass(frozen=True, eq=False)
class Row:
    """One segment of a film."""

    segment: Segment
    said: str = ""
    shown: str = ""
    described: str = ""
    times: str = "{}"
    """JSON: for each source the time of each of its lines."""
    picture: Vectors | None = None
    meaning: Vectors | None = None


def material_of_film(film: Film) -> Material:
    """What is indexed of a film; nothing slow is computed."""
    lines: dict[str, list[Line]] = {}
    parts = {"rows": VERSION}
    whole = Segment(0.0, film.duration)
    speech = film.words.speech_key()
    if film.words.subtitles.key() is not None:
        film.words.subtitles.lines()  # reads them, which is quick
    if speech is not None:
        lines["said"] = film.source.text.lines(speech)
        share = coverage(film.source.text.covered(speech), whole)
        parts["said"] = f"{speech}@{share:.4f}"
    if not all(film.pictures.has(layer) for layer in film.pictures.layers()):
        return Material(film.duration, lines, parts=parts)
    readable = film.words.readable
    if readable is not None:
        lines["shown"] = film.source.text.lines(readable.key)
        share = coverage(film.source.text.covered(readable.key), whole)
        parts["shown"] = f"{readable.key}@{share:.4f}"
    if not film.has:
        return Material(film.duration, lines, parts=parts)
    times = film.times
    lines["described"] = _tagged(film, times.tolist())
    parts["pictures"] = f"{film.senses.images.key}@{film.source.fps:g}"
    return Material(film.duration, lines, times, film.embeddings(), parts)


def material_of_footage(footage: Footage, *, parts: dict[str, str] | None = None) -> Material:
    """The same for footage without an index, such as a lab script."""
    said, shown = footage.known_lines()
    lines = {"said": said, "shown": shown}
    if "captions" in footage.has:
        moments = footage.times.tolist()
        captions = zip(moments, footage.captions(moments), strict=True)
        lines["described"] = [Line(Segment(time, time + 1), text) for time, text in captions]
    vectors = footage.embeddings() if "pictures" in footage.has else None
    return Material(footage.duration, lines, footage.times, vectors, parts=parts or {})


def rows_of(material: Material, sentences: TextEncoder) -> list[Row]:
    """The rows of a film in order of time; empty segments have none."""
    edges = np.arange(0.0, max(material.duration, 0.1), SECONDS)
    drafts = [_draft(material, Segment(a, min(a + SECONDS, material.duration))) for a in edges]
    rows = [row for row in drafts if row is not None]
    # not tags if there are other words, since the picture's vector covers them
    texts = [f"{row.said} {row.shown}".strip() or row.described for row in rows]
    worded = [number for number, text in enumerate(texts) if text]
    vectors = sentences.texts([texts[number] for number in worded])
    for number, vector in zip(worded, vectors, strict=True):
        rows[number] = replace(rows[number], meaning=vector)
    return rows


def _draft(material: Material, segment: Segment) -> Row | None:
    """A row without its meaning; ``None`` for an empty segment."""
    texts, times = {}, {}
    for source in WORDED:
        # a line belongs to the segment where it starts
        inside = [each for each in material.lines.get(source, ()) if each.segment.start in segment]
        lines = _distinct(inside)
        texts[source] = "\n".join(line.text.replace("\n", " ") for line in lines)
        times[source] = [round(line.segment.start, 2) for line in lines]
    known = {source: starts for source, starts in times.items() if starts}
    within = (material.times >= segment.start) & (material.times < segment.end)
    picture = None
    if material.pictures is not None and within.any():
        picture = unit(np.asarray(material.pictures[within], np.float32).mean(axis=0))
    if picture is None and not known:
        return None
    words = (texts["said"], texts["shown"], texts["described"])
    return Row(segment, *words, times=json.dumps(known), picture=picture)


def _distinct(lines: Iterable[Line]) -> list[Line]:
    """The first line of each text, since captions and tags repeat every second."""
    first: dict[str, Line] = {}
    for line in lines:
        first.setdefault(line.text, line)
    return list(first.values())


def _tagged(film: Film, times: Sequence[float]) -> list[Line]:
    lines = []
    for time, tags in zip(times, film.pictures.tags(times, 3), strict=True):
        likely = [tag.name for tag in tags if tag.probability >= 0.15]
        lines += [Line(Segment(time, time), name) for name in likely]
    return lines


def unit(vector: NDArray[np.floating[Any]]) -> Vectors:
    """The normalized vector; zero stays zero."""
    length = float(np.linalg.norm(vector))
    return np.asarray(vector / (length or 1.0), np.float32)


KINDS = ("picture", "meaning")
"""Kinds of vectors that a row may have."""
_WORD = re.compile(r"\w+")


class RowHit(NamedTuple):
    """A row that fits a query."""

    row: int
    """Its number, which :meth:`SegmentIndex.fetch` takes."""
    score: float
    """Higher is better; comparable within one list only."""


@dataclass(frozen=True)
class StoredRow:
    """A row of the index."""

    row: int
    film: str
    """Fingerprint."""
    segment: Segment
    lines: Mapping[str, Sequence[Line]] = field(default_factory=dict)
    """What is said, shown and described, by source."""


class IndexedFilm(NamedTuple):
    """What the index has of a film."""

    parts: Mapping[str, str]
    """The layers its rows came from."""
    rows: int


@dataclass(frozen=True)
class FilmRows:
    """All rows of one film, to be written together."""

    film: str
    parts: Mapping[str, str]
    rows: Sequence[Row]


def query_words(text: str) -> list[str]:
    """The words of a text without stop words, unless there are no others."""
    words = _WORD.findall(text.casefold())
    return [word for word in words if word not in STOP] or words


def stored_lines(
    times: Mapping[str, Sequence[float]], texts: Mapping[str, str], segment: Segment
) -> dict[str, list[Line]]:
    """The lines of a row from its columns; each lasts until the next one or the end."""
    lines: dict[str, list[Line]] = {}
    for source, starts in times.items():
        ends = [*starts[1:], max(segment.end, starts[-1])]
        split = texts[source].split("\n")
        lines[source] = [
            Line(Segment(start, max(start, end)), text)
            for start, end, text in zip(starts, ends, split, strict=True)
        ]
    return lines


def matrix(rows: Sequence[Row], kind: str, dim: int) -> Vectors:
    """The vectors of some rows, with zeros for rows without one."""
    vectors = np.zeros((len(rows), dim), np.float32)
    for number, row in enumerate(rows):
        vector = row.picture if kind == "picture" else row.meaning
        if vector is not None:
            vectors[number] = vector
    return vectors
