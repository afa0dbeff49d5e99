"""Hearing, reading and searching over the store, with senses that the test can see into."""

import json
import shutil
import threading
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from films import FILMS, x264
from support.models import fill

from longtake.agents.run import Agent, Run
from longtake.cli.search import hearing_order, search_film
from longtake.config import PerceptionSettings
from longtake.errors import MissingExtra
from longtake.index import tasks
from longtake.index.film import Film
from longtake.index.search import covered, search
from longtake.index.store import Store
from longtake.index.tasks import glance, spread
from longtake.index.text_layers import TILE
from longtake.llm.backends.scripted import ScriptedChat
from longtake.methods.lvagent.method import LVAgent
from longtake.perception.loader import PerceptionModels
from longtake.perception.protocols import Heard, TextBox, UnsupportedSpeech
from longtake.runner.session import solve
from longtake.tracing.events import Stream
from longtake.tracing.sinks import Recorder
from longtake.types import Line, Question, Segment
from longtake.video.audio import RATE
from longtake.video.clip import write_film


class Ear:
    """Hears a word where the sound is loud, and nothing else."""

    key = "ear"

    def __init__(self):
        self.heard = []

    def listen(self, samples, start=0.0):
        self.heard.append((start, start + len(samples) / RATE))
        loud = np.flatnonzero(np.abs(samples[:: RATE // 10]) > 0.2)
        groups = np.split(loud, np.flatnonzero(np.diff(loud) > 3) + 1) if len(loud) else []
        spans = [Segment(start + g[0] / 10, start + (g[-1] + 1) / 10) for g in groups]
        return Heard(tuple(Line(s, f"word {round(s.start)}") for s in spans))


class Eye:
    """Reads the brightness of a frame's corner."""

    key = "eye"

    def __init__(self):
        self.read_at = []

    def read(self, frame):
        self.read_at.append(frame.time)
        return [TextBox(f"SIGN{round(frame.time)}", (0, 0, 1, 1), 0.9)]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """150 seconds: three scenes of different colour, a loud second at 20, 59.5 and 130."""
    path = tmp_path_factory.mktemp("perceiving") / "film.mkv"
    sound = np.zeros(150 * RATE, np.float32)
    for second in (20.0, 59.5, 130.0):
        begin = int(second * RATE)
        sound[begin : begin + RATE] = np.sin(np.arange(RATE) * 0.5)
    colours = [(200, 30, 30), (30, 200, 30), (30, 30, 200)]
    frames = (np.full((96, 128, 3), colours[i // 250], np.uint8) for i in range(750))
    write_film(path, frames, x264(fps=x264().fps / 2), sound=sound)
    return path


def opened(path, cache, models):
    senses = PerceptionModels(PerceptionSettings(), models)
    senses.__dict__.update(listener=Ear(), reader=Eye())
    return Film(path, Store(cache), senses=senses)


@pytest.fixture
def film(path, tmp_path, prepared_models):
    return opened(path, tmp_path / "cache", prepared_models)


@pytest.fixture(scope="module")
def pictures_encoded(path, tmp_path_factory, prepared_models):
    """A cache with the layers of pictures, which take longest."""
    cache = tmp_path_factory.mktemp("encoded")
    opened(path, cache, prepared_models).embeddings()
    return cache


@pytest.fixture
def encoded(path, pictures_encoded, tmp_path, prepared_models):
    """The film with its pictures encoded; nothing was heard or read."""
    shutil.copytree(pictures_encoded, tmp_path / "cache")
    return opened(path, tmp_path / "cache", prepared_models)


def test_speech_is_heard_once_and_nothing_is_lost_at_the_edges_of_tiles(film):
    lines = film.speech()
    assert [line.segment.start for line in lines] == pytest.approx([20.0, 59.5, 130.0], abs=0.3)
    listened = len(film.senses.listener.heard)
    assert listened == 3
    film.speech()
    assert len(film.senses.listener.heard) == listened


def test_an_isolated_film_knows_only_what_it_was_asked_for(path, tmp_path, prepared_models):
    earlier = opened(path, tmp_path / "cache", prepared_models)
    assert len(earlier.speech()) == 3
    film = opened(path, tmp_path / "cache", prepared_models)
    film.words.isolate()
    assert film.known_lines() == ([], [])
    assert film.speech(Segment(0, 30)) == film.known_lines()[0] == earlier.speech()[:1]


def test_prompts_without_subtitles_are_the_same_before_and_after_speech_was_recognised(
    path, pictures_encoded, tmp_path, prepared_models
):
    cache = shutil.copytree(pictures_encoded, tmp_path / "cache")
    question = Question("Who leaves?", ("the man", "the woman"))

    def asked(isolated):
        film, texts = opened(path, cache, prepared_models), []
        if isolated:
            film.words.isolate()

        def reply(messages, options):
            texts.append("\n".join(message.text for message in messages))
            return json.dumps(fill(options.schema)) if options.schema else "Well."

        method = LVAgent(perception=False, blank_frames=4, reasons=False, team_size=1)
        solve(method, film, question, Run({}, team=[Agent("ann", ScriptedChat(reply))]))
        return texts

    before = asked(isolated=True)
    opened(path, cache, prepared_models).speech()
    assert before
    assert asked(isolated=True) == before
    assert asked(isolated=False) != before


class Voices:
    """Two voices in turn."""

    def __init__(self):
        self.lengths = []

    def encode(self, samples):
        self.lengths.append(len(samples) / RATE)
        return np.eye(2, dtype=np.float32)[len(self.lengths) % 2]


def test_voices_are_told_apart_once_and_kept(path, tmp_path, prepared_models):
    film = opened(path, tmp_path / "cache", prepared_models)
    film.senses.listener.listen = lambda samples, start=0.0: Heard(
        tuple(Line(Segment(start + t, start + t + 2), f"at {t}") for t in (3, 10))
    )
    voices = Voices()
    for _ in range(2):
        film.words.recognised.tell_voices_apart(voices)
    assert voices.lengths == [pytest.approx(2, abs=0.01)] * 6
    labelled = ["Speaker 1: at 3", "Speaker 2: at 10"] * 3
    assert [line.text for line in film.speech()] == labelled
    assert [line.text for line in film.known_lines()[0]] == labelled
    assert film.words.speech_key() == film.words.recognised.voices_key
    # an experiment knows nothing of it
    film = opened(path, tmp_path / "cache", prepared_models)
    film.words.isolate()
    assert film.speech()[0].text == "at 3"


def test_a_stretch_is_listened_to_alone(film):
    assert [line.text for line in film.speech(Segment(125, 140))] == ["word 130"]
    assert film.senses.listener.heard == [
        (pytest.approx(2 * TILE - 2), pytest.approx(150.0, abs=0.5))
    ]
    assert covered(film)["speech"] == pytest.approx(0.2, abs=0.01)


def test_speech_that_is_not_understood_is_kept_apart(film):
    film.senses.listener.listen = lambda samples, start=0.0: Heard(
        (), (UnsupportedSpeech(Segment(5, 9), "not English"),)
    )
    assert film.speech(Segment(0, 10)) == []
    key = film.words.recognised.unsupported_key
    assert [line.text for line in film.source.text.lines(key)] == ["not English"]
    told = film.words.speech_note
    assert told.startswith("4 s of speech, as at 00:00:05, are not understood as English")
    assert "longtake models pull whisper" in told
    assert "labelled" not in told
    track = replace(film.video.info.audio[0], language="ger")
    film.video.info = replace(film.video.info, audio=(track,))
    assert "the sound is labelled German" in film.words.speech_note


def test_a_sigh_among_lines_is_not_taken_for_another_language(film):
    film.senses.listener.listen = lambda samples, start=0.0: Heard(
        (Line(Segment(1, 2), "hello"),), (UnsupportedSpeech(Segment(5, 9), "not English"),)
    )
    film.speech(Segment(0, 10))
    assert film.words.speech_note == ""


def test_silence_is_told_from_a_film_without_sound_and_from_one_not_heard_yet(film):
    assert film.words.speech_note == ""
    film.senses.listener.listen = lambda samples, start=0.0: Heard()
    film.speech()
    assert film.words.speech_note == "nobody is heard to speak in the film's sound"
    film.video.info = replace(film.video.info, audio=())
    assert film.words.speech_note == "the film has no sound"


def test_one_frame_is_read_for_each_distinct_shot_and_stands_for_all_of_it(film):
    lines = film.onscreen()
    assert len(film.senses.reader.read_at) == 3
    assert [(line.segment.start, line.segment.end) for line in lines] == [
        (0, 50),
        (50, 100),
        (100, 150),
    ]
    film.onscreen()
    assert len(film.senses.reader.read_at) == 3
    assert covered(film)["onscreen"] == 1.0


def test_shots_are_not_chosen_again_once_all_of_them_are_read(film, monkeypatch):
    lines = film.onscreen()
    del film.words.__dict__["readable"]

    def refuse(thumbnails):
        raise AssertionError("chose shots")

    monkeypatch.setattr("longtake.index.text_layers.survey", refuse)
    assert film.onscreen() == lines
    assert film.onscreen(Segment(20, 30)) == lines[:1]


def test_a_moment_that_is_asked_for_is_read_itself_even_where_another_stands_for_it(film):
    film.onscreen()
    assert [line.text for line in film.words.onscreen_at(70.0)] == ["SIGN70"]
    read = len(film.senses.reader.read_at)
    assert [line.text for line in film.words.onscreen_at(70.4)] == ["SIGN70"]
    assert len(film.senses.reader.read_at) == read


def test_search_finds_what_was_said_and_shown_and_says_how_much_it_knows(encoded):
    encoded.speech()
    found = search(encoded, "word 130")
    assert found.hits[0].time == pytest.approx(130, abs=1)
    assert found.hits[0].sure
    assert found.hits[0].text == "word 130"
    assert found.covered == {"image": 1.0, "speech": 1.0, "onscreen": 0.0}
    encoded.onscreen()
    sign = next(line for line in encoded.onscreen() if line.segment.start == 50)
    assert search(encoded, sign.text).hits[0].segment == Segment(50, 100)


def test_the_first_search_hears_and_shows_what_it_finds_at_once(encoded):
    shown, ear = [], encoded.senses.listener

    def show(hit):
        shown.append((hit.text, len(ear.heard)))

    result = search_film(encoded, "word 130", Segment(0, 150), 10, "", show)
    assert result.hits[0].text == "word 130"
    assert result.covered["speech"] == 1.0
    # while two of the three minutes were known, if not before
    assert shown[0][0] == "word 130"
    assert shown[0][1] < 3
    # what is said was found, so nothing is read
    assert encoded.senses.reader.read_at == []
    second = search_film(encoded, "word 130", Segment(0, 150), 10, "", show)
    assert second.hits[0] == result.hits[0]
    assert len(ear.heard) == 3


def test_a_search_that_finds_nothing_reads_the_screens_of_a_short_film(encoded):
    result = search_film(encoded, "SIGN 60", Segment(0, 150), 10, "", print)
    assert result.covered == {"image": 1.0, "speech": 1.0, "onscreen": 1.0}


def test_minutes_near_what_fits_are_heard_early(encoded):
    tiles = [Segment(60.0 * number, 60.0 * number + 60.0) for number in range(7)]
    order = hearing_order(lambda: search(encoded, "a word of mine").hits)
    assert order(tiles[:]) == [tiles[number] for number in spread(7)]
    line = Line(Segment(100.0, 101.0), "words of yours")
    encoded.source.text.add(encoded.words.recognised.key, [line], [])
    assert order(tiles[:])[:2] == [tiles[1], tiles[2]]
    assert order(tiles[:]) == [tiles[number] for number in spread(7)]


def test_search_inside_a_stretch(encoded):
    encoded.speech()
    hits = search(encoded, "word", within=Segment(100, 150)).hits
    assert all(100 <= hit.time < 150 for hit in hits)


def test_nonsense_finds_nothing_with_confidence(encoded):
    encoded.speech()
    encoded.onscreen()
    assert not any(hit.sure for hit in search(encoded, "qwzx vbnmp").hits)


def test_a_second_search_neither_decodes_nor_encodes(encoded, tmp_path, monkeypatch):
    film, hits = encoded, search(encoded, "red").hits
    monkeypatch.setattr(type(film.video), "frames", lambda *a, **k: pytest.fail("decoded"))
    monkeypatch.setattr(type(film.senses.tagger), "run", lambda *a: pytest.fail("encoded"))
    monkeypatch.setattr(
        type(film.encoder), "from_probabilities", lambda *a: pytest.fail("derived anew")
    )
    again = Film(film.path, Store(tmp_path / "cache"), senses=film.senses)
    assert search(again, "red").hits == hits
    assert np.array_equal(again.embeddings(), film.embeddings())


def test_a_witness_tells_what_each_channel_holds(encoded):
    (frame,) = encoded.at([20.0])
    describer = encoded.describer()
    seen = describer.describe(frame, ("tags", "onscreen", "speech"))
    assert len(seen.tags) == 3
    assert seen.onscreen == ("SIGN20",)
    assert seen.speech == ("word 20",)
    assert describer.describe(frame, ("speech",)).tags == ()


def test_a_silent_film_has_no_speech(tmp_path, film_folder, prepared_models):
    senses = PerceptionModels(PerceptionSettings(), prepared_models)
    film = Film(FILMS[0].make(film_folder), Store(tmp_path / "c"), senses=senses)
    assert film.words.recognised is None
    assert film.speech() == []


def test_without_a_listener_installed_the_rest_goes_on_with_one_note(encoded, monkeypatch):
    def missing(_):
        raise MissingExtra("speech", "speech recognition")

    monkeypatch.setattr(PerceptionModels, "listener", property(missing))
    recorder, describer = Recorder(), encoded.describer()
    with Stream(recorder).active():
        assert encoded.speech() == encoded.known_lines()[0] == []
        seen = describer.describe(encoded.at([20.0])[0], ("onscreen", "speech"))
        assert seen.onscreen == ("SIGN20",)
    (told,) = recorder.trace.events
    assert told.label == "speech_left_out"
    assert 'pip install "longtake[speech]"' in told.data["why"]
    assert describer.revision
    assert search(encoded, "SIGN20").covered["speech"] == 0


def test_sizes_are_scaled_to_what_layers_need(encoded):
    assert encoded.embeddings().shape == (150, 384)
    assert encoded.features().shape == (150, 1280)
    np.testing.assert_allclose(np.linalg.norm(encoded.embeddings(), axis=1), 1, atol=1e-3)


def test_a_first_look_is_spread_over_the_film_and_kept(film, monkeypatch):
    ticks = threading.local()  # hearing and reading have a thread each

    def clock():
        ticks.count = getattr(ticks, "count", 0) + 1
        return ticks.count

    monkeypatch.setattr(tasks, "time", SimpleNamespace(perf_counter=clock))
    glance(film, seconds=3.0)
    ear, eye = film.senses.listener, film.senses.reader
    assert ear.heard[0][0] == pytest.approx(TILE - 2)  # the middle of three tiles
    assert eye.read_at[0] == pytest.approx(75, abs=0.5)
    film.words.hurried = True
    listened, read = len(ear.heard), len(eye.read_at)
    assert covered(film)["speech"] > 0
    film.speech()
    assert "SIGN75" in [line.text for line in film.onscreen()]
    assert (len(ear.heard), len(eye.read_at)) == (listened, read)
    # what the question names is recognised all the same
    assert [line.text for line in film.speech(Segment(125, 140))] == ["word 130"]
    film.words.hurried = False
    film.speech()
    assert len(ear.heard) == 3


def test_a_first_look_without_time_reads_one_of_each_at_most(film):
    glance(film, seconds=-1.0)
    assert film.senses.listener.heard == film.senses.reader.read_at == []


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 64, 100])
def test_everything_comes_up_once_far_apart_first(count):
    order = list(spread(count))
    assert sorted(order) == list(range(count))
    assert order[:1] == [count // 2][: len(order)]
