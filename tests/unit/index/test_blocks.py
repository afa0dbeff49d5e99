from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scenes import lengths, make_scenes

from longtake.algorithms.partition import EventPartition
from longtake.algorithms.shots import tile_colours
from longtake.index.film import Film, measured, partition, sample_times
from longtake.index.store import Store
from longtake.video import decode
from longtake.video.packets import PacketTable


class Squinter:
    """Pictures as the mean colours of 9 × 16 blocks: quick, and the same code around it."""

    key = "squinter"

    def images(self, frames):
        rows = np.stack([tile_colours(frame.pixels[None]).ravel() for frame in frames]) + 1
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def film(path, store):
    return Film(path, store, senses=SimpleNamespace(scene_encoder=Squinter()))


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "cache")


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    return make_scenes(tmp_path_factory.mktemp("scenes") / "scenes.mp4", [20, 30, 25])


def times_of(found):
    return [cut.time for cut in found.cuts]


def test_the_cuts_are_where_the_scenes_change(scenes, store):
    found = partition(film(scenes, store))
    assert times_of(found) == pytest.approx([20, 50], abs=1)
    assert set(found.cues) == {"colour", "motion", "sharpness", "embedding"}
    assert found.blocks[-1].end == pytest.approx(75, abs=0.3)


def test_the_second_time_nothing_is_decoded_and_nothing_computed(scenes, store, monkeypatch):
    first = partition(film(scenes, store))

    def refuse(*args, **kwargs):
        raise AssertionError("done again")

    monkeypatch.setattr(decode, "VideoReader", refuse)
    fewer = partition(
        film(scenes, store), EventPartition(max_blocks=2)
    )  # other settings, the same measurements
    assert len(fewer.cuts) == 1
    monkeypatch.setattr(EventPartition, "__call__", refuse)
    again = partition(film(scenes, store))
    assert again.cuts == first.cuts
    assert np.array_equal(again.fused, first.fused)
    assert {name: z.tolist() for name, z in again.cues.items()} == {
        n: z.tolist() for n, z in first.cues.items()
    }


def test_at_most_so_many_frames_and_their_true_times(scenes, store):
    made = film(scenes, store)
    samples = measured(made, EventPartition(max_feature_frames=30))
    assert len(samples.times) == 30
    assert np.isin(np.round(samples.times, 6), np.round(made.video.table.times, 6)).all()
    assert samples.motion[0] == 0
    assert samples.histograms.shape == (30, 3, 32)


def table(count, every, seconds=0.04):
    pts = np.arange(count)
    return PacketTable(
        pts, pts, pts % every == 0, np.ones(count, bool), seconds, 0, count * seconds
    )


@pytest.mark.parametrize(
    ("every", "least", "most"), [(25, 198, 200), (112, 198, 200), (150, 140, 160), (10**6, 1, 1)]
)
def test_samples_move_to_keyframes_that_are_near(every, least, most):
    packets = table(45_000, every)  # half an hour; a sample every 9.05 s, half of it is 113 frames
    wanted = np.linspace(0, packets.times[-1], 200)
    got = sample_times(packets, 200)
    assert np.abs(got - wanted).max() <= 9.05 / 4 + 1e-6
    assert (np.diff(got) > 9.05 / 2 - 1e-6).all()
    on_keyframes = np.round(got / 0.04).astype(int) % every == 0
    assert least <= on_keyframes.sum() <= most
    assert np.array_equal(got[~on_keyframes], wanted[~on_keyframes])


def test_a_film_of_few_frames_gives_each_once():
    assert sample_times(table(3, 1), 200) == pytest.approx([0, 0.04, 0.08])
    assert len(sample_times(table(1, 1), 200)) == 1


def test_cuts_stay_when_a_film_is_encoded_anew(tmp_path, store):
    kept = total = 0
    rule = EventPartition(max_feature_frames=100)
    for seed in range(3):
        seconds = lengths(seed)
        fine = make_scenes(tmp_path / f"{seed}_fine.mp4", seconds, seed=seed, crf=18, gop=50)
        coarse = make_scenes(tmp_path / f"{seed}_coarse.mp4", seconds, seed=seed, crf=36, gop=15)
        first, second = (partition(film(path, store), rule) for path in (fine, coarse))
        reach = rule.shortest(first.duration) / 2
        total += len(first.cuts)
        kept += sum(any(abs(a - b) <= reach for b in times_of(second)) for a in times_of(first))
        kept -= max(0, len(second.cuts) - len(first.cuts))  # cuts out of nothing are no stability
    assert total >= 6
    assert kept >= 0.9 * total


@pytest.mark.parametrize("seed", range(3))
def test_a_film_without_change_is_one_block(tmp_path, store, seed):
    path = make_scenes(tmp_path / "still.mp4", [60], seed=seed)
    assert partition(film(path, store)).cuts == ()
