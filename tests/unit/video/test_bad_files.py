"""Files that are not films: one clear error each, and no other file is opened."""

import os
import subprocess
import sys
import tracemalloc
from fractions import Fraction

import av
import numpy as np
import pytest
from films import FILMS, Recipe, pictures, read_number, x264
from support.patience import PATIENCE

from longtake.config import MediaSettings
from longtake.errors import MediaError
from longtake.types import Segment
from longtake.video.audio import RATE, listen
from longtake.video.clip import write_film
from longtake.video.container import open_container
from longtake.video.packets import LONGEST
from longtake.video.video import STILL, Video, sample_times


@pytest.fixture
def plain(film_folder):
    return FILMS[0].make(film_folder)


def problem(path, **limits):
    with pytest.raises(MediaError) as caught:
        Video(path, limits=MediaSettings(**limits)).at([0.0])
    assert "\n" not in str(caught.value)
    return caught.value.problem


def test_what_is_no_file_is_not_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe.mp4")
    assert problem(tmp_path / "nowhere.mp4") == "not_found"
    assert problem(tmp_path) == problem(tmp_path / "pipe.mp4") == "not_a_file"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("empty.mp4", b""),
        ("text.mp4", b"This is not a film.\n" * 100),
        ("noise.mkv", np.random.default_rng(0).bytes(100_000)),
    ],
    ids=["empty", "text", "noise"],
)
def test_files_that_hold_no_film(tmp_path, name, data):
    (tmp_path / name).write_bytes(data)
    assert problem(tmp_path / name) == "not_a_video"


def test_cover_art_is_no_picture_of_a_film(tmp_path):
    path = tmp_path / "song.mp3"
    with av.open(str(path), "w") as file:
        sound = file.add_stream("mp3", rate=44_100)
        cover = file.add_stream("png", rate=1)
        cover.width, cover.height, cover.pix_fmt = 64, 64, "rgb24"
        cover.disposition = av.stream.Disposition.attached_pic
        picture = av.VideoFrame.from_ndarray(np.zeros((64, 64, 3), np.uint8), format="rgb24")
        file.mux(cover.encode(picture))
        silence = np.zeros((1, 1152 * 20), np.int16)
        frame = av.AudioFrame.from_ndarray(silence, format="s16", layout="mono")
        frame.sample_rate = 44_100
        file.mux([*sound.encode(frame), *sound.encode(None)])
    assert Video(path).info.codec == ""


@pytest.mark.parametrize(
    "text",
    [
        "ffconcat version 1.0\nfile '{other}'\n",
        "#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\n{other}\n#EXT-X-ENDLIST\n",
        "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=video 5004 RTP/AVP 96\n",
        '<MPD xmlns="urn:mpeg:dash:schema:mpd:2011">'
        "<Period><BaseURL>{other}</BaseURL></Period></MPD>",
    ],
    ids=["concat", "hls", "sdp", "dash"],
)
def test_scripts_that_name_other_files_are_rejected(tmp_path, plain, text):
    script = tmp_path / "film.mp4"
    script.write_text(text.format(other=plain))
    assert problem(script) == "not_a_video"


