"""Hearing English, and admitting when it is not."""

import json
import subprocess
import sys
import wave
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from longtake.algorithms.speakers import numbered_voices
from longtake.errors import MissingExtra
from longtake.perception.protocols import SpeechRecognizer
from longtake.perception.speech import (
    RATE,
    MoonshineListener,
    VoiceDetector,
    VoiceEncoder,
    _Spoken,
    open_whisper,
    pieces,
    stretches,
    vocabulary,
    without_loop,
)
from longtake.types import Segment

DETECT = """
import json, sys
from pathlib import Path
import moonshine_voice, numpy
from moonshine_voice.transcriber import Transcriber

folder = Path(moonshine_voice.__file__).parent / "assets" / "tiny-en"
options = {"identify_speakers": "false", "skip_transcription": "true"}
detector = Transcriber(folder, moonshine_voice.ModelArch.TINY, options=options)
lines = detector.transcribe_without_streaming(numpy.load(sys.argv[1]).tolist(), 16_000).lines
print(json.dumps([(line.start_time, line.start_time + line.duration) for line in lines]))
"""


def recorded(name):
    """A recording that comes with the recogniser."""
    moonshine = pytest.importorskip("moonshine_voice")
    with wave.open(str(Path(moonshine.__file__).parent / "assets" / name)) as file:
        raw = np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / 32768
        if file.getnchannels() > 1:
            raw = raw.reshape(-1, file.getnchannels()).mean(axis=1)
        step = file.getframerate() / RATE
    return np.interp(np.arange(0, len(raw), step), np.arange(len(raw)), raw).astype(np.float32)


@pytest.fixture(scope="module")
def speech():
    """The opening of "A Tale of Two Cities"."""
    return recorded("two_cities.wav")


@pytest.fixture(scope="module")
def listener():
    pytest.importorskip("moonshine_voice")
    return MoonshineListener()


def test_english_is_transcribed_at_its_film_time(listener, speech):
    heard = listener.listen(speech[: 12 * RATE], start=100)
    text = " ".join(line.text for line in heard.lines).lower()
    assert isinstance(listener, SpeechRecognizer)
    assert "best of times" in text
    assert heard.unsupported == ()
    assert 100 <= heard.lines[0].segment.start < 103
    assert heard.lines[-1].segment.end <= 112


def test_what_is_not_english_is_reported_and_not_transcribed(listener, speech):
    backwards = np.ascontiguousarray(
        speech[: 15 * RATE][::-1]
    )  # the sounds of speech, in no language
    heard = listener.listen(backwards, start=50)
    assert heard.lines == ()
    assert heard.unsupported
    assert heard.unsupported[0].segment.start >= 50
    assert "not understood as English" in heard.unsupported[0].reason


@pytest.mark.usefixtures("networks_run_anew")
def test_what_is_heard_does_not_depend_on_what_was_heard_before(listener, speech):
    alone = listener.listen(speech[12 * RATE : 16 * RATE])
    assert alone.lines
    listener.listen(speech[: 3 * RATE])
    assert listener.listen(speech[12 * RATE : 16 * RATE]) == alone


def test_speech_is_found_where_moonshine_finds_it_in_a_new_process(speech, tmp_path):
    """Its own detector starts with an empty state only there."""
    # pauses, then a line that is cut after 10 s
    sound = np.concatenate([speech[: 4 * RATE], np.tile(speech[RATE : 2 * RATE], 12)])
    file = tmp_path / "sound.npy"
    np.save(file, sound)
    done = subprocess.run(
        [sys.executable, "-c", DETECT, file], capture_output=True, text=True, check=True
    )
    expected = json.loads(done.stdout)
    assert max(end - begin for begin, end in expected) > 10
    detector = VoiceDetector()
    detector.voiced(speech[: 5 * RATE])
    assert detector.voiced(sound) == [pytest.approx(span) for span in expected]


def test_two_people_are_told_apart_by_their_voices(speech):
    other = recorded("clone-test.wav")
    parts = [speech[: 3 * RATE], other, speech[20 * RATE : 23 * RATE], other[: 2 * RATE]]
    both = np.concatenate([speech[: 3 * RATE], other[: 3 * RATE]])
    encoder = VoiceEncoder()
    rows = np.array([encoder.encode(part) for part in (*parts, both)])
    # a line that both speak, one after the other, is nobody's
    assert np.linalg.norm(rows, axis=1) == pytest.approx([1, 1, 1, 1, 0], abs=1e-4)
    assert numbered_voices(rows, [3.0] * 5) == [1, 2, 1, 2, None]
    assert not encoder.encode(np.zeros(10, np.float32)).any()


