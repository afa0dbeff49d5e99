"""Two processes add films and are killed while one searches: nothing is lost or twice."""

import multiprocessing
import random
import time

import numpy as np
import pytest
from processes import fill_segments, segment_rows

from longtake.library.fts_index import SegmentIndex
from longtake.library.segments import FilmRows


@pytest.mark.parametrize(
    ("films", "kills"), [(50, 1), pytest.param(150, 6, marks=pytest.mark.campaign)]
)
def test_killed_writers_lose_nothing_and_write_nothing_twice(tmp_path, films, kills):
    """Each killed process is started again."""
    spawn = multiprocessing.get_context("spawn")
    rng = random.Random(4)

    def start():
        ready = spawn.Event()
        process = spawn.Process(target=fill_segments, args=(tmp_path / "index", films, ready))
        process.start()
        return process, ready

    reader = SegmentIndex(tmp_path / "index", {"picture": 4, "meaning": 4})
    adders = [start(), start()]
    for _ in range(kills):
        victim = rng.randrange(2)
        process, ready = adders[victim]
        assert ready.wait(60)
        until = time.monotonic() + rng.uniform(0.02, 0.2)
        while time.monotonic() < until:
            check(reader)
        process.kill()
        process.join()
        adders[victim] = start()
    for process, _ in adders:
        process.join(120)
        assert process.exitcode == 0
    held = reader.films()
    assert {film: holding.rows for film, holding in held.items()} == {
        f"film{number}": len(segment_rows(number)) for number in range(films)
    }
    check(reader)
    everything = reader.nearest(np.array([1, 0, 0, 0], np.float32), "picture", 10_000)
    stored = reader.fetch([hit.row for hit in everything])
    assert len(stored) == len({(each.film, each.segment) for each in stored})
    assert len(stored) == sum(holding.rows for holding in held.values())


def check(reader):
    """Whatever is found belongs to a film that is there as a whole, with its own vector."""
    for number, holding in list(enumerate(reader.films().items()))[:5]:
        film, (_, rows) = holding
        own = int(film.removeprefix("film"))
        hits = reader.words(f"number{own}", "said", 50)
        stored = reader.fetch([hit.row for hit in hits])
        assert {each.film for each in stored} <= {film}
        assert len(stored) == rows, number
        vector = segment_rows(own)[0].picture
        best = reader.nearest(vector, "picture", 1)[0]
        assert best.score > 0.9999


def test_a_film_that_is_replaced_during_a_search_is_found(tmp_path, monkeypatch):
    dims = {"picture": 4, "meaning": 4}
    reader, writer = (SegmentIndex(tmp_path / "index", dims) for _ in range(2))
    rows = FilmRows("film3", {}, segment_rows(3))
    writer.replace([rows])
    mapped, replaced = reader._mapped, []

    def replace_first(what, *rest):
        # between the number of the rows and the marks of those that are gone
        if what == "film" and not replaced:
            replaced.append(writer.replace([rows]))
        return mapped(what, *rest)

    monkeypatch.setattr(reader, "_mapped", replace_first)
    (best,) = reader.nearest(rows.rows[0].picture, "picture", 1)
    assert replaced
    assert best.score > 0.9999
