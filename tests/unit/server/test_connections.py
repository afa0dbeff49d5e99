"""Connections that strangers open: their number, and the time they may take for headers."""

from __future__ import annotations

import logging
import socket
from contextlib import ExitStack, suppress

import httpx
import pytest
from starlette.requests import ClientDisconnect, Request
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


def post(length, header=b""):
    """The headers of a request with a body."""
    return b"POST / HTTP/1.1\r\nHost: x\r\n%bContent-Length: %d\r\n\r\n" % (header, length)


async def read_first(scope, receive, send):
    """Answers once the whole body has arrived."""
    size = 0
    with suppress(ClientDisconnect):
        async for part in Request(scope, receive).stream():
            size += len(part)
    await PlainTextResponse(f"{size} bytes")(scope, receive, send)


def test_a_full_server_refuses_and_recovers(monkeypatch):
    monkeypatch.setattr(app, "connection_limits", lambda: ConnectionLimits(4, 128))
    with ExitStack() as stack:
        url = stack.enter_context(serving(read_first))
        busy = [connect(url, stack) for _ in range(4)]
        for connection in busy:
            connection.sendall(post(5, b"Expect: 100-continue\r\nConnection: close\r\n"))
            # it is being answered
            assert connection.recv(1000).startswith(b"HTTP/1.1 100")
        for _ in range(20):
            assert read_all(connect(url, stack)).startswith(b"HTTP/1.1 503")
        # what was open before is still served
        for connection in busy:
            connection.sendall(b"hello")
            assert read_all(connection).endswith(b"5 bytes")
        assert httpx.get(url).text == "0 bytes"


@pytest.mark.parametrize(
    ("sent", "received"),
    [(b"", b""), (HALF, b""), (post(900_000) + b"a", b"HTTP/1.1 200 OK")],
    ids=["nothing", "half of the headers", "a body that nobody reads"],
)
def test_connections_that_are_not_being_answered_give_way(sent, received, monkeypatch):
    monkeypatch.setattr(app, "connection_limits", lambda: ConnectionLimits(4, 128))
    with ExitStack() as stack:
        url = stack.enter_context(serving(PlainTextResponse("here")))
        slow = [connect(url, stack) for _ in range(4)]
        for connection in slow:
            connection.sendall(sent)
            assert not received or connection.recv(1000).startswith(received)
        assert [httpx.get(url).text for _ in range(8)] == ["here"] * 8


def test_a_body_that_drips_is_closed_and_one_that_flows_is_not(monkeypatch):
    monkeypatch.setattr(app, "BODY_SECONDS", 0.5)
    monkeypatch.setattr(app, "BODY_RATE", 100_000)
    with ExitStack() as stack:
        url = stack.enter_context(serving(read_first))
        dripping, flowing = (connect(url, stack) for _ in range(2))
        dripping.sendall(post(900_000))
        flowing.sendall(post(10**12))
        closed = False
        while not closed:
            flowing.sendall(b"a" * 100_000)
            try:
                dripping.sendall(b"a")
            except ConnectionError:
                closed = True
        # would fail if it were closed too
        for _ in range(10):
            flowing.sendall(b"a" * 100_000)


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
