"""Which hosts this process may connect to, enforced.

longtake promises that pictures and words go only to hosts that were named before. Its own backends
keep that promise by construction. A backend from another package is code that longtake cannot know,
and ``--offline`` must hold for libraries too. So when such a backend is opened, or ``--offline`` is
given, a guard is engaged. From then on Python code in this process can connect only to

- this machine: loopback addresses and Unix sockets,
- the hosts declared by the models that were opened,
- the user's own proxies (``HTTPS_PROXY`` and the like), if any declared host is remote.

Everything else raises :class:`DestinationRefused` before anything is sent. While a backend from
another package answers a call, only the host that it declared itself counts.

The guard is a Python audit hook, so it sees connections made through Python's sockets, by whatever
library. It does not see sockets that native code opens, nor other processes: it keeps honest code
honest, and cannot contain malicious code.
"""

from __future__ import annotations

import functools
import ipaddress
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from longtake import events
from longtake.errors import ModelError

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

LOCAL_FAMILIES = tuple(
    getattr(socket, name) for name in ("AF_UNIX", "AF_NETLINK") if hasattr(socket, name)
)
"""Socket families that cannot leave this machine."""
PROXIES = ("http_proxy", "https_proxy", "all_proxy")
"""Environment variables that name proxies, in either case."""
HUB = ("huggingface.co", "hf.co")
"""Where the model hub keeps files; it redirects downloads to subdomains of these."""


class DestinationRefused(ModelError):
    """A connection to a host that no opened model declared; nothing was sent."""

    def __init__(self, model: str, host: str, detail: str) -> None:
        super().__init__(model, "refused", detail)
        self.host = host


@dataclass
class Speaker:
    """The model on whose behalf the current code runs."""

    model: str
    backend: str
    host: str
    refused: DestinationRefused | None = None
    """The last connection of its that was refused; a library may have hidden the error."""


@dataclass
class _Guard:
    """What is allowed now; one per process."""

    why: str = ""
    """Why it is engaged; empty: it is not."""
    hosts: dict[str, str] = field(default_factory=dict)
    """Declared hosts, and the model that declared each."""
    resolved: dict[str, set[str]] = field(default_factory=dict)
    """Hosts by the addresses that they were seen to resolve to."""
    downloads: list[str] = field(default_factory=list)
    """Hosts of downloads under way, with their subdomains."""


_guard = _Guard()
_lock = threading.Lock()
_installed = False
_speaker: ContextVar[Speaker | None] = ContextVar("longtake_speaker", default=None)


def engage(why: str) -> None:
    """Allow connections only to declared hosts from now on; errors say ``why``."""
    global _installed
    with _lock:
        # the first reason stays: later ones change nothing
        _guard.why = _guard.why or why
        if not _installed:
            sys.addaudithook(_hook)  # permanent, but it does nothing while the guard is not engaged
            _installed = True
        if not hasattr(socket.getaddrinfo, "watched"):
            socket.getaddrinfo = _watched(socket.getaddrinfo)


def declare(host: str, model: str) -> None:
    """Allow connections to a host, because a model that was opened sends its messages there."""
    if host:
        with _lock:
            _guard.hosts[normal(host)] = model


def release() -> None:
    """Lift every restriction and forget what was declared."""
    with _lock:
        _guard.why = ""
        _guard.hosts.clear()
        _guard.resolved.clear()
        _guard.downloads.clear()
        socket.getaddrinfo = getattr(socket.getaddrinfo, "watched", socket.getaddrinfo)


@contextmanager
def downloading(*hosts: str) -> Iterator[None]:
    """Allow connections to these hosts and their subdomains, for longtake's own downloads."""
    names = [normal(host) for host in hosts]
    with _lock:
        _guard.downloads.extend(names)
    try:
        yield
    finally:
        with _lock:
            for name in names:
                if name in _guard.downloads:  # release() may have cleared it
                    _guard.downloads.remove(name)


@contextmanager
def speaking(speaker: Speaker) -> Iterator[Speaker]:
    """Inside the block, only the speaker's own host is allowed."""
    token = _speaker.set(speaker)
    try:
        yield speaker
    finally:
        _speaker.reset(token)


