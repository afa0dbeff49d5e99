"""Films whose time stamps jump: what a file claims costs neither memory nor time."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from films import Recipe, read_number, x264

from longtake.config import Settings
from longtake.index.film import Film
from longtake.index.store import Store
from longtake.types import Segment
from longtake.video.audio import RATE, listen
from longtake.video.packets import LONGEST
from longtake.video.video import STILL, Video, sample_times

DAY = 24 * 3600.0


def jumping(folder, jump, **more):
    """A hundred frames at 10 a second with a jump after the fiftieth."""
    times = [i / 10 + (jump if i >= 50 else 0.0) for i in range(100)]
    return Recipe("jump.mkv", x264(), times=times, count=100, **more).make(folder)


@pytest.mark.parametrize("days", [1, 400, 365_000])
def test_a_jump_costs_no_memory_and_few_moments(tmp_path, days):
    video = Video(jumping(tmp_path, days * DAY))
    tracemalloc.start()
    grid = video.grid(1.0)
    assert tracemalloc.get_traced_memory()[1] < 5e6
    tracemalloc.stop()
    assert len(grid) < 200
    assert video.duration <= LONGEST
    assert read_number(video.at([0.05])[0].pixels) == 0
    assert read_number(video.at([video.duration])[0].pixels) == 99


def test_frames_on_both_sides_of_a_jump_are_sampled(tmp_path):
    video = Video(jumping(tmp_path, DAY))
    numbers = [read_number(frame.pixels) for frame in video.sample(1.0)]
    assert numbers[:5] == [0, 10, 20, 30, 40]
    assert numbers[-5:] == [50, 60, 70, 80, 90]


def test_a_film_with_a_jump_is_estimated_in_seconds(tmp_path):
    film = Film(jumping(tmp_path, DAY), Store(tmp_path / "cache"), Settings())
    assert len(film.times) < 200
    assert np.all(np.diff(film.times) > 0)


def test_a_part_of_the_grid_is_a_part_of_the_grid(tmp_path):
    video = Video(jumping(tmp_path, DAY))
    whole = video.grid(1.0)
    for start in (0.0, 30.0, 500.0, DAY - 50.0, DAY + 4.5):
        part = video.grid(1.0, Segment(start, start + 200.0))
        if len(part) > 1:
            assert set(part) <= set(whole)


def test_stills_are_sparse_and_the_rest_is_as_ever():
    assert np.array_equal(sample_times(10.0, 2.0), np.arange(20) / 2)
    times = sample_times(400.0, 1.0, stills=[Segment(60.0, 300.0)])
    assert times.tolist() == [*range(60), 60, 120, 180, 240, *range(300, 400)]


def test_a_slide_show_stays_on_a_dense_grid(tmp_path):
    path = Recipe("slides.mkv", times=[0.0, STILL, 3 * STILL], count=3).make(tmp_path)
    assert len(Video(path).grid(1.0)) == pytest.approx(3 * STILL, abs=1)


def test_sound_that_jumps_is_heard_in_small_pieces(tmp_path):
    path = jumping(tmp_path, DAY, sound_from=DAY / 2)
    tracemalloc.start()
    heard = list(listen(path, origin=0.0, within=Segment(0.0, 60.0)))
    assert tracemalloc.get_traced_memory()[1] < 50e6
    tracemalloc.stop()
    assert sum(len(part.samples) for part in heard) == 60 * RATE