def test_a_file_name_that_looks_like_a_protocol_is_a_file_name(tmp_path, plain, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert problem(f"concat:{plain}") == "not_found"
    tricky = tmp_path / "file:film.mp4"
    tricky.write_bytes(plain.read_bytes())
    assert len(Video("file:film.mp4").table) == FILMS[0].count


def test_too_many_pixels(plain):
    assert problem(plain, max_pixels=128 * 96 - 1) == "too_large"
    assert len(Video(plain, limits=MediaSettings(max_pixels=128 * 96)).table) == FILMS[0].count


@pytest.mark.parametrize("name", ["many.mkv", "many.mp4"])
def test_too_many_streams(tmp_path, name):
    path = tmp_path / name
    with av.open(str(path), "w") as file:
        streams = [file.add_stream("libx264", rate=10) for _ in range(4)]
        for stream in streams:
            stream.width, stream.height, stream.pix_fmt = 64, 64, "yuv420p"
        for stream in streams:
            picture = av.VideoFrame.from_ndarray(np.zeros((64, 64, 3), np.uint8), format="rgb24")
            file.mux([*stream.encode(picture), *stream.encode(None)])
    # some demuxers leave out what is over a limit, which may be the picture
    for limit in (1, 2, 3):
        opened = open_container(path, MediaSettings(max_streams=limit))
        with pytest.raises(MediaError, match="more streams"), opened:
            pass
    with open_container(path, MediaSettings(max_streams=4)) as container:
        assert len(container.streams) == 4


def test_an_index_that_claims_more_than_memory_holds_is_not_about_streams(tmp_path, plain):
    whole = bytearray(plain.read_bytes())
    count = whole.index(b"stts") + 8
    whole[count : count + 4] = (0x7FFFFFFF).to_bytes(4, "big")
    path = tmp_path / "claims.mp4"
    path.write_bytes(whole)
    with pytest.raises(MediaError, match="memory") as raised:
        Video(path)
    assert "streams" not in str(raised.value)


def test_mp4_without_its_index(tmp_path, plain):
    whole = plain.read_bytes()
    cut = tmp_path / "cut.mp4"
    cut.write_bytes(whole[: len(whole) // 2])
    assert problem(cut) == "truncated"


@pytest.mark.parametrize(
    ("name", "options"),
    [("cut.mkv", {}), ("cut.mp4", {"movflags": "faststart"}), ("cut.ts", {}), ("cut.avi", {})],
)
def test_truncated_films_are_as_long_as_what_is_left(tmp_path, name, options):
    codec = "mjpeg" if name.endswith("avi") else "libx264"
    film = Recipe(name, x264(container=options, codec=codec, options={}), count=200)
    path = film.make(tmp_path)
    whole = Video(path).duration
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 6 // 10])
    video = Video(path)
    assert 0.2 * whole < video.duration < 0.9 * whole
    times = [video.duration * share for share in (0.1, 0.5, 0.9)]
    for asked, frame in zip(times, video.at(times), strict=True):
        assert frame.time <= asked < frame.time + 0.3


def test_truncation_is_detected(tmp_path):
    path = Recipe("cut.mp4", x264(container={"movflags": "faststart"}), count=200).make(tmp_path)
    assert not Video(path).truncated
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    assert Video(path).truncated


def test_the_rest_of_a_damaged_film_is_decoded(tmp_path):
    path = Recipe("hurt.mkv", x264(gop=20), count=200).make(tmp_path)
    data = bytearray(path.read_bytes())
    # early and little, so that on every platform whole clusters follow
    place, size = len(data) // 3, 1000
    data[place : place + size] = np.random.default_rng(1).bytes(size)
    path.write_bytes(data)
    frames = list(Video(path).sample(2.0))
    assert len(frames) >= 30
    assert all(np.diff([f.time for f in frames]) >= 0)


def test_times_outside_the_film(plain):
    video = Video(plain)
    for time in (-0.1, video.duration + 1, float("nan")):
        with pytest.raises(MediaError, match="outside the film"):
            video.at([time])


def test_a_pixel_aspect_ratio_that_exceeds_the_limit_is_ignored(tmp_path):
    write_film(tmp_path / "wide.mp4", pictures(3), x264(pixel_aspect=Fraction(4, 3)))
    width, height = 128, 96
    video = Video(tmp_path / "wide.mp4", limits=MediaSettings(max_pixels=width * height + 1))
    assert (video.info.aspect, video.info.width) == (1.0, width)
    assert video.at([0.0])[0].pixels.shape == (height, width, 3)


def test_pixel_aspect_ratio_is_applied(tmp_path):
    write_film(tmp_path / "wide.mp4", pictures(3), x264(pixel_aspect=Fraction(4, 3)))
    wide = Video(tmp_path / "wide.mp4")
    assert (wide.info.width, wide.info.height) == (171, 96)
    assert wide.at([0.0])[0].pixels.shape == (96, 171, 3)


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


@pytest.mark.processes
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
