"""What every kind of footage keeps to: a film, and a script that was never filmed."""

import numpy as np
import pytest

from longtake.config import PerceptionSettings, Settings
from longtake.footage.plain import FootageWithout
from longtake.footage.protocol import Footage
from longtake.index.film import Film
from longtake.index.store import Store
from longtake.perception.loader import PerceptionModels
from longtake.types import Segment
from longtake_bench.lab.film import make_world, write_world
from longtake_bench.lab.footage import LabEncoder, LabFootage

WITHIN = Segment(10.0, 30.0)


@pytest.fixture(scope="module", params=["film", "lab", "without"])
def footage(request, tmp_path_factory) -> Footage:
    world = make_world(8, 1)
    if request.param == "lab":
        return LabFootage(world.script)
    if request.param == "without":
        # of a film from which nothing is removed, everything is left
        return FootageWithout(LabFootage(world.script), ())
    folder = tmp_path_factory.mktemp("world")
    write_world(world, folder)
    settings = Settings(perception=PerceptionSettings(listener="none"))
    senses = PerceptionModels(settings.perception, folder / "cache", images=LabEncoder())
    return Film(folder / "film.mp4", Store(folder / "cache"), settings, senses=senses)


def test_the_grid_is_one_moment_a_second(footage):
    assert footage.name
    assert footage.duration == pytest.approx(60.0)
    np.testing.assert_array_equal(footage.times, np.arange(60.0))


def test_frames_come_at_the_times_asked_for(footage):
    assert [f.time for f in footage.at([5.0, 2.0, 5.0])] == pytest.approx([5.0, 2.0, 5.0])
    assert footage.at([]) == []


def test_frames_are_scaled_down_and_never_up(footage):
    assert footage.at([3.0], width=240)[0].pixels.shape == (135, 240, 3)
    assert footage.at([3.0], width=4000)[0].pixels.shape == (270, 480, 3)


def test_pictures_and_texts_share_a_space(footage):
    rows, texts = footage.embeddings(), footage.encode(["a red cup", "the harbour"])
    assert rows.shape == (60, texts.shape[1])
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1, abs=2e-3)
    assert np.linalg.norm(texts, axis=1) == pytest.approx(1, abs=1e-5)
    assert footage.encoder.name
    assert all(np.isfinite(value) for value in footage.encoder.thresholds.values())


def test_features_and_meanings(footage):
    assert footage.features().shape[0] == 60
    one, same, other = footage.meanings(["a red cup", "a red cup", "the grand harbour"])
    assert float(one @ same) == pytest.approx(1, abs=1e-5)
    assert float(one @ other) < 0.9


def test_lines_overlap_the_stretch_that_is_asked_for(footage):
    assert footage.speech()
    assert all(line.segment.overlap(WITHIN) > 0 for line in footage.speech(WITHIN))
    assert footage.has == {"pictures"}
    assert footage.captions([1.0]) == []