def is_loopback(host: str) -> bool:
    """Whether a host name stays on this machine, decided without a lookup."""
    if host.lower().rstrip(".") == "localhost":
        return True
    address = _parse(host.strip("[]"))
    return address is not None and address.is_loopback


def normal(host: str) -> str:
    """A host name in the one form that names are compared in; a port is left out."""
    name = host.strip().lower()
    if name.startswith("["):
        name = name[1:].partition("]")[0]
    # more than one colon is an IPv6 address without a port
    elif name.count(":") == 1:
        name = name.partition(":")[0]
    address = _parse(name)
    if address is not None:
        return str(address)
    name = name.rstrip(".")
    try:
        return name.encode("idna").decode()
    except UnicodeError:
        return name


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    # called for every audited operation of the interpreter, so the common case is decided first
    if not _guard.why or not event.startswith("socket."):
        return
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        _check_address(*arguments[:2])
    elif event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"):
        _check_name(arguments[0])


def _check_address(sock: socket.socket, address: Any) -> None:
    # sendmsg on a connected socket has no address: it was checked when connecting
    if address is None or sock.family in LOCAL_FAMILIES:
        return
    if sock.family not in (socket.AF_INET, socket.AF_INET6):
        raise _refusal(f"{address} ({sock.family!r})")
    host = _text(address[0])
    if not host or is_loopback(host) or _allowed(host):
        return
    raise _refusal(host)


def _check_name(name: Any) -> None:
    host = _text(name)
    # a numeric address needs no lookup, and is checked when it is connected to
    if not host or is_loopback(host) or _parse(host) is not None:
        return
    if host == socket.gethostname() or _allowed(host):
        return
    raise _refusal(host)


def _allowed(host: str) -> bool:
    name = normal(host)
    # an address counts as every host that was seen to have it
    names = {name, *_guard.resolved.get(name, ())}
    if not names.isdisjoint(_hosts()):
        return True
    return any(
        known == download or known.endswith(f".{download}")
        for known in names
        for download in _guard.downloads
    )


def _hosts() -> set[str]:
    """The hosts that may be connected to by whoever is running now."""
    speaker = _speaker.get()
    # threads of a library carry no speaker, and get what all models together may reach
    hosts = set(_guard.hosts) if speaker is None else {normal(speaker.host)} - {""}
    return hosts | _proxies() if hosts else hosts


def _proxies() -> set[str]:
    proxies = set()
    for name, value in os.environ.items():
        if name.lower() in PROXIES and value:
            address = value if "://" in value else f"http://{value}"
            proxies.add(normal(urlsplit(address).hostname or ""))
    return proxies - {""}


def _refusal(host: str) -> DestinationRefused:
    """The error for a connection, noted as an event and kept for whoever speaks."""
    speaker = _speaker.get()
    known = ", ".join(sorted(_hosts())) or "this machine only"
    backend = speaker.backend if speaker else ""
    who = f"backend {backend!r}" if speaker else "this process"
    error = DestinationRefused(
        speaker.model if speaker else "models",
        host,
        f"{who} may not connect to {host}: {_guard.why}, and declared is {known}",
    )
    if speaker is not None:
        speaker.refused = error
    events.note("destination_refused", host=host, backend=backend, why=_guard.why)
    return error


def _watched(original: Callable[..., Any]) -> Callable[..., Any]:
    """``socket.getaddrinfo`` that remembers a host's addresses: connections name only those."""

    @functools.wraps(original)
    def getaddrinfo(host: Any, *args: Any, **options: Any) -> Any:
        answers = original(host, *args, **options)
        name = _text(host)
        if _guard.why and name and _parse(name) is None:
            with _lock:
                for answer in answers:
                    address = normal(str(answer[4][0]))
                    _guard.resolved.setdefault(address, set()).add(normal(name))
        return answers

    getaddrinfo.watched = original  # type: ignore[attr-defined]
    return getaddrinfo


def _text(host: Any) -> str:
    if isinstance(host, bytes | bytearray):
        return bytes(host).decode("ascii", "replace")
    return "" if host is None else str(host)


def _parse(host: str) -> Address | None:
    """A numeric address; ``None`` for names."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    # ::ffff:127.0.0.1 is 127.0.0.1, and would otherwise pass for another machine
    mapped = getattr(address, "ipv4_mapped", None)
    return mapped or address
