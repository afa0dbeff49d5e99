"""A cache on a full or read-only disk: what it holds can still be looked at and searched."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from films import Recipe

from longtake.cli.output import emit_json

FULL = (
    "mount -t tmpfs -o size=16k none $LONGTAKE_CACHE && head -c 16384 /dev/zero > $LONGTAKE_CACHE/x"
)
READ_ONLY = (
    "mount --bind $LONGTAKE_CACHE $LONGTAKE_CACHE && mount -o remount,ro,bind $LONGTAKE_CACHE"
)
FULL_WITH_LAYERS = """
cp -r $LONGTAKE_CACHE /tmp/held-$$ && mount -t tmpfs -o size=200M none $LONGTAKE_CACHE &&
cp -r /tmp/held-$$/. $LONGTAKE_CACHE && rm -r /tmp/held-$$ &&
(head -c 300000000 /dev/zero > $LONGTAKE_CACHE/fill || true) 2>/dev/null
"""


UNREAD = ("--set", "perception.reader=false")


def mounted(mount, *arguments):
    """Carry out a command in a mount name space of its own, with the cache mounted as told."""
    words = " ".join(f"'{word}'" for word in (sys.executable, "-m", "longtake", *arguments))
    line = ["unshare", "-rm", "sh", "-c", f"{{ {mount}\n}}; {words}"]
    return subprocess.run(line, capture_output=True, text=True)


@pytest.fixture(autouse=True, scope="module")
def name_spaces(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mount")
    line = ["unshare", "-rm", "mount", "-t", "tmpfs", "none", str(folder)]
    if not shutil.which("unshare") or subprocess.run(line, capture_output=True).returncode:
        pytest.skip("needs permission to mount in a name space of its own")


@pytest.fixture
def film(tmp_path):
    return Recipe("film.mp4", count=20).make(tmp_path)


@pytest.fixture(autouse=True)
def cache(prepared_models):
    """Slow for the first test: the models of pictures are prepared, once per run."""
    os.makedirs(os.environ["LONGTAKE_CACHE"], exist_ok=True)  # noqa: PTH103 - a name from outside


@pytest.mark.parametrize(
    "mount", [FULL, pytest.param(READ_ONLY, marks=pytest.mark.campaign)], ids=["full", "read-only"]
)
def test_info_of_a_new_film(film, mount):
    done = mounted(mount, "info", str(film), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["frames"] == 20


@pytest.mark.parametrize(
    "mount",
    [pytest.param(FULL_WITH_LAYERS, marks=pytest.mark.campaign), READ_ONLY],
    ids=["full", "read-only"],
)
def test_search_of_a_film_that_was_searched_before(run, film, mount):
    film.with_suffix(".srt").write_text("1\n00:00:00,100 --> 00:00:01,000\nA red kite\n")
    assert run("search", film, "kite", *UNREAD)[0] == 0
    done = mounted(mount, "search", str(film), "kite", "--json", *UNREAD)
    assert done.returncode == 0, done.stderr
    assert "A red kite" in done.stdout


def test_a_new_film_needs_a_cache_that_can_be_written(film):
    done = mounted(READ_ONLY, "search", str(film), "kite")
    assert done.returncode == 1, done.stderr
    assert "Read-only file system; set $LONGTAKE_CACHE or cache.folder" in done.stderr


def test_whatever_writes_to_the_cache_says_how_to_move_it():
    done = mounted(READ_ONLY, "library", "list")
    assert done.returncode == 1, done.stderr
    assert "$LONGTAKE_CACHE or cache.folder moves the cache" in done.stderr


def test_json_shows_characters_that_a_terminal_would_obey(capsysbinary):
    text = "a\u202eb\u2066c\x1b[31md\u200b\x9b\ue000 é 字 \U000e0041"
    emit_json({"text": text})
    out = capsysbinary.readouterr().out.decode()
    assert json.loads(out)["text"] == text
    assert all(character.isprintable() or character == "\n" for character in out)
    assert "é 字" in out
