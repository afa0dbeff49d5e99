"""Two processes add films and are killed while one searches: nothing is lost or twice."""

from __future__ import annotations

import multiprocessing
import random
import time

import numpy as np
from processes import fill_segments, segment_rows

from longtake.library.fts_index import EmbeddedIndex

FILMS = 150
KILLS = 3


def test_killed_writers_lose_nothing_and_write_nothing_twice(tmp_path):
    spawn = multiprocessing.get_context("spawn")
    rng = random.Random(4)

    def start():
        ready = spawn.Event()
        process = spawn.Process(target=fill_segments, args=(tmp_path / "index", FILMS, ready))
        process.start()
        return process, ready

    reader = EmbeddedIndex(tmp_path / "index", {"picture": 4, "meaning": 4})
    adders = [start(), start()]
    for _ in range(KILLS):
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
        f"film{number}": len(segment_rows(number)) for number in range(FILMS)
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
