"""The index across films."""

import json
import sqlite3
import threading

import numpy as np
import pytest

from longtake.library.catalog import prepare_shared
from longtake.library.fts_index import SegmentIndex
from longtake.library.segments import FilmRows, Row
from longtake.types import Segment

DIMS = {"picture": 8, "meaning": 6}


def unit(seed, dim):
    vector = np.random.default_rng(seed).normal(size=dim)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def row(start, said="", shown="", described="", *, seed=0, meaning=True):
    times = {
        name: [start + 1.5]
        for name, text in (("said", said), ("shown", shown), ("described", described))
        if text
    }
    return Row(
        Segment(start, start + 10),
        said,
        shown,
        described,
        json.dumps(times),
        unit(seed, DIMS["picture"]),
        unit(seed + 1000, DIMS["meaning"]) if meaning else None,
    )


def film(name, *rows, **parts):
    return FilmRows(name, parts or {"rows": "1"}, rows)


@pytest.fixture
def make(tmp_path):
    return lambda: SegmentIndex(tmp_path / "index", DIMS)


@pytest.fixture
def index(make):
    index = make()
    index.replace(
        [
            film("a", row(0, said="the price goes up", seed=1), row(10, shown="EXIT 7", seed=2)),
            film("b", row(0, said="we talk about prices", described="a dog", seed=3)),
        ]
    )
    return index


def films_of(index, hits):
    return [stored.film for stored in index.fetch([hit.row for hit in hits])]


def test_words_are_found_in_their_source_only(index):
    assert set(films_of(index, index.words("price", "said", 10))) == {"a", "b"}
    assert films_of(index, index.words("exit", "shown", 10)) == ["a"]
    assert index.words("exit", "said", 10) == []
    assert index.words("exit", "shown", 10)[0].score > 0


@pytest.mark.parametrize(
    "text", ['"', "a AND (", "NEAR(x y)", "said:price", "*", "the", "ü ß 漢字"]
)
def test_no_text_is_taken_for_a_query_language(index, text):
    index.words(text, "said", 10)


def test_nearest_gives_exact_cosines_best_first(index):
    query = unit(2, DIMS["picture"])
    hits = index.nearest(query, "picture", 10)
    assert len(hits) == 3
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert hits[0].score == pytest.approx(1.0, abs=1e-5)
    assert hits[1].score == pytest.approx(
        max(float(unit(seed, 8) @ query) for seed in (1, 3)), abs=1e-5
    )
    assert index.fetch([hits[0].row])[0].segment == Segment(10, 20)


def test_the_limit_holds_and_films_can_be_chosen(index):
    query = unit(2, DIMS["picture"])
    assert len(index.nearest(query, "picture", 1)) == 1
    assert films_of(index, index.nearest(query, "picture", 10, {"b"})) == ["b"]
    assert films_of(index, index.words("price", "said", 10, {"b"})) == ["b"]
    assert index.words("price", "said", 10, {"unknown"}) == []
    assert index.nearest(query, "picture", 10, set()) == []


def test_rows_come_back_as_they_were_with_their_lines(index):
    (stored,) = index.fetch([index.words("dog", "described", 1)[0].row])
    assert (stored.film, stored.segment) == ("b", Segment(0, 10))
    assert [(line.segment.start, line.text) for line in stored.lines["said"]] == [
        (1.5, "we talk about prices")
    ]


def test_a_row_without_a_vector_is_close_to_nothing(make):
    index = make()
    index.replace([film("a", row(0, said="x", seed=1, meaning=False), row(10, seed=2))])
    hits = index.nearest(unit(1002, DIMS["meaning"]), "meaning", 1)
    assert index.fetch([hits[0].row])[0].segment.start == 10


def test_replacing_a_film_leaves_nothing_of_the_old_rows(index):
    old = index.words("exit", "shown", 1)[0].row
    index.replace([film("a", row(0, said="nothing here", seed=9), again="2")])
    assert index.words("exit", "shown", 10) == []
    assert index.fetch([old]) == []
    assert len(index.nearest(unit(2, 8), "picture", 10)) == 2
    assert index.films()["a"].parts == {"again": "2"}
    assert index.films()["a"].rows == 1


def test_a_removed_film_is_gone_and_others_stay(index):
    index.remove(["a", "unknown"])
    assert set(index.films()) == {"b"}
    assert films_of(index, index.words("price", "said", 10)) == ["b"]
    assert films_of(index, index.nearest(unit(1, 8), "picture", 10)) == ["b"]


def test_another_reader_sees_what_was_written(index, make):
    other = make()
    assert set(other.films()) == {"a", "b"}
    index.replace([film("c", row(0, said="a price", seed=4))])
    assert "c" in films_of(other, other.words("price", "said", 10))
    assert len(other.nearest(unit(4, 8), "picture", 10)) == 4


def test_compacting_changes_nothing_that_is_found(index):
    before = set(films_of(index, index.words("price", "said", 10)))
    index.replace([film("c", row(0, said="x", seed=5))])
    index.remove(["c"])
    stale = index.nearest(unit(2, 8), "picture", 1)[0].row
    index.compact()
    assert index.dead() == 0
    assert set(films_of(index, index.words("price", "said", 10))) == before
    nearest = index.nearest(unit(2, 8), "picture", 10)
    assert len(nearest) == 3
    assert nearest[0].score == pytest.approx(1, abs=1e-5)
    # a number from before is refused or still the same row, never another one
    assert [each.segment.start for each in index.fetch([stale])] in ([], [10])


def test_a_film_without_rows_is_known(index):
    index.replace([film("empty")])
    assert index.films()["empty"].rows == 0


def test_an_empty_index_finds_nothing(make):
    index = make()
    assert index.films() == {}
    assert index.words("x", "said", 5) == []
    assert index.nearest(unit(1, 8), "picture", 5) == []
    index.compact()


def test_a_database_that_another_process_creates_is_waited_for(tmp_path):
    other, ours = (
        sqlite3.connect(tmp_path / "new.db", isolation_level=None, check_same_thread=False)
        for _ in range(2)
    )
    other.execute("BEGIN IMMEDIATE")
    created = threading.Timer(0.1, other.execute, ["COMMIT"])
    created.start()
    prepare_shared(ours, "CREATE TABLE IF NOT EXISTS films (name TEXT);")
    created.join()
    assert ours.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert ours.execute("SELECT * FROM films").fetchall() == []
    other.close()
    ours.close()
