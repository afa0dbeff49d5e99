"""A spliced clip shows the same frames at the same times as one that is encoded as a whole."""

from __future__ import annotations

from itertools import pairwise

import av
import numpy as np
import pytest
from films import X264, jerky, pictures, read_number, x264

from longtake.media import clip as clips
from longtake.media.clip import cut
from longtake.media.splice import splice
from longtake.media.twin import read_header, twin
from longtake.media.video import Video
from longtake.media.writer import Encoding, write_film
from longtake.types import Segment

OPEN = {**X264, "x264-params": "open-gop=1:keyint=12:scenecut=0"}
TWO_RATES = {"preset": "veryfast", "b": "200k"}
FILMS = {
    "b_frames.mp4": (x264(gop=6), None),
    "no_b_frames.mkv": (x264(options={**X264, "bf": "0"}, gop=9), None),
    "variable.mp4": (x264(gop=4), jerky(60)),
    "coarse.mp4": (x264(gop=8, container={"video_track_timescale": "10"}), None),
    "bit_rate.mp4": (x264(options=TWO_RATES, gop=15), None),
}
STRETCHES = [Segment(0.0, 5.0), Segment(0.313, 5.0), Segment(1.2, 4.77), Segment(1.1, 6.0)]


@pytest.fixture(scope="module")
def films(tmp_path_factory):
    folder = tmp_path_factory.mktemp("splice")
    for name, (encoding, times) in FILMS.items():
        write_film(folder / name, pictures(60), encoding, times=times)
    return folder


def shown(path):
    """The numbers that the frames show; raises if the decoder meets anything wrong."""
    with av.open(str(path)) as file:
        file.streams.video[0].codec_context.options = {"err_detect": "explode"}
        return [read_number(frame.to_ndarray(format="rgb24")) for frame in file.decode(video=0)]


@pytest.mark.parametrize("name", FILMS)
def test_frames_and_times_are_those_of_the_whole_encoding(films, tmp_path, monkeypatch, name):
    video = Video(films / name)
    whole, spliced = tmp_path / "whole.mp4", tmp_path / "spliced.mp4"
    for stretch in STRETCHES:
        assert splice(video, stretch, spliced, None, 16_000), stretch
        with monkeypatch.context() as patch:
            patch.setattr(clips, "splice", lambda *_: False)
            cut(video, stretch, whole)
        expected, times = shown(whole), Video(whole).table.times
        assert shown(spliced) == expected
        assert Video(spliced).table.times == pytest.approx(times, abs=0.0015)
        assert all(later - earlier == 1 for earlier, later in pairwise(expected))


def test_what_lies_between_keyframes_is_copied(films, tmp_path):
    source = Video(films / "b_frames.mp4")
    cut(source, Segment(0.4, 5.5), tmp_path / "clip.mp4")
    copied = [0.6, 2.4, 4.7]  # keyframes are 0.6 s apart
    ours = Video(tmp_path / "clip.mp4").at([time - 0.4 for time in copied])
    for made, original in zip(ours, source.at(copied), strict=True):
        np.testing.assert_array_equal(made.pixels, original.pixels)


def test_clips_of_open_groups_show_the_right_frames(tmp_path):
    # a keyframe that others refer across is no place to cut
    write_film(tmp_path / "open.mp4", pictures(60), x264(options=OPEN, gop=12))
    cut(Video(tmp_path / "open.mp4"), Segment(1.0, 5.0), tmp_path / "clip.mp4")
    assert shown(tmp_path / "clip.mp4") == list(range(10, 50))


@pytest.mark.parametrize(
    ("encoding", "stretch"),
    [
        (Encoding(codec="mpeg4", options={}, gop=12), Segment(0.5, 5.5)),
        (x264(gop=12, rotation=90), Segment(0.5, 5.5)),
        (x264(gop=12), Segment(1.3, 2.3)),  # no two keyframes in it
        (x264(gop=1), Segment(0.5, 5.5)),  # nothing but keyframes
    ],
)
def test_other_stretches_are_encoded_as_a_whole(tmp_path, encoding, stretch):
    path, out = tmp_path / "film.mp4", tmp_path / "clip.mp4"
    write_film(path, pictures(60), encoding)
    assert not splice(Video(path), stretch, out, None, 16_000)
    cut(Video(path), stretch, out)
    assert Video(out).duration == pytest.approx(stretch.duration, abs=0.15)


def test_an_encoder_with_other_parameter_sets_is_refused(films):
    with av.open(str(films / "b_frames.mp4")) as file:
        context = file.streams.video[0].codec_context
        first = bytes(next(file.demux(video=0)))
        header = read_header(context.extradata)
        assert twin(context, header, first) is not None
        assert twin(context, header, first.replace(b"cabac=1", b"cabac=0")) is None
        # settings that are no numbers might name files
        assert twin(context, header, first.replace(b"ref=", b"ref=dump-yuv:")) is None
        assert twin(context, replace_sets(header), first) is None
        assert twin(context, header, b"made by another encoder") is None
    assert read_header(b"\x00\x00\x00\x01\x67") is None  # as in MPEG-TS


def replace_sets(header):
    return header._replace(sets=(header.sets[0] + b"\x00", *header.sets[1:]))
