"""One suite for every kind of sound file: a film without pictures, for every command."""

import json
import wave
from pathlib import Path

import av
import numpy as np
import pytest

import longtake
from longtake.video.audio import RATE
from longtake.video.video import Video

CODECS = {
    "talk.mp3": "mp3",
    "talk.m4a": "aac",
    "talk.wav": "pcm_s16le",
    "talk.flac": "flac",
    "talk.ogg": "libopus",
}


@pytest.fixture(scope="module")
def samples():
    """Twelve seconds of a recording that comes with the recogniser."""
    moonshine = pytest.importorskip("moonshine_voice")
    with wave.open(str(Path(moonshine.__file__).parent / "assets/two_cities.wav")) as file:
        raw = np.frombuffer(file.readframes(file.getnframes()), "<i2")
        step = file.getframerate() * file.getnchannels() / RATE
    heard = np.interp(np.arange(0, len(raw), step), np.arange(len(raw)), raw)
    return heard[: 12 * RATE].astype(np.int16)


@pytest.fixture(params=CODECS)
def path(request, samples, tmp_path):
    path = tmp_path / "talks" / request.param
    path.parent.mkdir()
    with av.open(str(path), "w") as file:
        stream = file.add_stream(CODECS[path.name], rate=RATE)
        stream.layout = "mono"
        frame = av.AudioFrame.from_ndarray(samples[None], format="s16", layout="mono")
        frame.sample_rate = RATE
        file.mux([*stream.encode(frame), *stream.encode(None)])
    return path


def test_a_sound_file_is_one_black_picture_as_long_as_the_sound(path):
    video = Video(path)
    assert video.info.codec == ""
    assert video.duration == pytest.approx(12, abs=0.2)
    (frame,) = video.at([5.0], width=64)
    assert frame.pixels.shape == (36, 64, 3)
    assert not frame.pixels.any()


@pytest.mark.parametrize(
    "path",
    [
        "talk.mp3",
        *(pytest.param(name, marks=pytest.mark.campaign) for name in CODECS if name != "talk.mp3"),
    ],
    indirect=True,
)
def test_every_command_takes_a_sound_file(run, path, lend_models, tmp_path, monkeypatch):
    """Slow: ten commands, and the sound is heard."""
    monkeypatch.setenv("LONGTAKE_CACHE", str(lend_models(tmp_path / "cache")))
    assert "picture      none: the file has sound only" in run("info", path)[1]
    code, out, err = run("search", path, "it was the best of times", "--json")
    assert code == 0, err
    report = json.loads(out)["films"][0]
    assert report["hits"][0]["sources"].keys() == {"speech"}
    assert "best of times" in report["hits"][0]["text"]
    assert "best of times" in run("transcript", path)[1]
    code, out, err = run("index", path, "--json")
    assert all(layer["was_done"] for layer in json.loads(out)["films"][0]["layers"]), err
    assert " was the " in run("summary", path)[1]
    code, out, err = run("library", "add", path.parent)
    assert code == 0, err
    found = json.loads(run("library", "search", "it was the best of times", "--json")[1])
    assert "best of times" in json.dumps(found)
    # a model without a skill for it may abstain
    asked = ("--method", "lookup", "--model", "lab/acuity=1")
    code, out, err = run("ask", path, "What was it the best of?", *asked)
    assert code in (0, 3), err
    assert run("clip", path, "1", "3", "--out", tmp_path / "clip.mp4")[0] == 0
    assert run("frames", path, "--at", "1", "--out", tmp_path / "stills")[0] == 2


@pytest.mark.parametrize("path", ["talk.wav"], indirect=True)
def test_the_first_search_from_python_hears_too(path, lend_models, tmp_path, monkeypatch):
    monkeypatch.setenv("LONGTAKE_CACHE", str(lend_models(tmp_path / "cache")))
    parts = set()
    film = longtake.open(path)
    found = film.search("the best of times", on_progress=lambda part, share: parts.add(part))
    assert "best of times" in found.hits[0].text
    assert parts == {"frames", "speech"}
