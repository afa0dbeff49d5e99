"""Keeps events in memory."""

from __future__ import annotations

from collections.abc import Callable

from longtake.events import Event
from longtake.trace import Trace


class Recorder:
    """Keeps every event, and optionally pictures, as a :class:`~longtake.trace.Trace`."""

    def __init__(self, *, pictures: bool = False) -> None:
        self._keep = pictures
        self._events: list[Event] = []
        self._pictures: dict[str, bytes] = {}

    @property
    def trace(self) -> Trace:
        """Everything recorded so far."""
        return Trace(tuple(self._events), dict(self._pictures))

    def handle(self, event: Event) -> None:
        """Keep one event."""
        self._events.append(event)

    def picture(self, digest: str, jpeg: Callable[[], bytes]) -> None:
        """Keep the picture, if pictures are kept."""
        if self._keep:
            self._pictures[digest] = jpeg()

    def close(self) -> None:
        """Do nothing."""
