"""One suite for every kind of film: the right picture at the right time in every container."""

import math
import random

import numpy as np
import pytest
from films import FILMS, read_number

from longtake.config import MediaSettings
from longtake.types import Segment
from longtake.video.packets import PacketTable, plan
from longtake.video.video import Video


@pytest.fixture(params=FILMS, ids=lambda film: film.name)
def film(request):
    return request.param


@pytest.fixture
def video(film, film_folder):
    return Video(film.make(film_folder))


def truth_at(film, time):
    """Return the number of the frame on screen at ``time``."""
    return max(0, int(np.searchsorted(film.truth, time + 1e-6, side="right")) - 1)


def test_every_frame_has_its_true_time(film, video):
    assert len(video.table) == film.count
    np.testing.assert_allclose(video.table.times, film.truth, atol=1.5e-3)
    assert np.all(np.diff(video.table.times) > 0)


def test_duration_includes_the_last_frame(film, video):
    assert film.truth[-1] < video.duration <= film.truth[-1] + 0.5


def test_at_returns_the_frame_on_screen(film, video):
    rng = random.Random(7)
    times = [rng.uniform(0, film.truth[-1]) for _ in range(12)]
    frames = video.at(times)
    assert [read_number(f.pixels) for f in frames] == [truth_at(film, t) for t in times]
    for asked, frame in zip(times, frames, strict=True):
        assert frame.time <= asked + 1e-3 or read_number(frame.pixels) == 0


def test_at_returns_the_exact_frames_in_any_order_and_again(film, video):
    wanted = [film.count - 1, 0, film.count // 3, film.count - 1]
    frames = video.at([film.truth[n] + 1e-3 for n in wanted])
    assert [read_number(f.pixels) for f in frames] == wanted


@pytest.mark.parametrize("fps", [0.5, 7.0])
def test_sampling_equals_a_linear_decode(film, video, fps):
    frames = list(video.sample(fps))
    ticks = np.arange(int(np.ceil(video.duration * fps - 1e-9))) / fps
    assert [read_number(f.pixels) for f in frames] == [truth_at(film, t) for t in ticks]


def test_sampling_a_segment(film, video):
    middle = Segment(video.duration * 0.41, video.duration * 0.63)
    first = math.ceil(middle.start * 5)
    for number, frame in enumerate(video.sample(5.0, within=middle), start=first):
        assert read_number(frame.pixels) == truth_at(film, number / 5)


def test_one_worker_and_many_agree(film, film_folder):
    path = film.make(film_folder)

    def numbers(workers):
        video = Video(path, limits=MediaSettings(workers=workers))
        return [read_number(frame.pixels) for frame in video.sample(3.0)]

    assert numbers(1) == numbers(4)


def test_scaled_frames_keep_their_aspect_ratio(film, video):
    frame = video.at([0.0], width=64)[0]
    assert frame.pixels.shape == (48, 64, 3)
    assert video.at([0.0], width=4000)[0].pixels.shape == (96, 128, 3)


def test_plan_decodes_less_than_everything_for_one_late_frame(film, video):
    table: PacketTable = video.table
    runs = plan(table, [int(table.order[-1])])
    decoded = sum(run.last - run.first + 1 for run in runs)
    groups = len(table.keys)
    assert decoded <= len(table.pts) / groups * 3 + 8
