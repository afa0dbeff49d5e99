from __future__ import annotations

import sqlite3
from fractions import Fraction

import numpy as np
import pytest
from films import FILMS, Recipe, x264

from longtake.config import IndexSettings, Settings
from longtake.errors import MediaError
from longtake.index.film import Film
from longtake.index.layers import CHUNK, Glimpses
from longtake.index.source import PIECE, fingerprint, load_video
from longtake.index.store import LayerKey, Store
from longtake.index.tasks import tasks
from longtake.tracing.events import Noted, Stream
from longtake.tracing.sinks import Recorder
from longtake.types import Segment
from longtake.video import decode

LONG = Recipe("long.mp4", x264(fps=Fraction(4), gop=8), count=4 * 200)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "cache")


@pytest.fixture
def footage(store, film_folder):
    return Film(LONG.make(film_folder), store)


def test_fingerprint_is_of_the_content(tmp_path):
    data = np.random.default_rng(0).bytes(5 * PIECE)
    (tmp_path / "a").write_bytes(data)
    (tmp_path / "b").write_bytes(data)
    assert fingerprint(tmp_path / "a") == fingerprint(tmp_path / "b")
    for place in (0, len(data) // 2, len(data) - 1):
        changed = bytearray(data)
        changed[place] ^= 1
        (tmp_path / "b").write_bytes(changed)
        assert fingerprint(tmp_path / "a") != fingerprint(tmp_path / "b")
    (tmp_path / "b").write_bytes(data + b"x")
    assert fingerprint(tmp_path / "a") != fingerprint(tmp_path / "b")


def test_layers_are_computed_once(footage, store, monkeypatch):
    first = footage.pictures.glimpses()
    assert first.shape == (200, 36, 64, 3)

    def refuse(*args, **kwargs):
        raise AssertionError("decoded again")

    monkeypatch.setattr(decode, "VideoReader", refuse)
    again = Film(footage.path, store).pictures.glimpses()
    assert np.array_equal(first, again)


class Counting:
    """A layer that says how often it was asked, and can be told to die."""

    side = 48

    def __init__(self, name, dies_after=None):
        self.key = LayerKey(name, 1)
        self.asked = 0
        self.dies_after = dies_after

    def rows(self, frames):
        if self.dies_after is not None and self.asked >= self.dies_after:
            raise KeyboardInterrupt
        self.asked += len(frames)
        return np.array([[f.time] for f in frames])


def test_an_interrupted_layer_goes_on_where_it_stopped(footage):
    with pytest.raises(KeyboardInterrupt):
        footage.pictures.rows(Counting("c", dies_after=2 * CHUNK))
    again = Counting("c")
    rows = footage.pictures.rows(again)
    assert rows[:, 0].tolist() == footage.times.tolist()
    assert again.asked == len(footage.times) - 2 * CHUNK


def test_what_is_damaged_is_built_again(footage, store):
    rows, duration = footage.pictures.glimpses().copy(), footage.duration
    for file in (footage.folder.path / "layers").glob("*/*.npy"):
        file.write_bytes(file.read_bytes()[:-1])
    again = Film(footage.path, store)
    assert not again.pictures.has(Glimpses())
    assert np.array_equal(again.pictures.glimpses(), rows)
    for file in (footage.folder.path / "layers").glob("*/meta.json"):
        file.write_text('{"arrays": [], "notes": {}}' if "packets" in file.parent.name else "{")
    again = Film(footage.path, store)
    assert again.duration == duration
    assert np.array_equal(again.pictures.glimpses(), rows)
    assert load_video(footage.folder, footage.path, None) is not None


def test_a_damaged_part_is_built_again(footage):
    with pytest.raises(KeyboardInterrupt):
        footage.pictures.rows(Counting("c", dies_after=2 * CHUNK))
    (part, *_) = (footage.folder.path / "parts").glob("*/*.npy")
    part.write_bytes(part.read_bytes()[:-1])
    again = Counting("c")
    assert footage.pictures.rows(again)[:, 0].tolist() == footage.times.tolist()
    assert again.asked == len(footage.times) - CHUNK


def test_missing_layers_share_one_pass(footage, monkeypatch):
    passes = []
    frames = type(footage.video).frames
    monkeypatch.setattr(
        type(footage.video),
        "frames",
        lambda self, times, **o: passes.append(len(times)) or frames(self, times, **o),
    )
    a, b = Counting("a"), Counting("b")
    footage.pictures.rows(a)
    footage.pictures.build([a, b, Glimpses()])
    assert passes == [200, 200]
    assert (a.asked, b.asked) == (200, 200)


def test_progress_reaches_the_end(footage):
    shares = []
    footage.pictures.rows(Counting("p"), shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_another_grid_is_another_layer(footage, store):
    footage.pictures.glimpses()
    coarse = Film(footage.path, store, Settings(index=IndexSettings(fps=0.1)))
    assert len(coarse.pictures.glimpses()) == 20


def test_subtitles_beside_the_film_are_read_and_followed_when_they_change(
    store, tmp_path, film_folder
):
    film = tmp_path / "film.mp4"
    film.write_bytes(FILMS[0].make(film_folder).read_bytes())
    assert Film(film, store).words.subtitles.lines() == []
    sidecar = tmp_path / "film.srt"
    sidecar.write_text("1\n00:00:01,000 --> 00:00:02,000\nFirst\n")
    assert [line.text for line in Film(film, store).words.subtitles.lines()] == ["First"]
    sidecar.write_text("1\n00:00:01,000 --> 00:00:02,000\nSecond\n")
    assert [line.text for line in Film(film, store).words.subtitles.lines()] == ["Second"]
    assert Film(film, store).words.subtitles.lines(Segment(5, 6)) == []


@pytest.mark.parametrize(
    "data", [b"", b"\0" * 50, b"\x89PNG\r\n\x1a\n", b"no times here\n", b"x" * 20_000_000]
)
def test_a_file_beside_the_film_that_is_no_subtitles_is_left_out_with_a_word(
    store, tmp_path, film_folder, data
):
    path = tmp_path / "film.mp4"
    path.write_bytes(FILMS[0].make(film_folder).read_bytes())
    path.with_suffix(".srt").write_bytes(data)
    subtitles = Film(path, store).words.subtitles
    recorder = Recorder()
    with Stream(recorder).active():
        assert subtitles.lines() == []
        assert subtitles.key() is None
    notes = [event for event in recorder.trace.events if isinstance(event, Noted)]
    assert [event.label for event in notes] == ["subtitles_left_out"]


def test_subtitles_that_were_asked_for_must_be_usable(store, tmp_path, film_folder):
    given = tmp_path / "given.srt"
    given.write_bytes(b"no times here\n")
    film = Film(FILMS[0].make(film_folder), store, subtitles=given)
    with pytest.raises(MediaError, match="contains no subtitles"):
        film.words.subtitles.lines()


def test_meanings_are_known_where_they_cannot_be_kept(footage, monkeypatch):
    footage.meanings(["a red house"])
    file = footage.source.text._path

    def read_only(path, **options):
        return connect(f"file:{path}?mode=ro", uri=True, **options)

    connect = sqlite3.connect
    monkeypatch.setattr("longtake.index.text.sqlite3.connect", read_only)
    recorder = Recorder()
    with Stream(recorder).active():
        assert footage.meanings(["a red house", "a boat"]).shape == (2, 384)
    (noted,) = [event for event in recorder.trace.events if event.kind == "noted"]
    assert (noted.label, noted.data["file"]) == ("not_kept", str(file))


def test_the_meaning_of_a_text_is_computed_once(footage, monkeypatch):
    texts = ["a red house", "what is this?", "a red house"]
    first = footage.meanings(texts)
    assert first.shape == (3, 384)
    assert np.array_equal(first[0], first[2])

    def refuse(texts):
        raise AssertionError(f"encoded {texts}")

    monkeypatch.setattr(footage.senses.sentences, "texts", refuse)
    assert np.array_equal(footage.meanings(texts), first)
    with pytest.raises(AssertionError, match="a boat"):
        footage.meanings(["a red house", "a boat"])


def test_the_network_for_pictures_leaves_memory_to_what_comes_next(
    tmp_path, film_folder, lend_models
):
    film = Film(FILMS[0].make(film_folder), Store(lend_models(tmp_path / "cache")))
    _, frames, _, onscreen = tasks(film)
    assert not frames.done()
    frames.build(lambda share: None)
    assert frames.done()
    onscreen.build(lambda share: None)
    assert film.senses.tagger._session._loaded is None
    # it is loaded again when it is used again
    assert film.senses.tagger.outputs(film.at([0.0])).shape[0] == 1
