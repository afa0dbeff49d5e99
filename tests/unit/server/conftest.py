"""A server in this process, with short films and a model that fits every form."""

from __future__ import annotations

import shutil

import pytest
from films import Recipe
from starlette.testclient import TestClient

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
def client(options, keys):
    """A program with the token."""
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with TestClient(create_app(options, keys), base_url=HOME, headers=headers) as client:
        yield client


@pytest.fixture
def film(client):
    """The id of the plain film."""
    return client.get("/api/v1/films").json()[0]["id"]
