"""What an index across films offers; ``tests/contracts/test_segment_index.py`` holds the rules.

The index is derived: it can be deleted and rebuilt from the films' layers at any time.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from longtake.algorithms.lexical import STOP
from longtake.library.segments import Row, Vectors
from longtake.types import Line, Segment

KINDS = ("picture", "meaning")
"""Kinds of vectors that a row may have."""
_WORD = re.compile(r"\w+")


class Hit(NamedTuple):
    """A row that fits a query."""

    row: int
    """Its number, which :meth:`SegmentIndex.fetch` takes."""
    score: float
    """Higher is better; comparable within one list only."""


@dataclass(frozen=True)
class Stored:
    """A row of the index."""

    row: int
    film: str
    """Fingerprint."""
    segment: Segment
    lines: Mapping[str, Sequence[Line]] = field(default_factory=dict)
    """What is said, shown and described, by source."""
    prints: bytes = b""

    def text(self, source: str) -> str:
        """The words of one source."""
        return " ".join(line.text for line in self.lines.get(source, ()))


class Holding(NamedTuple):
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


class SegmentIndex(Protocol):
    """Rows of many films, found by words and by vectors.

    Every method may be called from several threads and, on one folder, from several processes. A
    writer that is killed leaves the films it had finished. A reader sees all of a film or nothing.
    """

    name: str

    def replace(self, films: Sequence[FilmRows]) -> None:
        """Write the rows of some films in place of those they had."""

    def remove(self, films: Collection[str]) -> None:
        """Remove films."""

    def films(self) -> dict[str, Holding]:
        """The films in the index."""

    def words(
        self, text: str, source: str, limit: int, films: Collection[str] | None = None
    ) -> list[Hit]:
        """Rows in which words of a text occur in one source, best first, by BM25."""

    def nearest(
        self, vector: Vectors, kind: str, limit: int, films: Collection[str] | None = None
    ) -> list[Hit]:
        """Rows whose vector has the largest cosine with a unit vector, best first."""

    def fetch(self, rows: Sequence[int]) -> list[Stored]:
        """Rows by number, in the given order; rows that are gone are left out."""

    def dead(self) -> float:
        """The share of rows for which :meth:`compact` would do something."""

    def compact(self) -> None:
        """Give back the space of rows that are gone, and make searching quick again."""

    def close(self) -> None:
        """Release files; the index may be used again afterwards."""


def query_words(text: str) -> list[str]:
    """The words of a text to search for: without stop words, unless there are no others."""
    words = _WORD.findall(text.casefold())
    return [word for word in words if word not in STOP] or words


def stored_lines(
    times: Mapping[str, Sequence[float]], texts: Mapping[str, str], segment: Segment
) -> dict[str, list[Line]]:
    """The lines of a row from its columns; a line lasts until the next one or the end."""
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
    """The vectors of some rows; zeros, which are close to nothing, for a row without one."""
    vectors = np.zeros((len(rows), dim), np.float32)
    for number, row in enumerate(rows):
        vector = row.picture if kind == "picture" else row.meaning
        if vector is not None:
            vectors[number] = vector
    return vectors
