"""Ends an exchange with a server at its deadline, or when nobody waits for it any more.

HTTP libraries limit the time between two bytes. A server that sends a byte a second, ``100
Continue`` again and again or a header without end stays below that for ever. Here each exchange has
a watch, which knows the socket that is in use and shuts it down.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from typing import Any

import httpcore

from longtake._util.cancellation import stopping

MAX_RAW = 65 * 1024 * 1024
"""Bytes that a server may send in one exchange, headers and all."""


class ExchangeWatch:
    """One exchange: how long it may take, and the socket that it uses at the moment."""

    def __init__(self) -> None:
        self.late = False
        """Whether its time was up."""
        self.flooded = False
        """Whether the server sent more than it may."""
        self.ended = False
        """Whether the socket was shut down, so that what was read may be incomplete."""
        self._received = 0
        self._socket: socket.socket | None = None
        self._lock = threading.Lock()

    def uses(self, used: socket.socket | None) -> None:
        """Remember the socket, or shut it down if the exchange is over already."""
        with self._lock:
            self._socket = used
            if self.ended:
                _shut_down(used)

    def receives(self, data: bytes) -> bytes:
        """Count what was received; too much of it ends the exchange."""
        self._received += len(data)
        # counted below HTTP, because headers can be endless too
        if self._received > MAX_RAW:
            self.flooded = True
            self.end()
        return data

    def expire(self) -> None:
        """End the exchange because its time is up."""
        self.late = True
        self.end()

    def end(self) -> None:
        """Shut the socket down, which wakes the thread that waits for it."""
        with self._lock:
            self.ended = True
            _shut_down(self._socket)


_watch: ContextVar[ExchangeWatch | None] = ContextVar("longtake_watch", default=None)


@contextmanager
def watching(seconds: float) -> Iterator[ExchangeWatch]:
    """Watch the exchange of the block, which has so many seconds."""
    watch = ExchangeWatch()
    timer = threading.Timer(seconds, watch.expire)
    # a process that ends does not wait for the timer
    timer.daemon = True
    stop = stopping.get()
    token = _watch.set(watch)
    timer.start()
    try:
        with stop.then(watch.end) if stop is not None else nullcontext():
            yield watch
    finally:
        timer.cancel()
        _watch.reset(token)


class WatchedBackend(httpcore.SyncBackend):
    """Opens connections that tell the watch in force about themselves."""

    def connect_tcp(self, *args: Any, **kwargs: Any) -> httpcore.NetworkStream:
        """A connection whose reads and writes the watch in force knows of."""
        return _Stream(super().connect_tcp(*args, **kwargs))


class _Stream(httpcore.NetworkStream):
    def __init__(self, inner: httpcore.NetworkStream) -> None:
        self._inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        watch = self._in_use()
        data = self._inner.read(max_bytes, timeout)
        return data if watch is None else watch.receives(data)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._in_use()
        self._inner.write(buffer, timeout)

    def close(self) -> None:
        self._inner.close()

    def start_tls(self, *args: Any, **kwargs: Any) -> httpcore.NetworkStream:
        self._in_use()
        return _Stream(self._inner.start_tls(*args, **kwargs))

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)

    def _in_use(self) -> ExchangeWatch | None:
        # the pool works in the thread that asks, so the watch in force is that of this exchange
        watch = _watch.get()
        if watch is not None:
            watch.uses(self._inner.get_extra_info("socket"))
        return watch


def _shut_down(used: socket.socket | None) -> None:
    if used is not None:
        # closing alone would not wake a thread that waits; encryption is passed by, since the
        # thread that waits is in the middle of it
        with suppress(OSError):
            socket.socket.shutdown(used, socket.SHUT_RDWR)
