"""What every test shares: closed doors to the outside, and a cache of its own."""

from __future__ import annotations

import ipaddress
import socket
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def loopback_only(monkeypatch):
    """Refuse every connection that would leave this machine."""
    connect = socket.socket.connect

    def guarded(self, address):
        if self.family in (socket.AF_INET, socket.AF_INET6):
            host = address[0]
            if host != "localhost" and not ipaddress.ip_address(host).is_loopback:
                raise AssertionError(f"a test tried to reach {host}")
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)


@pytest.fixture(autouse=True)
def own_folders(tmp_path_factory, monkeypatch):
    """Keep the user's cache and configuration out of the tests, and the tests out of them."""
    home = tmp_path_factory.mktemp("user")
    monkeypatch.setenv("LONGTAKE_CACHE", str(home / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home)


@pytest.fixture(scope="session")
def model_cache(tmp_path_factory) -> Path:
    """Where built-in models are prepared once for the whole run."""
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="session")
def film_folder(tmp_path_factory) -> Path:
    """Where films are made once for the whole run."""
    return tmp_path_factory.mktemp("films")
