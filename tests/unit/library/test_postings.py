"""Scores of words: those of SQLite's own full-text search, kept as long as nothing is written."""

from __future__ import annotations

import random

import pytest

from longtake.library.embedded import GENERATION, EmbeddedIndex
from longtake.library.postings import Postings
from longtake.library.segment_index import FilmRows
from longtake.library.segments import Row
from longtake.types import Segment

WORDS = [
    "the",
    "price",
    "of",
    "bread",
    "and",
    "falling",
    "prices",
    "écrits",
    "café",
    "12",
    "chairs",
]


def film(name, seed, count=60):
    rng = random.Random(seed)
    texts = [" ".join(rng.choices(WORDS, k=rng.randint(1, 300))) for _ in range(count)]
    rows = [
        Row(Segment(10 * n, 10 * n + 10), text, "" if n % 3 else "…", times="{}")
        for n, text in enumerate(texts)
    ]
    return FilmRows(name, {}, rows)


@pytest.fixture
def index(tmp_path):
    made = EmbeddedIndex(tmp_path, {"picture": 4, "meaning": 4})
    made.replace([film("a", 1), film("b", 2)])
    return made


def by_sqlite(index, pattern):
    with index._reading() as base:
        rows = base.execute(
            "SELECT rowid, -rank FROM said_words WHERE said_words MATCH ? ORDER BY rank", (pattern,)
        )
        first = index._written(base)[1] * GENERATION
        return {first + row: score for row, score in rows}


def scores(index, text):
    return {hit.row: hit.score for hit in index.words(text, "said", 1000)}


def same(index):
    own = scores(index, "The prices of a CAFE, ecrits?")
    return own == pytest.approx(by_sqlite(index, '"prices" OR "cafe" OR "ecrits"'), rel=1e-4)


def test_scores_are_those_of_sqlite_whatever_was_written_since(index):
    assert same(index)
    index.replace([film("a", 3), film("c", 4)])
    assert same(index)
    index.remove(["b"])
    assert same(index)
    index.compact()
    assert same(index)


def test_common_words_are_searched_for_if_there_are_no_others(index):
    assert scores(index, "of the")
    assert scores(index, "of the bread").keys() == scores(index, "bread").keys()


def test_signs_alone_are_no_words(index):
    assert index.words("…", "shown", 10) == []
    assert index.words("bread", "shown", 10) == []


def test_words_that_were_used_least_recently_are_forgotten(index):
    postings = Postings(most=100)
    with index._reading() as base:
        for text in ("bread", "price", "bread chairs"):
            postings.scores(base, (1,), "said", text, 120)
    assert set(postings._kept.words) == {("said", "chair")} | {
        name for name in postings._kept.words if name[1] == "bread"
    }
    assert postings._kept.postings <= 240
