"""Files that are not films: one clear error each, and no other file is opened."""

from __future__ import annotations

import os
from fractions import Fraction

import av
import numpy as np
import pytest
from films import FILMS, Recipe, pictures, x264

from longtake.config import MediaSettings
from longtake.errors import MediaError
from longtake.video.clip import write_film
from longtake.video.container import open_container
from longtake.video.video import Video


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
