"""Where films are decoded: what a machine without a GPU says, and when a GPU is not worth it."""

import numpy as np
import pytest

from longtake.config import MediaSettings
from longtake.errors import ConfigError
from longtake.video import nvdec
from longtake.video.clip import write_film
from longtake.video.video import Video

GPU = nvdec._obstacle() == ""


@pytest.fixture(scope="module")
def film(tmp_path_factory):
    path = tmp_path_factory.mktemp("gpu") / "film.mp4"
    rng = np.random.default_rng(0)
    pictures = [np.full((48, 64, 3), shade, np.uint8) for shade in rng.integers(20, 230, 100)]
    write_film(path, pictures)
    return path


@pytest.mark.skipif(GPU, reason="this machine has a GPU")
def test_asking_for_a_gpu_that_is_not_there_names_the_obstacle(film):
    video = Video(film, limits=MediaSettings(device="cuda"))
    with pytest.raises(ConfigError, match=r"media\.device is cuda, but (no NVIDIA|PyTorch|this)"):
        list(video.frames(np.arange(100) / 10))


@pytest.mark.skipif(GPU, reason="this machine has a GPU")
def test_without_a_gpu_auto_is_the_cpu(film):
    automatic = list(Video(film, limits=MediaSettings(device="auto")).frames([0.0, 5.0]))
    on_cpu = list(Video(film, limits=MediaSettings(device="cpu")).frames([0.0, 5.0]))
    assert [f.time for f in automatic] == [f.time for f in on_cpu]
    assert all(np.array_equal(a.pixels, b.pixels) for a, b in zip(automatic, on_cpu, strict=True))


def test_a_few_frames_never_open_the_gpu(film, monkeypatch):
    def refuse(limits):
        raise AssertionError("a GPU was looked for")

    monkeypatch.setattr(nvdec, "on_gpu", refuse)
    assert len(Video(film).at([0.0, 1.0, 2.0])) == 3
    with pytest.raises(AssertionError, match="looked for"):
        list(Video(film).frames(np.arange(64) / 10))


@pytest.mark.skipif(not GPU, reason="needs an NVIDIA GPU and PyTorch")
def test_times_are_equal_and_pictures_alike_on_both(film):
    times = np.arange(100) / 10
    ours = list(Video(film, limits=MediaSettings(device="cuda")).frames(times))
    theirs = list(Video(film, limits=MediaSettings(device="cpu")).frames(times))
    assert [f.time for f in ours] == [f.time for f in theirs]
    for a, b in zip(ours, theirs, strict=True):
        assert np.abs(a.pixels.astype(int) - b.pixels).mean() < 3
