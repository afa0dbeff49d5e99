"""Clips begin and end where they were asked to, with sound and subtitles."""

import numpy as np
import pytest
from films import pictures, read_number

from longtake.errors import MediaError
from longtake.types import Line, Segment
from longtake.video.audio import RATE, listen
from longtake.video.clip import Encoding, cut, join, write_film, write_subtitles
from longtake.video.subtitles import read_subtitles
from longtake.video.video import Video


@pytest.fixture(scope="module")
def film(tmp_path_factory):
    """Four seconds at 10 fps, one keyframe; a tone from second 2 on."""
    path = tmp_path_factory.mktemp("clips") / "film.mp4"
    seconds = np.arange(4 * RATE) / RATE
    tone = np.where(seconds >= 2, 0.5 * np.sin(2 * np.pi * 440 * seconds), 0).astype(np.float32)
    write_film(path, pictures(40), Encoding(gop=100), sound=tone)
    return path


def test_a_clip_starts_between_keyframes_and_between_frames(film, tmp_path):
    out = tmp_path / "clip.mp4"
    assert cut(Video(film), Segment(1.25, 2.5), out) == Segment(1.25, 2.5)
    clip = Video(out)
    numbers = [read_number(frame.pixels) for frame in clip.at([0.0, 0.06, 1.1])]
    # frame 12 was on screen at 1.25, frame 13 appeared at 1.3, frame 23 at 2.3
    assert numbers == [12, 13, 23]
    assert clip.duration == pytest.approx(1.25, abs=0.15)


def test_a_clip_may_start_with_a_frame(film, tmp_path):
    # in binary, the frame at 1.2 appears a little later than 1.2
    cut(Video(film), Segment(1.2, 2.0), tmp_path / "clip.mp4")
    clip = Video(tmp_path / "clip.mp4")
    assert [read_number(frame.pixels) for frame in clip.at([0.0, 0.1])] == [12, 13]
    assert len(clip.table) == 8


def test_the_sound_comes_along_in_time(film, tmp_path):
    out = tmp_path / "clip.mp4"
    cut(Video(film), Segment(1.5, 2.5), out)
    sound = np.concatenate([each.samples for each in listen(out, origin=Video(out).origin)])
    loud = np.abs(sound) > 0.2
    assert np.argmax(loud) / RATE == pytest.approx(0.5, abs=0.05)


def test_a_clip_ends_with_the_film_and_never_starts_after_it(film, tmp_path):
    out = tmp_path / "clip.mp4"
    assert cut(Video(film), Segment(3.5, 99), out).end == pytest.approx(4.0, abs=0.05)
    with pytest.raises(MediaError, match="outside the film"):
        cut(Video(film), Segment(50, 60), tmp_path / "none.mp4")
    assert not (tmp_path / "none.mp4").exists()


def test_odd_sizes_are_cut_to_even_ones(tmp_path):
    path, out = tmp_path / "odd.mkv", tmp_path / "clip.mp4"
    odd = [np.full((35, 51, 3), 90, np.uint8)] * 5
    write_film(path, odd, Encoding(codec="ffv1", options={}))
    cut(Video(path), Segment(0, 0.4), out)
    assert Video(out).at([0.0])[0].pixels.shape == (34, 50, 3)


def test_subtitles_are_timed_from_the_start_of_the_clip(tmp_path):
    lines = [
        Line(Segment(0, 1), "before"),
        Line(Segment(1, 3), "across\nthe cut"),
        Line(Segment(4, 5), "inside"),
    ]
    path = tmp_path / "clip.srt"
    assert write_subtitles(lines, Segment(2, 6), path) == 2
    first, second = read_subtitles(path)
    assert (first.segment, first.text) == (Segment(0, 1), "across the cut")
    assert second.segment == Segment(2, 3)


def test_without_speech_no_file_is_written(tmp_path):
    assert write_subtitles([], Segment(0, 1), tmp_path / "clip.srt") == 0
    assert list(tmp_path.iterdir()) == []


def test_stretches_of_two_films_are_one_clip(film, tmp_path):
    wide = tmp_path / "wide.mp4"
    write_film(wide, [np.full((32, 128, 3), 255, np.uint8)] * 10, Encoding())
    out = tmp_path / "reel.mp4"
    parts = [(Video(film), Segment(2.5, 3.0)), (Video(wide), Segment(0.2, 0.6))]
    assert [each.duration for each in join(parts, out)] == pytest.approx([0.5, 0.4])
    reel = Video(out)
    first, last = reel.at([0.1, 0.7])
    assert read_number(first.pixels) == 26
    # the other film keeps its shape, between black bars
    assert last.pixels.shape == first.pixels.shape
    assert last.pixels[0].max() < 40
    assert last.pixels[last.pixels.shape[0] // 2].min() > 200
    sound = np.concatenate([each.samples for each in listen(out, origin=reel.origin)])
    assert np.abs(sound[: RATE // 4]).max() > 0.2
    # it is silent
    assert np.abs(sound[round(0.6 * RATE) :]).max() < 0.1


def test_writing_a_clip_tells_how_far_it_is(film, tmp_path):
    shares = []
    cut(Video(film), Segment(1, 2), tmp_path / "clip.mp4", shares.append)
    assert shares == sorted(shares)
    assert shares[0] == 0
    assert 0.8 < shares[-1] < 1
