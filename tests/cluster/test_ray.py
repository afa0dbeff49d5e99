"""Ray: the same results as one process, whatever is lost on the way."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from processes import Captions
from support.working import Act, make_film

from longtake._util.process_pool import Failure, run_groups
from longtake.cluster.backends import BackendAddress
from longtake.cluster.indexing import FilmTask, index_films
from longtake.config import CacheSettings, IndexSettings, Settings
from longtake.errors import ConfigError
from longtake.index.tasks import tasks
from longtake.runner.films import open_film
from longtake.types import Question
from longtake_bench.benchmarks import BenchmarkQuestion
from longtake_bench.runner import Solver, answer_one, run_all

FPS = 12.0
"""Two chunks a film."""


def settings(folder):
    return Settings(cache=CacheSettings(folder=str(folder)), index=IndexSettings(fps=FPS))


def stored(folder):
    layers = folder.rglob("layers/*/*")
    return {path.relative_to(folder): path.read_bytes() for path in layers if path.is_file()}


@pytest.fixture(scope="module")
def paths(film_folder):
    return [make_film(film_folder / f"ray_{number}.mp4", 6 + number) for number in range(3)]


@pytest.fixture(scope="module")
def alone(tmp_path_factory, model_cache, paths):
    """What one process stores."""
    folder = tmp_path_factory.mktemp("alone")
    (model_cache / "models").mkdir(exist_ok=True)
    (folder / "models").symlink_to(model_cache / "models")
    for path in paths:
        for task in tasks(open_film(path, settings(folder))):
            task.build(lambda share: None)
    return folder


@pytest.fixture
def store(alone, tmp_path):
    """An empty store that has the prepared models."""
    folder = tmp_path / "store"
    folder.mkdir()
    (folder / "models").symlink_to(alone / "models")
    return folder


def index(folder, paths, after=lambda film: None):
    films = [FilmTask(path, settings=settings(folder)) for path in paths]
    with BackendAddress("ray").open() as engine:
        for film in index_films(engine, films, print, lambda share: None):
            assert film.failure is None, film.failure
            after(film)


def test_layers_from_two_nodes(two, alone, store, paths):
    index(store, paths)
    assert stored(store) == stored(alone)


def test_rows_are_those_of_one_process(two):
    asked = []
    for video in ("v0", "v1", "v2"):
        for number in range(2):
            question = Question(f"Which {number}?", ("one", "two"))
            asked.append(BenchmarkQuestion(f"{video}_{number}", video, question))
    solver = Solver("processes:FirstOption")
    with BackendAddress("ray").open() as engine:
        rows = {row.id: row for row in run_all(solver, Captions(), asked, workers=engine)}
    for one in asked:
        expected = answer_one(solver, Captions(), one)
        assert replace(rows[one.id], usage=None) == replace(expected, usage=None)


def test_an_item_that_crashes_its_worker_is_reported_once(two, capfd):
    with BackendAddress("ray").open() as engine:
        values = dict(run_groups(engine, Act(), [["crash", "after"], ["a", "b"], ["refuse"]]))
    assert values.pop("crash").kind == "crashed"
    assert values.pop("refuse") == Failure("refused", "no such thing", 2)
    assert all(values[item] == item for item in ("after", "a", "b"))
    # Ray's own words about it would mix with ours
    assert capfd.readouterr().out == ""


def test_the_driver_is_killed_and_started_again(two, alone, store, paths):
    command = [sys.executable, "-m", "longtake", "index", *map(str, paths), "--on", "ray"]
    command += ["--set", f"cache.folder={store}", "--set", f"index.fps={FPS}"]
    driver = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 120
    while not list(store.rglob("parts/*/*.npy")) and time.monotonic() < until:
        time.sleep(0.02)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    assert len(stored(store)) < len(stored(alone))
    again = subprocess.run(command, capture_output=True, text=True, timeout=150)
    assert again.returncode == 0, again.stderr
    assert stored(store) == stored(alone)


def test_a_wrong_token_is_refused(two, monkeypatch):
    program = (
        "from longtake.cluster.backends import BackendAddress\n"
        "from longtake.errors import ConfigError\n"
        "try:\n"
        "    BackendAddress('ray').open()\n"
        "except ConfigError as error:\n"
        "    print('refused', error)\n"
    )
    wrong = {**os.environ, "RAY_AUTH_TOKEN": "0" * 64}
    ended = subprocess.run(
        [sys.executable, "-c", program], env=wrong, capture_output=True, text=True, timeout=120
    )
    assert ended.stdout.startswith("refused"), ended.stderr[-2000:]


def test_a_node_is_killed_in_the_middle(nodes, alone, store, paths, tmp_path):
    """Four nodes, of which two are lost: one while others count, one while films are indexed."""
    log = tmp_path / "log"
    groups = [[f"{name}{number}" for number in range(8)] for name in "abcd"]
    with nodes(4) as (cluster, members):
        with BackendAddress("ray").open() as engine:
            for item, value in run_groups(engine, Act(str(log), pause=0.2), groups):
                assert value == item
                if item.endswith("2") and len(members) == 4:
                    cluster.remove_node(members.pop(), allow_graceful=False)

        def lose(film):
            if len(members) == 3:
                cluster.remove_node(members.pop(), allow_graceful=False)

        index(store, paths, lose)
    assert stored(store) == stored(alone)


def test_an_address_without_a_cluster_is_an_error():
    with pytest.raises(ConfigError, match="cannot connect to Ray"):
        BackendAddress("ray", "ray://127.0.0.1:1").open()
