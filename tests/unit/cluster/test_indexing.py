"""Films on workers: the same layers as from one process, byte for byte."""

import json
from dataclasses import replace

import pytest
from support.working import Inline, make_film

from longtake._util.process_pool import Processes
from longtake.cluster import backends
from longtake.cluster.indexing import FilmTask, for_workers, index_films
from longtake.config import CacheSettings, IndexSettings, Settings
from longtake.index.tasks import TASKS, tasks
from longtake.runner.films import open_film

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
    films = [FilmTask(path, None, only, settings(folder)) for path in paths]
    shares = []
    with engine:
        return list(index_films(engine, films, print, shares.append)), shares


def test_layers_are_the_same_byte_for_byte(alone, store, short):
    """Slow: a film is indexed twice."""
    broken = store / "broken.mp4"
    broken.write_bytes(b"not a film")
    films, shares = index(store, broken, short, engine=Inline())
    failed, indexed = films
    assert shares == sorted(shares)
    assert (failed.path, failed.failure.exit_code) == (broken, 2)
    assert [layer["name"] for layer in indexed.indexed.layers] == list(TASKS)
    assert indexed.failure is None
    folder, one = alone
    assert stored(store) == stored(folder)
    again = open_film(one.path, settings(store))
    assert all(task.done() for task in tasks(again))
    assert again.onscreen() == one.onscreen()
    assert not list(store.rglob("parts/*"))


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
