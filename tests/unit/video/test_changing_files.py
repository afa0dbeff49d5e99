"""Films that are damaged where they begin, and films that change while they are read."""

from __future__ import annotations

import subprocess
import sys

import av
import pytest
from films import Recipe, read_number, x264
from support.patience import PATIENCE

from longtake.errors import MediaError
from longtake.video.video import Video

OVERWRITE = """
import random, sys, threading, time
from pathlib import Path
from longtake.config import MediaSettings
from longtake.errors import MediaError
from longtake.video.video import Video

path, seed = Path(sys.argv[1]), int(sys.argv[2])
chance, done = random.Random(seed), threading.Event()
whole = path.read_bytes()
others = [whole[: len(whole) // 2], bytes(1000), chance.randbytes(50_000), b""]
video = Video(path, limits=MediaSettings(workers=3))
len(video.table)

def overwrite():
    time.sleep(chance.random() * 0.05)
    while not done.is_set():
        path.write_bytes(chance.choice(others))
        time.sleep(0.002)

threading.Thread(target=overwrite).start()
try:
    for _ in range(3):
        try:
            for frame in video.frames([number * 0.5 + 0.05 for number in range(110)]):
                pass
        except MediaError as error:
            assert error.problem == "changed", error
finally:
    done.set()
"""


@pytest.fixture
def film(tmp_path):
    return Recipe("film.mp4", x264(gop=10), count=600).make(tmp_path)


@pytest.mark.parametrize("seed", range(3))
def test_overwriting_a_film_that_is_read_is_an_error_and_not_a_crash(film, seed):
    line = [sys.executable, "-c", OVERWRITE, str(film), str(seed)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr


def test_a_film_that_was_replaced_says_so(film):
    video = Video(film)
    assert read_number(video.at([1.0])[0].pixels) == 10
    Recipe("other.mp4", count=30).make(film.parent).replace(film)
    with pytest.raises(MediaError, match="was changed") as caught:
        video.at([1.0])
    assert caught.value.problem == "changed"


def test_a_film_that_is_still_being_recorded_can_be_read(film):
    video = Video(film)
    assert len(video.table) == 600
    with film.open("ab") as file:
        file.write(bytes(10_000))
    assert read_number(video.at([1.0])[0].pixels) == 10


def first_packets(path, count):
    """Where the first packets lie in the file."""
    with av.open(str(path)) as container:
        packets = [p for p in container.demux(video=0) if p.size][:count]
        return [(packet.pos, packet.size) for packet in packets]


@pytest.mark.parametrize("lost", [1, 5])
@pytest.mark.parametrize("codec", ["libx264", "mpeg4", "libvpx-vp9", "mjpeg"])
def test_a_damaged_first_picture_is_replaced(tmp_path, codec, lost):
    recipe = Recipe("film.mp4", x264(codec=codec, options={}, gop=10), count=60)
    path = recipe.make(tmp_path)
    data = bytearray(path.read_bytes())
    for position, size in first_packets(path, lost):
        data[position : position + size] = b"\xff" * size
    path.write_bytes(data)
    video = Video(path)
    frames = video.at([0.0, 5.0])
    assert [frame.pixels.shape for frame in frames] == [(96, 128, 3)] * 2
    assert read_number(frames[1].pixels) == 50
    assert video.at([0.0])[0].time <= 1.0


def test_a_damaged_picture_asked_for_alone_is_replaced_by_one_before_it(tmp_path):
    recipe = Recipe("film.mp4", x264(codec="mjpeg", options={}), count=60)
    path = recipe.make(tmp_path)
    data = bytearray(path.read_bytes())
    for position, size in first_packets(path, 40)[30:]:
        data[position : position + size] = b"\xff" * size
    path.write_bytes(data)
    for times in ([3.5], [3.5, 5.0]):
        assert Video(path).at(times)[0].time == pytest.approx(2.9)
