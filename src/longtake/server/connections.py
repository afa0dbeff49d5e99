"""Limits on connections, which anybody can open without a token.

A connection holds a file descriptor, and a process without descriptors can neither accept another
connection nor open a film. So there are fewer connections than descriptors, and one that sends no
complete request line and headers is closed.
"""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

try:
    import resource
except ImportError:  # Windows has no limit of this kind
    resource = None  # type: ignore[assignment]

HEADER_SECONDS = 10.0
"""Seconds for the headers of a request. Clients send them in one packet; nginx waits 60 s, but it
has more connections to spare."""
MAX_CONNECTIONS = 1000
"""Connections where descriptors are plenty: more viewers than one process can serve."""
BACKLOG = 128
"""Connections that wait to be accepted; the loop accepts all of them at once."""


class ConnectionLimits(NamedTuple):
    """How many connections there may be."""

    open: int = MAX_CONNECTIONS
    waiting: int = BACKLOG
    """To be accepted."""


def connection_limits() -> ConnectionLimits:
    """The limits that the file descriptors of this process allow."""
    if resource is None:
        return ConnectionLimits()
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if descriptors == resource.RLIM_INFINITY:
        return ConnectionLimits()
    # a viewer holds two: the connection and the trace or film that is sent; a third is left for
    # the films, databases and pipes of the server itself
    return ConnectionLimits(min(MAX_CONNECTIONS, descriptors // 3), min(BACKLOG, descriptors // 8))


class BoundedProtocol(H11Protocol):
    """HTTP as uvicorn speaks it, for a bounded number of connections that send their headers."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._headers_due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Refuse a connection at once if there are too many; else wait for its first request."""
        # counts the connection, even if it is refused
        super().connection_made(transport)
        if len(self.connections) > connection_limits().open:
            transport.write(b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n\r\n")
            transport.close()
        else:
            self._limit_headers()

    def data_received(self, data: bytes) -> None:
        """Read a request, or the next part of its headers."""
        super().data_received(data)
        self._limit_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._forget_limit()
        super().connection_lost(exc)

    def _limit_headers(self) -> None:
        # between requests uvicorn's own limit for idle connections applies, until data arrives
        if self.conn.their_state is not h11.IDLE:
            self._forget_limit()
        elif self._headers_due is None:
            self._headers_due = self.loop.call_later(HEADER_SECONDS, self.transport.close)

    def _forget_limit(self) -> None:
        if self._headers_due is not None:
            self._headers_due.cancel()
            self._headers_due = None
