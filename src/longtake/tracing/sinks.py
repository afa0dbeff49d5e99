"""Sinks for programs: events or notes to a function, or everything to a trace in memory."""

from __future__ import annotations

from collections.abc import Callable

from longtake.tracing.events import Event, Noted, Sink
from longtake.tracing.trace import Trace


class CallbackSink(Sink):
    """Calls a function with every event."""

    def __init__(self, act: Callable[[Event], None]) -> None:
        self._act = act

    def handle(self, event: Event) -> None:
        """Pass the event to the function."""
        self._act(event)


class NoteSink(Sink):
    """Passes each note to a callback as one line of text."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say

    def handle(self, event: Event) -> None:
        """Pass on a note; other events are ignored."""
        if isinstance(event, Noted):
            label = event.label.replace("_", " ")
            data = ", ".join(f"{key} {value}" for key, value in event.data.items())
            self._say(f"{label}: {data}")


class Recorder(Sink):
    """Keeps every event, and optionally pictures, as a :class:`~longtake.tracing.trace.Trace`."""

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
