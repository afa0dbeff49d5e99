"""BM25 over the full-text index, with the postings of words kept in memory once they were read.

FTS5 counts the rows of every word of a query anew, and scores them one by one: at 100,000 rows,
most of a search goes by that. The postings of a word as two arrays take a few bytes a row, and
adding them up takes a thousandth of the time. The scores are those of FTS5's own ``bm25``.
"""

from __future__ import annotations

import sqlite3
import threading
from collections import OrderedDict
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from longtake.library.stems import Stemmer

K1, B = 1.2, 0.75
"""The constants of BM25, as FTS5 has them."""
COMMONEST = 1e-6
"""The weight of a word that most rows contain, as FTS5 has it."""
MOST = 8_000_000
"""Postings kept in memory, of eight bytes each."""

Rows = NDArray[np.int32]
Scores = NDArray[np.float32]
State = tuple[int, ...]
"""Changes with every writing."""


@dataclass
class _Source:
    """What scoring needs to know of one source of words."""

    rows: int
    """Rows with words of this source."""
    damping: Scores
    """By row number: the part of BM25's denominator that depends on a row's length."""


@dataclass
class _Kept:
    """What was read of one state of the index."""

    state: State
    sources: dict[str, _Source] = field(default_factory=dict)
    words: OrderedDict[tuple[str, str], tuple[Rows, Scores]] = field(default_factory=OrderedDict)
    """Rows and scores of a word, the most recently used last."""
    postings: int = 0


class Postings:
    """Scores of rows for a text; may be used from several threads."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._kept = _Kept(())
        self._lock = threading.Lock()
        self._stemmer = Stemmer()

    def scores(
        self, base: sqlite3.Connection, state: State, source: str, text: str, count: int
    ) -> Scores:
        """The score of each row from 0 to ``count``; 0 where no word of the text occurs."""
        with self._lock:
            if self._kept.state != state:
                self._kept = _Kept(state)
            kept = self._kept
            total = np.zeros(count + 1, np.float32)
            for word in dict.fromkeys(self._stemmer.stems(text)):
                rows, scores = self._word(base, kept, source, word, count)
                # a writer may be ahead of the state that was read
                known = np.searchsorted(rows, count, side="right")
                total[rows[:known]] += scores[:known]
            return total

    def _word(
        self, base: sqlite3.Connection, kept: _Kept, source: str, word: str, count: int
    ) -> tuple[Rows, Scores]:
        name = (source, word)
        if name not in kept.words:
            if source not in kept.sources:
                kept.sources[source] = _read_source(base, source, count)
            kept.words[name] = _read_word(base, kept.sources[source], source, word)
            kept.postings += len(kept.words[name][0])
            while kept.postings > self._most and len(kept.words) > 1:
                _, (rows, _) = kept.words.popitem(last=False)
                kept.postings -= len(rows)
        kept.words.move_to_end(name)
        return kept.words[name]


def _read_source(base: sqlite3.Connection, source: str, count: int) -> _Source:
    rows, words = _totals(base, source)
    lengths = np.zeros(count + 1, np.float32)
    query = f"SELECT id, sz FROM {source}_words_docsize WHERE id <= ?"
    for row, size in base.execute(query, (count,)):
        lengths[row] = size[0] if len(size) == 1 else _numbers(size)[0]
    # a row may consist of signs alone
    mean = words / rows if words else 1.0
    damping = K1 * (1 - B + B * lengths / mean)
    return _Source(rows, damping.astype(np.float32))


def _totals(base: sqlite3.Connection, source: str) -> tuple[int, int]:
    """Rows and words of a source, from the record in which FTS5 keeps them for its own scores."""
    record = base.execute(f"SELECT block FROM {source}_words_data WHERE id = 1").fetchone()
    numbers = _numbers(record[0]) if record else []
    return (numbers[0], numbers[1]) if len(numbers) > 1 else (0, 0)


def _numbers(packed: bytes) -> list[int]:
    """SQLite's numbers of variable length: seven bits a byte, the highest first."""
    numbers, value = [], 0
    for byte in packed:
        value = (value << 7) | (byte & 0x7F)
        if byte < 0x80:
            numbers.append(value)
            value = 0
    return numbers


def _read_word(
    base: sqlite3.Connection, about: _Source, source: str, word: str
) -> tuple[Rows, Scores]:
    table = f"temp.{source}_terms"
    base.execute(
        f"CREATE VIRTUAL TABLE IF NOT EXISTS {table}"
        f" USING fts5vocab ('main', '{source}_words', 'instance')"
    )
    found = base.execute(f"SELECT doc FROM {table} WHERE term = ?", (word,))
    places = np.fromiter((row for (row,) in found), np.int32)
    rows, counts = np.unique(places, return_counts=True)
    known = rows < len(about.damping)
    rows, times = rows[known], counts[known].astype(np.float32)
    rarity = np.log((about.rows - len(rows) + 0.5) / (len(rows) + 0.5)) if len(rows) else 0.0
    weight = max(float(rarity), COMMONEST)
    return rows, (weight * times * (K1 + 1) / (times + about.damping[rows])).astype(np.float32)
