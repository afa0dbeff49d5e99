"""Connections go to declared hosts only, once the guard is engaged."""

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from support.listening import listening

from longtake.models import destinations
from longtake.models.destinations import DestinationRefused, Speaker, normal, speaking

ELSEWHERE = "203.0.113.7"
"""An address of TEST-NET-3, which nobody has."""


def connect(host: object, event: str = "socket.connect", family: int = socket.AF_INET) -> None:
    """Announce a connection to the audit hooks, as Python's sockets do before they connect."""
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        sys.audit(event, sock, (host, 443) if family != socket.AF_UNIX else host)


def look_up(host: object) -> None:
    sys.audit("socket.getaddrinfo", host, 443, 0, 0, 0)


@contextmanager
def resolving(monkeypatch: pytest.MonkeyPatch, **addresses: str) -> Iterator[None]:
    """Stand in for DNS; nothing is asked."""
    known = {name.replace("_", "."): address for name, address in addresses.items()}

    def getaddrinfo(host: str, port: int, *_: Any) -> list[Any]:
        look_up(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (known[host], port))]

    with monkeypatch.context() as patched:
        patched.setattr(socket, "getaddrinfo", getaddrinfo)
        yield


def test_nothing_is_restricted_before_the_guard_is_engaged() -> None:
    connect(ELSEWHERE)
    destinations.engage("a test")
    with pytest.raises(DestinationRefused, match=r"203\.0\.113\.7.*a test"):
        connect(ELSEWHERE)
    destinations.release()
    connect(ELSEWHERE)


@pytest.mark.parametrize("event", ["socket.connect", "socket.sendto", "socket.sendmsg"])
def test_other_addresses_are_refused(event: str) -> None:
    destinations.engage("a test")
    with pytest.raises(DestinationRefused):
        connect(ELSEWHERE, event)
    with pytest.raises(DestinationRefused):
        connect("2001:db8::1", event, socket.AF_INET6)


def test_this_machine_is_always_allowed() -> None:
    destinations.engage("a test")
    for host in ("127.0.0.1", "127.8.9.1", "localhost"):
        connect(host)
        look_up(host)
    connect("::1", family=socket.AF_INET6)
    connect("::ffff:127.0.0.1", family=socket.AF_INET6)
    connect("/run/some.sock", family=socket.AF_UNIX)
    look_up(socket.gethostname())
    look_up(None)
    look_up(b"localhost")


def test_names_that_nobody_declared_are_not_looked_up() -> None:
    destinations.engage("a test")
    for event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"):
        with pytest.raises(DestinationRefused, match=r"secret\.example"):
            sys.audit(event, "secret.example", 443, 0, 0, 0)


def test_a_declared_host_is_reached_by_the_addresses_it_resolves_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with resolving(monkeypatch, api_example="192.0.2.1", evil_example=ELSEWHERE):
        destinations.engage("a test")
        destinations.declare("API.example.:443", "mine")
        assert socket.getaddrinfo("api.example", 443)
        connect("192.0.2.1")
        with pytest.raises(DestinationRefused, match=r"declared is api\.example"):
            connect("192.0.2.2")
        with pytest.raises(DestinationRefused):
            socket.getaddrinfo("evil.example", 443)
        destinations.release()


def test_an_address_can_be_declared_itself() -> None:
    destinations.engage("a test")
    destinations.declare("192.0.2.1:8000", "mine")
    connect("192.0.2.1")
    with pytest.raises(DestinationRefused):
        connect("192.0.2.2")


def test_a_backend_reaches_its_own_host_only_and_is_named() -> None:
    destinations.engage("a test")
    destinations.declare("192.0.2.1", "cloud")
    connect("192.0.2.1")
    speaker = Speaker("echo/x", "echo", "192.0.2.9")
    with speaking(speaker), listening() as heard:
        connect("192.0.2.9")
        with pytest.raises(
            DestinationRefused, match=r"backend 'echo' may not connect to 192\.0\.2\.1"
        ):
            connect("192.0.2.1")
    assert speaker.refused is not None
    assert (speaker.refused.model, speaker.refused.problem) == ("echo/x", "refused")
    (note,) = heard.notes("destination_refused")
    assert (note.data["host"], note.data["backend"]) == ("192.0.2.1", "echo")


def test_the_users_proxy_is_allowed_if_any_declared_host_is_remote(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://192.0.2.50:3128")
    destinations.engage("a test")
    with pytest.raises(DestinationRefused):
        connect("192.0.2.50")
    destinations.declare("api.example", "cloud")
    connect("192.0.2.50")


def test_downloads_reach_their_hub_and_its_subdomains_while_they_last() -> None:
    destinations.engage("a test")
    with destinations.downloading("hub.example"):
        look_up("hub.example")
        look_up("files.hub.example")
        with pytest.raises(DestinationRefused):
            look_up("nothub.example")
    with pytest.raises(DestinationRefused):
        look_up("hub.example")


def test_names_are_compared_in_one_form() -> None:
    assert normal("API.Example.") == normal("api.example:443") == "api.example"
    assert normal("[2001:DB8::1]:443") == normal("2001:db8::1") == "2001:db8::1"
    assert normal("bücher.example") == normal("xn--bcher-kva.example")
    assert normal("::ffff:192.0.2.1") == "192.0.2.1"
