from itertools import pairwise

import numpy as np
import pytest
from films import FILMS, pictures, x264

from longtake.errors import MediaError
from longtake.types import Segment
from longtake.video.audio import RATE, listen
from longtake.video.clip import write_film
from longtake.video.video import Video

BEEPS = (2.0, 5.5, 9.25)


def beeping(seconds=12.0, rate=RATE):
    """Silence with a beep of 0.2 s at each time in BEEPS."""
    sound = np.zeros(int(seconds * rate), dtype=np.float32)
    for start in BEEPS:
        tone = np.sin(2 * np.pi * 880 * np.arange(int(0.2 * rate)) / rate)
        sound[int(start * rate) : int(start * rate) + len(tone)] = tone
    return sound


def onsets(slices):
    """Times in the film at which sound begins after silence."""
    found = []
    for sound in slices:
        loud = np.abs(sound.samples) > 0.3
        for i in np.flatnonzero(loud):
            time = sound.start + i / RATE
            if not found or time - found[-1][1] > 0.5:
                found.append([time, time])
            found[-1][1] = time
    return [start for start, _ in found]


@pytest.fixture(
    params=[
        ("film.mp4", "aac", 16_000),
        ("film.mkv", "libopus", 48_000),
        ("film.ts", "aac", 44_100),
    ],
    scope="module",
)
def beeps(request, tmp_path_factory):
    name, codec, rate = request.param
    path = tmp_path_factory.mktemp("beeps") / name
    write_film(
        path, pictures(120), x264(audio_codec=codec, audio_rate=rate), sound=beeping(rate=rate)
    )
    return path


def heard(path, **options):
    return list(listen(path, origin=Video(path).origin, **options))


def test_sounds_have_the_right_times(beeps):
    assert onsets(heard(beeps)) == pytest.approx(BEEPS, abs=0.03)


def test_slices_are_bounded_and_contiguous(beeps):
    slices = heard(beeps, slice_seconds=2.5)
    assert all(len(s.samples) <= 2.5 * RATE for s in slices)
    for before, after in pairwise(slices):
        assert after.start == pytest.approx(before.segment.end, abs=1e-6)
    assert sum(len(s.samples) for s in slices) / RATE == pytest.approx(12.0, abs=0.15)


def test_what_was_heard_is_not_copied_with_every_packet(beeps, monkeypatch):
    copied, join = [], np.concatenate
    monkeypatch.setattr(np, "concatenate", lambda parts: copied.append(join(parts)) or copied[-1])
    slices = heard(beeps, slice_seconds=5)
    samples = sum(len(sound.samples) for sound in slices)
    assert sum(map(len, copied)) < 1.5 * samples


def test_a_segment_begins_and_ends_exactly_as_requested(beeps):
    slices = heard(beeps, within=Segment(5.0, 6.5))
    assert slices[0].start == 5.0
    assert sum(len(s.samples) for s in slices) == 1.5 * RATE
    assert onsets(slices) == pytest.approx([5.5], abs=0.03)


def test_a_late_track_is_preceded_by_silence(tmp_path):
    write_film(tmp_path / "late.mkv", pictures(150), x264(), sound=beeping(), audio_start=3.0)
    assert onsets(heard(tmp_path / "late.mkv")) == pytest.approx([b + 3 for b in BEEPS], abs=0.03)


def test_a_film_without_sound(film_folder):
    with pytest.raises(MediaError) as caught:
        heard(FILMS[0].make(film_folder))
    assert caught.value.problem == "no_audio"
