"""The files of the page: small, sent once, and all named in advance."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from support.streams import read_stream

from longtake.config import load
from longtake.errors import ModelError
from longtake.llm.catalog import recommended
from longtake.server import jobs
from longtake.server.routes.page import PAGE


def files():
    """Addresses of the page's scripts and styles."""
    found = [path for ending in ("js", "css") for path in PAGE.rglob(f"*.{ending}")]
    return [f"/assets/{path.relative_to(PAGE).as_posix()}" for path in found]


def test_the_page_is_light(client):
    weight = 0
    for address in ["/", *files()]:
        answer = client.get(address, headers={"Accept-Encoding": "gzip"})
        assert answer.headers["content-encoding"] == "gzip"
        weight += int(answer.headers["content-length"])
    assert weight < 56_000


def test_a_file_is_sent_again_only_if_it_changed(client):
    first = client.get("/assets/style.css", headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in first.headers
    # without indentation
    assert first.content.split() == (PAGE / "style.css").read_bytes().split()
    again = client.get("/assets/style.css", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_what_the_list_of_films_needs_is_asked_for_at_once(client):
    # imports of imports would cost a round trip each
    text = client.get("/").text
    named = re.findall(r'(?:modulepreload" href|script type="module" src)="([^"]+)"', text)
    assert sorted(named) == sorted(f"/assets/{path}" for path in imported(PAGE / "js" / "app.js"))


def imported(script):
    """A script and everything that it imports before it begins."""
    found = {script.relative_to(PAGE).as_posix()}
    for name in re.findall(r'^(?:import|export)[^;(]* from "([^"]+)";', script.read_text(), re.M):
        found |= imported((script.parent / name).resolve())
    return found


def test_the_api_describes_itself(client):
    described = client.get("/api/v1/openapi.json").json()["paths"]
    events = described["/api/v1/runs/{run}/events"]["get"]
    assert list(events["responses"]["200"]["content"]) == ["text/event-stream"]
    assert {"/api/v1/films", "/api/v1/films/{film}/frame", "/api/v1/library/ask"} <= set(described)


@pytest.mark.parametrize(
    ("models", "usual", "method"),
    [
        ((), "", "lookup"),
        (("test/obliging",), "", "auto"),
        ((), "test/obliging", "auto"),
        (("llm=test/obliging",), "", "videoagent"),
    ],
)
def test_the_page_asks_with_the_method_of_the_command_line(options, connect, models, usual, method):
    settings = load(assignments=[f"answers.model={usual}"])
    served = replace(options, models=models, settings=settings)
    about = connect(served).get("/api/v1/about")
    assert about.json()["default_method"] == method
    # whoever named models chose them; else one that sees is offered
    assert (about.json()["vision"] is not None) is (method == "lookup")


def test_a_model_that_sees_is_downloaded_with_progress(client, monkeypatch):
    asked = []

    def pull_model(name, settings, *, begin):
        asked.append(name)
        begin("model.gguf")(40, 100)

    monkeypatch.setattr(jobs, "pull_model", pull_model)
    run = client.post("/api/v1/models/vision", json={}).json()["run"]["id"]
    events = read_stream(client, run)
    assert events[-1][2]["state"] == "done"
    assert asked == [recommended("vision")]
    assert client.get(f"/api/v1/runs/{run}/export.html").status_code == 404


def test_a_download_that_fails_says_why(client, monkeypatch):
    def pull_model(name, settings, *, begin):
        raise ModelError(name, "unavailable", "the hub cannot be reached")

    monkeypatch.setattr(jobs, "pull_model", pull_model)
    run = client.post("/api/v1/models/vision", json={}).json()["run"]["id"]
    ended = read_stream(client, run)[-1][2]
    assert ended["state"] == "failed"
    assert "the hub cannot be reached" in ended["error"]
