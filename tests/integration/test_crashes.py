"""Nothing is lost or corrupted when a process is killed, or when two index the same film."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from fractions import Fraction

import numpy as np
import pytest
from films import Recipe, x264
from support.patience import PATIENCE
from support.serving import interrupts

from longtake.index.film import Film
from longtake.index.store import Store

FILM = Recipe(
    "half_a_minute.mp4",
    x264(fps=Fraction(5), gop=10, options={"preset": "ultrafast"}),
    count=5 * 30,
)


@pytest.fixture(scope="module")
def film(tmp_path_factory):
    folder = tmp_path_factory.mktemp("crash")
    path = FILM.make(folder)
    path.with_suffix(".srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nHello\n")
    return path


def index(film, cache):
    command = [sys.executable, "-m", "longtake", "index", str(film), "--json"]
    with interrupts():
        return subprocess.Popen(
            [*command, "--only", "subtitles", "--only", "frames"],
            env={**os.environ, "LONGTAKE_CACHE": str(cache)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )


def contents(film, cache):
    """The arrays of every finished layer, and the subtitles."""
    footage = Film(film, Store(cache))
    layers = footage.folder.path / "layers"
    arrays = {str(p.relative_to(layers)): np.load(p) for p in sorted(layers.glob("*/*.npy"))}
    return arrays, footage.words.subtitles.lines()


def assert_same(one, two):
    assert one[0].keys() == two[0].keys()
    for name, array in one[0].items():
        assert np.array_equal(array, two[0][name]), name
    assert one[1] == two[1]


@pytest.fixture
def cache(tmp_path, lend_models):
    """A cache with the built-in models, so that kills hit the index and not their preparation."""
    return lend_models(tmp_path / "cache")


@pytest.fixture(scope="module")
def unbroken(film, tmp_path_factory, lend_models):
    cache = lend_models(tmp_path_factory.mktemp("unbroken"))
    began = time.monotonic()
    out, err = index(film, cache).communicate(timeout=PATIENCE)
    took = time.monotonic() - began
    assert json.loads(out)["films"], err
    return contents(film, cache), took


@pytest.mark.parametrize("kills", [1, pytest.param(5, marks=pytest.mark.campaign)])
def test_index_killed_at_random_moments(film, unbroken, cache, kills):
    """Each kill costs the start of a command; ``make chaos`` kills for an hour."""
    rng = random.Random(11)
    whole, took = unbroken
    killed = 0
    for _ in range(6 * kills):
        process = index(film, cache)
        began = time.monotonic()
        try:
            process.communicate(timeout=took * rng.uniform(0.2, 1.0))
            # it finished before it could be killed: start over, at the speed of now
            took = time.monotonic() - began
            Store(cache).clear(Film(film, Store(cache)).fingerprint)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            killed += 1
        if killed == kills:
            break
    assert killed == kills
    out, err = index(film, cache).communicate(timeout=PATIENCE)
    assert json.loads(out)["films"], err
    assert_same(contents(film, cache), whole)
    folder = Film(film, Store(cache)).folder.path
    assert not list(folder.glob("layers/.*"))
    assert not list(folder.glob("parts/*"))


@pytest.mark.campaign
def test_two_indexers_at_once_make_one_set_of_layers(film, unbroken, cache):
    pair = [index(film, cache), index(film, cache)]
    for process in pair:
        out, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, err
        assert json.loads(out)["films"]
    assert_same(contents(film, cache), unbroken[0])


@pytest.mark.processes
def test_interrupt_keeps_what_was_finished(film, tmp_path):
    cache = tmp_path / "cache"
    process = index(film, cache)
    # an interrupt while Python itself starts is not ours to handle
    while not any(cache.glob("films/*")) and process.poll() is None:
        time.sleep(0.001)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode in (0, 130)
    # Python itself reports an interrupt that comes while it destroys an object, and goes on
    assert b"Traceback" not in err or b"Exception ignored in" in err
