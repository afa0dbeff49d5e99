"""Connections that strangers open: their number, and the time they may take for headers."""

from __future__ import annotations

import logging
import socket
from contextlib import ExitStack

import httpx
import pytest
from starlette.responses import PlainTextResponse

from longtake.server import app
from longtake.server.app import ConnectionLimits, serving
from longtake.server.options import log_as_json

HALF = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"


def connect(url, stack):
    parts = httpx.URL(url)
    return stack.enter_context(socket.create_connection((parts.host, parts.port), timeout=30))


def read_all(connection):
    return b"".join(iter(lambda: connection.recv(1000), b""))


def test_a_full_server_refuses_and_recovers(monkeypatch):
    monkeypatch.setattr(app, "connection_limits", lambda: ConnectionLimits(4, 128))
    with ExitStack() as stack:
        url = stack.enter_context(serving(PlainTextResponse("here")))
        slow = [connect(url, stack) for _ in range(4)]
        for connection in slow:
            connection.sendall(HALF)
        for _ in range(20):
            refused = connect(url, stack)
            assert read_all(refused).startswith(b"HTTP/1.1 503")
        # what was open before is still served
        slow[0].sendall(b"Connection: close\r\n\r\n")
        assert read_all(slow[0]).endswith(b"here")
        for connection in slow:
            connection.shutdown(socket.SHUT_RDWR)
        transport = httpx.HTTPTransport(retries=3)
        with httpx.Client(transport=transport) as client:
            while (reply := client.get(url)).status_code == 503:
                pass
        assert reply.text == "here"


@pytest.mark.parametrize("sent", [b"", HALF])
def test_a_connection_without_headers_is_closed(sent, monkeypatch):
    monkeypatch.setattr(app, "HEADER_SECONDS", 0.001)
    with ExitStack() as stack:
        url = stack.enter_context(serving(PlainTextResponse("here")))
        connection = connect(url, stack)
        connection.sendall(sent)
        assert read_all(connection) == b""


def test_bodies_do_not_wait_until_headers_are_acknowledged():
    with app._bind("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        connection, _ = listener.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_connections_leave_descriptors_for_films(monkeypatch):
    resource = pytest.importorskip("resource")
    for descriptors in (256, 1024, 1_000_000):
        monkeypatch.setattr(resource, "getrlimit", lambda _, n=descriptors: (n, n))
        limits = app.connection_limits()
        assert 0 < 2 * limits.open + limits.waiting < descriptors


def test_errors_of_every_library_are_logged_as_json(capsys):
    with log_as_json():
        logging.getLogger("asyncio").error("socket.accept() out of system resource")
    assert '"message": "socket.accept() out of system resource"' in capsys.readouterr().err
