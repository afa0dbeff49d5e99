"""The library over HTTP: search, questions and watching, for films of this server alone."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from support.streams import read_stream
from unit.library.shelf import SETTINGS, add
from unit.library.shelf import film as make_film

from longtake.config import AnswerSettings
from longtake.index.layers import ignore
from longtake.index.tasks import TASKS
from longtake.library import Adder, Library
from longtake.perception.loader import PerceptionModels
from longtake.server.library import Watcher
from longtake_bench.lab.footage import LabEncoder

SAID = "1\n00:00:01,000 --> 00:00:02,000\na walrus swims\n"


@pytest.fixture
def options(options):
    """Without the slow senses, and without looking at the whole film to verify an answer."""
    settings = replace(SETTINGS, answers=AnswerSettings(verify=False))
    return replace(options, settings=settings)


@pytest.fixture
def state(client):
    return client.app._app.state.longtake


@pytest.fixture
def library(state, options, tmp_path):
    """A library of the server's own, with an encoder that needs no model."""
    encoder = LabEncoder()
    perception = PerceptionModels(SETTINGS.perception, tmp_path / "cache", images=encoder)
    library = Library(
        tmp_path / "library",
        SETTINGS,
        perception=perception,
        sentences=encoder,
        opener=state.library.open,
    )
    state.library.__dict__["library"] = library
    (served,) = options.films
    served.joinpath("plain.srt").write_text(SAID)
    return library


@pytest.fixture
def secret(library, options, tmp_path, film_folder):
    """A film of the library that this server must not show."""
    path = make_film(tmp_path / "elsewhere", "s.mp4", film_folder, "a walrus", "x", frames=50)
    add(library, options.films[0], path, parts=("subtitles",))
    return path


@pytest.mark.usefixtures("secret")
def test_only_films_below_the_folders_are_found(client, film):
    assert [each["id"] for each in client.get("/api/v1/library/films").json()] == [film]
    found = client.get("/api/v1/library/search", params={"q": "walrus"}).json()
    assert found["searched"] == 1
    (hits,) = found["films"]
    assert (hits["film"]["id"], hits["moments"][0]["time"]) == (film, 1.0)
    assert hits["moments"][0]["sure"]
    other = client.get("/api/v1/library/search", params={"q": "walrus", "where": "elsewhere"})
    assert other.json()["searched"] == 0


@pytest.mark.usefixtures("secret")
def test_all_films_of_the_server_are_asked_and_no_other(client, film):
    ask = {"question": "Where is the walrus?", "method": "uniform"}
    started = client.post("/api/v1/library/ask", json=ask)
    assert started.status_code == 202
    run = started.json()["run"]["id"]
    events = read_stream(client, run)
    assert events[-1][2]["state"] == "done", events[-1][2]["error"]
    record = client.get(f"/api/v1/runs/{run}").json()["run"]
    assert record["scope"] == {"searched": 1, "candidates": 1, "looked_at": 1, "every": False}
    assert len(record["sources"]) == len(record["answer"]["evidence"])
    assert {source["film"] for source in record["sources"]} <= {film}
    listed = client.get("/api/v1/runs", params={"kind": "library"}).json()["runs"]
    assert [each["run"]["id"] for each in listed] == [run]
    # its citations name and link their films
    markdown = client.get(f"/api/v1/runs/{run}/export.md").text
    assert "1 of 1 films looked at" in markdown
    assert "[plain @ 00:00" in markdown
    assert f"/film/{film}?t=" in markdown
    page = client.get(f"/api/v1/runs/{run}/export.html").text
    assert f'/film/{film}?t=0.00"><strong>plain @ 00:00' in page
    assert page.count("<img") == len(record["sources"])


@pytest.mark.parametrize("wrong", [{"method": "os:system"}])
@pytest.mark.usefixtures("library")
def test_a_question_that_cannot_run_is_refused_at_once(client, wrong):
    refused = client.post("/api/v1/library/ask", json={"question": "Why?", **wrong})
    assert refused.status_code == 422
    assert client.get("/api/v1/runs").json()["runs"] == []


def test_an_empty_library_says_so(client, library):
    run = client.post("/api/v1/library/ask", json={"question": "Why?"}).json()["run"]["id"]
    assert "watch the folders first" in read_stream(client, run)[-1][2]["error"]


def wait_until(client, holds):
    until = time.monotonic() + 60
    while True:
        state = client.get("/api/v1/library").json()
        if holds(state):
            return state
        assert time.monotonic() < until, state
        time.sleep(0.02)


def test_watched_folders_are_added_as_films_appear(client, state, library, options, film_folder):
    object.__setattr__(state, "watcher", Watcher(lambda: library, state.catalog, every=0.02))
    (served,) = options.films
    # a link out of the folders is not followed
    outside = make_film(options.data / "elsewhere", "o.mp4", film_folder, frames=45)
    served.joinpath("link.mp4").symlink_to(outside)
    before = client.get("/api/v1/library").json()
    assert (before["films"], before["listed"], before["watching"]) == (0, 1, False)
    assert before["folders"] == ["films", "uploads"]
    client.post("/api/v1/library/watch", json={"on": True})
    now = wait_until(client, lambda state: state["films"] == 1 and not state["busy"])
    assert now["watching"]
    make_film(served, "new.mp4", film_folder, "a heron", "x", frames=50)
    wait_until(client, lambda state: state["films"] == 2 and not state["busy"])
    assert len(library.entries()) == 2
    stopped = client.post("/api/v1/library/watch", json={"on": False}).json()
    assert not stopped["watching"]
    assert stopped["problem"] == ""


def test_a_film_is_ready_once_all_of_it_is_indexed(client, library, options):
    def counts():
        state = client.get("/api/v1/library").json()
        return state["films"], state["ready"], state["listed"]

    during = {}

    def on_job(progress):
        during[progress.part] = counts()
        return ignore

    Adder(library, on_job=on_job).add(options.films)
    # found by its subtitles or its pictures, while its words are still being looked for
    assert during == dict.fromkeys(TASKS, (1, 0, 1))
    assert counts() == (1, 1, 1)
    # with other settings, it has to be indexed again
    library.settings = replace(SETTINGS, index=replace(SETTINGS.index, fps=2.0))
    assert counts() == (1, 0, 1)


def test_what_ends_the_watching_is_shown(client, state, library, monkeypatch):
    monkeypatch.setattr(library.catalogue, "files", lambda: 1 / 0)
    client.post("/api/v1/library/watch", json={"on": True})
    ended = wait_until(client, lambda state: not state["watching"])
    assert "ZeroDivisionError" in ended["problem"]
