"""Waiting that can be cancelled, on a clock that tests can control."""

from __future__ import annotations

import threading
import time
from contextvars import ContextVar
from typing import Protocol

from longtake.errors import LongtakeError


class Cancelled(LongtakeError):
    """The work was cancelled because another part of it failed."""


class Stop:
    """A flag that ends work in many threads, including the work nested inside it.

    Work may be nested inside several flags, each of which ends it.
    """

    def __init__(self, *parents: Stop | None) -> None:
        self._event = threading.Event()
        self._inside: list[Stop] = []
        self._lock = threading.Lock()
        self._parents = [parent for parent in parents if parent is not None]
        for parent in self._parents:
            parent._adopt(self)

    def _adopt(self, child: Stop) -> None:
        with self._lock:
            self._inside.append(child)
        # the parent may have been stopped before it knew this child
        if self._event.is_set():
            child.set()

    def release(self) -> None:
        """Detach from the surrounding work, because this work is done."""
        for parent in self._parents:
            with parent._lock:
                parent._inside.remove(self)

    def set(self) -> None:
        """End the work."""
        self._event.set()
        # copied, because a child that ends removes itself meanwhile
        with self._lock:
            inside = list(self._inside)
        for child in inside:
            child.set()

    @property
    def is_set(self) -> bool:
        """Whether the work was ended."""
        return self._event.is_set()

    def check(self) -> None:
        """Raise :class:`Cancelled` if the work was ended."""
        if self._event.is_set():
            raise Cancelled("cancelled")

    def wait(self, seconds: float) -> None:
        """Sleep, unless the work is ended first."""
        self._event.wait(seconds)
        self.check()


stopping: ContextVar[Stop | None] = ContextVar("longtake_stop", default=None)
"""The flag of the work that this thread is part of."""


def check_stop() -> None:
    """Raise :class:`Cancelled` if the surrounding work was ended."""
    stop = stopping.get()
    if stop is not None:
        stop.check()


class Clock(Protocol):
    """Tells the time and waits."""

    def now(self) -> float:
        """Seconds since some fixed moment."""

    def sleep(self, seconds: float) -> None:
        """Wait."""


class RealClock:
    """The machine's clock; a sleep ends early if the surrounding work does."""

    def now(self) -> float:
        """Seconds on a clock that never goes backwards."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait, or raise :class:`Cancelled`."""
        stop = stopping.get()
        if stop is None:
            time.sleep(seconds)
        else:
            stop.wait(seconds)


REAL = RealClock()
