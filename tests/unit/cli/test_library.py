"""``longtake library``, ``chapters`` and ``summary`` as a user types them."""

from __future__ import annotations

import json

import pytest
from support.models import TestBackend  # noqa: F401 - named by its address below
from support.working import Inline
from unit.library.shelf import film

from longtake import registry
from longtake.cluster.backends import BackendAddress
from longtake.errors import ConfigError

QUIET = ("--set", "perception.reader=false", "--set", "perception.listener=none")


@pytest.fixture
def folder(tmp_path, film_folder):
    film(tmp_path / "films", "one.mp4", film_folder, "a rare walrus sings", "it swims away")
    film(tmp_path / "films", "two.mp4", film_folder, "the price goes up", "again", frames=50)
    return tmp_path / "films"


def test_a_library_from_adding_to_removing(run, folder, monkeypatch):
    monkeypatch.setitem(registry.backends._targets, "test", "support.models:TestBackend")
    code, out, _ = run("library", "add", folder, "--tag", "sea", "--json", *QUIET)
    assert code == 0
    assert [each["state"] for each in json.loads(out)["films"]] == ["new", "new"]
    code, out, err = run("library", "list", "--in", "sea")
    assert "two" in out
    assert "2 films" in err
    code, out, err = run("library", "search", "rare walrus", *QUIET)
    assert out.splitlines()[1].startswith("  * [00:00:00]")
    assert "2 films searched" in err
    code, out, _ = run("library", "search", "rare walrus", "--json", "--in", "two", *QUIET)
    assert [each["name"] for each in json.loads(out)["films"]] == ["two"]
    code, out, _ = run("library", "status", "--json", *QUIET)
    state = json.loads(out)
    assert (state["films"], state["incomplete"]) == (2, 0)
    code, out, _ = run(
        "library", "ask", "What sings?", "--method", "lookup", "--model", "test/mute", "--json",
        *QUIET,
    )  # fmt: skip
    assert code == 3
    assert json.loads(out)["searched"] == 2
    assert run("library", "remove", folder / "one.mp4", *QUIET)[0] == 0
    code, out, err = run("library", "doctor", *QUIET)
    assert (code, err) == (0, "nothing is wrong\n")
    assert run("library", "doctor", "--rebuild", *QUIET)[0] == 0
    code, _, err = run("library", "remove", "unknown", *QUIET)
    assert code == 2
    assert "no such film" in err


@pytest.mark.parametrize(("model", "method"), [("senses", "lookup"), ("test/mute", "auto")])
def test_a_library_is_asked_with_the_method_of_ask(run, folder, monkeypatch, model, method):
    monkeypatch.setitem(registry.backends._targets, "test", "support.models:TestBackend")
    named = []

    def remember(library, session, question, method, **_):
        named.append(method)
        raise ConfigError("enough")

    monkeypatch.setattr("longtake.cli.library.ask_library", remember)
    run("library", "ask", "What sings?", "--model", model, *QUIET)
    assert named == [method]


def test_an_engine_indexes_the_films_first(run, folder, monkeypatch):
    monkeypatch.setattr(BackendAddress, "open", lambda self, workers: Inline())
    broken = folder / "broken.mp4"
    broken.write_bytes(b"not a film")
    code, out, err = run("library", "add", folder, "--on", "processes", "--json", *QUIET)
    told = json.loads(out)
    assert code == 2
    assert [each["state"] for each in told["films"]] == ["new", "new"]
    assert [each["path"] for each in told["failed"]] == [str(broken)]
    assert len(told["indexed"]) == err.count("indexed in") == 2


def test_chapters_and_summary(run, folder, tmp_path):
    code, out, err = run("summary", folder / "one.mp4", "--chapters", *QUIET)
    assert code == 0
    assert out.startswith("00:00:00  a rare walrus sings")
    assert "quoted from the film" in err
    target = tmp_path / "chapters.vtt"
    export = ("--format", "webvtt", "--out", target)
    assert run("summary", folder / "one.mp4", *export, *QUIET)[0] == 0
    assert target.read_text().startswith("WEBVTT")
    code, _, err = run("summary", folder / "one.mp4", "--out", folder / "one.mp4", *QUIET)
    assert code == 2
    assert "overwrite" in err
    code, out, _ = run("summary", folder / "one.mp4", "--json", *QUIET)
    assert json.loads(out)["by"] == "film"
