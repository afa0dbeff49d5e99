"""Sinks for programs: events to a function, to a trace in memory, or to a count of what is used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from longtake.tracing.events import (
    CAPTIONS_READ,
    SIGNALS,
    STAGE,
    ChatCalled,
    Event,
    FramesSeen,
    Noted,
    Sink,
    StepBegan,
)
from longtake.tracing.trace import Trace
from longtake.types import Usage


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


class Meter(Sink):
    """Sums usage in total, by model and by prompt, and counts notes, moments and rounds."""

    def __init__(self) -> None:
        self.total = Usage()
        self.by_model: dict[str, Usage] = {}
        self.by_prompt: dict[str, Usage] = {}
        self.cached = 0
        """Number of replies that came from the reply cache."""
        self.notes: dict[str, int] = {}
        """Number of notes by label: ``retry``, ``asked_again``, ``default_taken``, …"""
        self.rounds = 1
        """Rounds of the method: the largest number that one of its steps has."""
        self.signals: Mapping[str, float] = {}
        """What tells how far the answer can be trusted."""
        self.stages: list[Mapping[str, Any]] = []
        """What each stage of a method made of methods said and used."""
        self._moments: set[float] = set()

    @property
    def moments(self) -> list[float]:
        """The times of the film that a model was shown, or whose captions it read."""
        return sorted(self._moments)

    @property
    def seen(self) -> int:
        """Distinct moments of the film that a model was shown, or whose captions it read."""
        return len(self._moments)

    def handle(self, event: Event) -> None:
        """Count one event."""
        # a failed call reports no usage
        if isinstance(event, ChatCalled) and event.error is None:
            model, prompt, usage = event.model, event.prompt, event.usage
            self.total += usage
            self.by_model[model] = self.by_model.get(model, Usage()) + usage
            self.by_prompt[prompt] = self.by_prompt.get(prompt, Usage()) + usage
            self.cached += event.cached
        elif isinstance(event, FramesSeen):
            self._moments.update(frame.time for frame in event.frames)
        elif isinstance(event, StepBegan):
            number = event.data.get("round", event.data.get("number", 0))
            self.rounds = max(self.rounds, number if isinstance(number, int) else 0)
        elif isinstance(event, Noted) and event.label == CAPTIONS_READ:
            self._moments.update(event.data["times"])
        elif isinstance(event, Noted):
            if event.label == SIGNALS:
                self.signals = event.data
            elif event.label == STAGE:
                self.stages.append(event.data)
            self.notes[event.label] = self.notes.get(event.label, 0) + 1
