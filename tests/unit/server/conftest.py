"""A server in this process, with short films and a model that fits every form."""

from __future__ import annotations

import shutil
from contextlib import ExitStack

import pytest
from films import Recipe
from starlette.testclient import TestClient
from support.streams import read_stream

from longtake import registry
from longtake.server.app import create_app
from longtake.server.options import ServeOptions
from longtake.server.security import AccessKeys

TOKEN = "t" * 32
HOME = "http://127.0.0.1:8750"
PLAIN = Recipe("plain.mp4", count=40)


@pytest.fixture(scope="module")
def shared_films(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    PLAIN.make(folder)
    return folder


@pytest.fixture
def options(tmp_path, shared_films, monkeypatch):
    monkeypatch.setitem(registry.backends._targets, "test", "support.models:TestBackend")
    films = tmp_path / "films"
    shutil.copytree(shared_films, films)
    return ServeOptions(films=(films,), models=("test/obliging",), folder=tmp_path / "data")


@pytest.fixture
def keys():
    return AccessKeys(TOKEN, 8750)


@pytest.fixture
def connect(keys):
    """Starts a server with these options; a program with its token."""
    with ExitStack() as running:

        def connect(options):
            app, headers = create_app(options, keys), {"Authorization": f"Bearer {TOKEN}"}
            return running.enter_context(TestClient(app, base_url=HOME, headers=headers))

        yield connect


@pytest.fixture
def client(options, connect):
    """A program with the token."""
    return connect(options)


@pytest.fixture
def ask(client, film):
    """Asks the plain film; returns the run's id and, once it has ended, its events."""

    def ask(path="runs", **fields):
        body = {"film": film, "question": "Why?", "method": "uniform", **fields}
        run = client.post(f"/api/v1/{path}", json=body).json()["run"]["id"]
        return run, read_stream(client, run)

    return ask


@pytest.fixture
def film(client):
    """The id of the plain film."""
    return client.get("/api/v1/films").json()[0]["id"]
