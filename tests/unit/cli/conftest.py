"""Scripted models and one shared index, for the tests that ask for them by name."""

from __future__ import annotations

import pytest
from films import FILMS

from longtake import registry


@pytest.fixture
def test_models(monkeypatch):
    monkeypatch.setitem(registry.backends._targets, "test", "support.models:TestBackend")


@pytest.fixture(scope="module")
def module_cache(tmp_path_factory, lend_models):
    return lend_models(tmp_path_factory.mktemp("asking"))


@pytest.fixture
def shared_cache(module_cache, monkeypatch):
    """One index for all tests, since none of them is about indexing."""
    # but nothing that was answered before: a reply from the cache is no call
    for file in module_cache.rglob("replies.sqlite*"):
        # SQLite removes some itself, perhaps in a thread that a time limit left behind
        file.unlink(missing_ok=True)
    monkeypatch.setenv("LONGTAKE_CACHE", str(module_cache))


@pytest.fixture
def film(film_folder):
    return str(FILMS[0].make(film_folder))
