"""Waiting that can be cancelled, on a clock that tests can control."""

from __future__ import annotations

import time
from typing import Protocol

from longtake.stopping import stopping


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
        """Wait, or raise :class:`~longtake.stopping.Cancelled`."""
        stop = stopping.get()
        if stop is None:
            time.sleep(seconds)
        else:
            stop.wait(seconds)


REAL = RealClock()