def test_tokens_are_read_whatever_their_length():
    long = b"x" * 200
    stored = bytes([2]) + b"ab" + bytes([200 % 128 + 128, 200 // 128]) + long + bytes([1]) + b"c"
    assert vocabulary(stored) == [b"ab", long, b"c"]


def test_silence_and_no_sound_give_nothing(listener):
    assert listener.listen(np.zeros(RATE, np.float32)).lines == ()
    assert listener.listen(np.zeros(0, np.float32)).lines == ()


def test_two_channels_are_refused(listener):
    with pytest.raises(ValueError, match="one channel"):
        listener.listen(np.zeros((RATE, 2), np.float32))


def test_without_the_extra_the_install_line_is_given(monkeypatch):
    def absent(name):
        raise ModuleNotFoundError(name)

    monkeypatch.setattr("longtake.perception.speech.version_of", absent)
    with pytest.raises(MissingExtra, match=r'pip install "longtake\[speech\]"'):
        MoonshineListener()
    monkeypatch.setitem(sys.modules, "faster_whisper", None)
    with pytest.raises(MissingExtra, match=r'pip install "longtake\[whisper\]"'):
        open_whisper("base")


def test_a_reply_without_an_end_loses_the_phrase_that_it_repeats():
    assert without_loop([5, 6, 7, 8, 9, 8, 9, 8, 9, 8]) == [5, 6, 7, 8, 9]
    assert without_loop([4, 4, 4, 4]) == [4]
    # cut off in the middle of its second round
    assert without_loop([1, 2, 3, 4, 1, 2, 3]) == [1, 2, 3, 4]
    for honest in ([], [7], [1, 2, 3, 4, 1, 2], [5, 5, 6, 6]):
        assert without_loop(honest) == honest


def test_long_sound_is_cut_where_it_is_quiet():
    sound = np.full(25 * RATE, 0.5, np.float32)
    quiet = int(9.25 * RATE)
    sound[quiet : quiet + RATE // 5] = 0
    found = pieces(sound, longest=10)
    assert found[0][0] == 0
    assert found[1][0] == pytest.approx(9.3 * RATE, abs=RATE * 0.1)
    assert np.concatenate([piece for _, piece in found]).shape == sound.shape
    assert max(len(piece) for _, piece in found) <= 10 * RATE
    assert [begin for begin, _ in found] == list(
        np.cumsum([0, *(len(piece) for _, piece in found[:-1])])
    )


def test_lines_are_judged_by_the_half_minute():
    said = [_Spoken(Segment(t, t + 8), "x", -0.1, 5) for t in (0, 10, 20, 30, 62)]
    assert [len(group) for group in stretches(said)] == [3, 1, 1]


class Engine:
    """Behaves like faster-whisper's model: lazily decoded segments, and the detected language."""

    def transcribe(self, samples, vad_filter):
        assert vad_filter
        length = len(samples) / RATE
        parts = [(0.0, length / 2, " Guten Tag "), (length / 2, length, "  ")]
        segments = (SimpleNamespace(start=a, end=b, text=text) for a, b, text in parts)
        return segments, SimpleNamespace(language="de")


@pytest.mark.parametrize(("device", "batched"), [("cpu", False), ("cuda", True)])
def test_whisper_uses_batches_where_it_finds_a_gpu(monkeypatch, device, batched):
    asked = []

    class Model(Engine):
        def __init__(self, *_, **__):
            self.model = SimpleNamespace(device=device)

    class Batches(Engine):
        def transcribe(self, samples, vad_filter, **options):
            asked.append(options)
            return super().transcribe(samples, vad_filter)

    module = SimpleNamespace(WhisperModel=Model, BatchedInferencePipeline=lambda _: Batches())
    monkeypatch.setitem(sys.modules, "faster_whisper", module)
    listener = open_whisper("base")
    assert listener.key == "faster-whisper:base" + (":batched" if batched else "")
    heard = listener.listen(np.zeros(4 * RATE, np.float32), start=60)
    assert [(line.segment, line.text) for line in heard.lines] == [(Segment(60, 62), "Guten Tag")]
    # without time stamps a line would be as long as its batch's stretch
    assert asked == [{"batch_size": 16, "without_timestamps": False}] * batched
