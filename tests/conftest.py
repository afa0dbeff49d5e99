"""What holds for every test."""

from __future__ import annotations

import ipaddress
import socket
from typing import Any

import pytest


class NetworkForbidden(RuntimeError):
    """A test tried to reach something outside this machine."""


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sockets are closed except to loopback."""
    connect, connect_ex, getaddrinfo = socket.socket.connect, socket.socket.connect_ex, socket.getaddrinfo

    def check(host: Any) -> None:
        name = host.decode() if isinstance(host, bytes) else host
        if name in (None, "", "localhost"):
            return
        try:
            local = ipaddress.ip_address(str(name).partition("%")[0]).is_loopback
        except ValueError:
            local = False
        if not local:
            raise NetworkForbidden(f"a test tried to reach {name}")

    def guarded(original: Any) -> Any:
        def act(self: socket.socket, address: Any) -> Any:
            if self.family in (socket.AF_INET, socket.AF_INET6):
                check(address[0])
            return original(self, address)

        return act

    def lookup(host: Any, *rest: Any, **more: Any) -> Any:
        check(host)
        return getaddrinfo(host, *rest, **more)

    monkeypatch.setattr(socket.socket, "connect", guarded(connect))
    monkeypatch.setattr(socket.socket, "connect_ex", guarded(connect_ex))
    monkeypatch.setattr(socket, "getaddrinfo", lookup)
