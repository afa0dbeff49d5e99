"""Films on workers: the same layers as from one process, byte for byte."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import pytest
from films import Recipe, x264
from support.working import Inline, make_film

from longtake._util.process_pool import Processes, WorkerPool
from longtake.cluster import backends, indexing
from longtake.cluster.indexing import ClusterIndexer, IndexTarget, for_workers, split_at_keyframes
from longtake.config import CacheSettings, IndexSettings, Settings
from longtake.index.tasks import tasks
from longtake.perception.loader import PerceptionModels
from longtake.perception.protocols import Heard, UnsupportedSpeech
from longtake.runner.films import open_film
from longtake.types import Line, Segment

SPOKEN = Recipe("cluster_spoken.mp4", x264(fps=Fraction(1)), count=150, sound_from=0.0)
FPS = 12.0
"""Two chunks of the short film."""


def settings(folder, fps=FPS):
    return Settings(cache=CacheSettings(folder=str(folder)), index=IndexSettings(fps=fps))


def stored(folder):
    """Every file of the layers by its path, with its bytes."""
    layers = folder.rglob("layers/*/*")
    return {path.relative_to(folder): path.read_bytes() for path in layers if path.is_file()}


@pytest.fixture(scope="module")
def short(film_folder):
    return make_film(film_folder / "cluster.mp4", 6)


@pytest.fixture(scope="module")
def alone(tmp_path_factory, lend_models, short):
    """What one process stores."""
    folder = lend_models(tmp_path_factory.mktemp("alone"))
    film = open_film(short, settings(folder))
    for task in tasks(film):
        task.build(lambda share: None)
    return folder, film


@pytest.fixture
def store(alone, tmp_path):
    """An empty store that has the prepared models."""
    folder = tmp_path / "store"
    folder.mkdir()
    (folder / "models").symlink_to(alone[0] / "models")
    return folder


def index(folder, *paths, engine, only=()):
    places = [IndexTarget(path, chunks=1, settings=settings(folder)) for path in paths]
    said = []
    with WorkerPool(engine) as pool:
        films = list(ClusterIndexer(pool, said.append, lambda share: None).run(places, only))
    return films, said


def test_layers_are_the_same_byte_for_byte(alone, store, short, monkeypatch):
    """Slow: a film is indexed twice, once with restarts."""
    monkeypatch.setattr(indexing, "SHOTS", 1)
    broken = store / "broken.mp4"
    broken.write_bytes(b"not a film")
    # the worker is restarted at many steps, in the middle of tasks
    engine = Inline(restarts=tuple(range(3, 40, 2)))
    films, _ = index(store, broken, short, engine=engine)
    failed, indexed = films
    assert (failed.path, failed.failure.exit_code) == (broken, 2)
    assert [layer["name"] for layer in indexed.opened.layers] == list(indexing.TASKS)
    assert indexed.failure is None
    folder, one = alone
    assert stored(store) == stored(folder)
    again = open_film(one.path, settings(store))
    assert all(task.done() for task in tasks(again))
    assert again.onscreen() == one.onscreen()
    assert not list(store.rglob("parts/*"))


class Chorus:
    """A listener that hears a line every seven seconds, the same in overlapping stretches."""

    key = "chorus"

    def listen(self, samples, start):
        end = start + len(samples) / 16_000
        begins = [7.0 * number for number in range(30) if start <= 7.0 * number < end]
        lines = [Line(Segment(at, at + 6.0), f"line at {at:g}") for at in begins]
        return Heard(tuple(lines), (UnsupportedSpeech(Segment(start, start + 1), "hum"),))


def test_speech_is_joined_in_the_order_of_the_film(store, tmp_path, film_folder, monkeypatch):
    monkeypatch.setattr(PerceptionModels, "listener", Chorus())
    monkeypatch.setattr(indexing, "TILES", 1)
    path = SPOKEN.make(film_folder)
    one = open_film(path, settings(tmp_path / "one"))
    one.words.recognised.build()
    (film,), _ = index(store, path, engine=Inline(2), only=("speech",))
    assert film.failure is None
    many = open_film(path, settings(store))
    layer = many.words.recognised
    assert not layer.missing()
    assert many.speech() == one.speech()
    for key in (layer.key, layer.unsupported_key):
        assert many.source.text.lines(key) == one.source.text.lines(key)


def test_films_are_split_where_decoding_can_begin(tmp_path, short, film_folder):
    film = open_film(short, settings(tmp_path, fps=30))
    assert split_at_keyframes(film, 1) == [(0,), (1,), (2,)]
    assert split_at_keyframes(film, 2) == [(0, 1), (2,)]
    # one group of pictures: every stretch would be decoded from the start
    path = make_film(film_folder / "cluster_whole.mp4", 6, gop=10_000)
    whole = open_film(path, settings(tmp_path, fps=30))
    assert split_at_keyframes(whole, 1) == [(0,), (1, 2)]


def test_a_store_that_a_worker_cannot_write_is_an_error(tmp_path, short, monkeypatch):
    monkeypatch.setattr("longtake.index.store._problem", lambda root: "Read-only file system")
    (film,), _ = index(tmp_path, short, engine=Inline())
    assert "cannot be written" in film.failure.message


def test_workers_share_the_machine_unless_told_otherwise():
    shared = for_workers(Settings(), 1)
    assert (shared.media.workers, shared.perception.threads) == (1, 1)
    chosen = replace(Settings(), media=replace(Settings().media, workers=3))
    assert for_workers(chosen, 1).media.workers == 3


@pytest.mark.parametrize("engine", [Inline, pytest.param(Processes, marks=pytest.mark.campaign)])
def test_index_on_processes(run, alone, store, short, monkeypatch, engine):
    monkeypatch.setattr(backends, "Processes", engine)
    broken = store / "broken.mp4"
    broken.write_bytes(b"not a film")
    options = ["--on", "processes", "--workers", 2, "--set", f"cache.folder={store}"]
    options += ["--set", f"index.fps={FPS}", "--only", "frames", "--json"]
    code, out, err = run("index", short, broken, short, *options)
    told = json.loads(out)
    assert code == 2
    assert [entry["film"] for entry in told["films"]] == [str(short)]
    assert [entry["film"] for entry in told["failed"]] == [str(broken)]
    assert "indexed in" in err
    assert stored(store) == stored(alone[0])
    code, _, err = run("index", short, "--workers", 2)
    assert code == 2
    assert "--on processes" in err
