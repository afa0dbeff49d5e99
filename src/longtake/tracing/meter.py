"""Counts what a run uses."""

from __future__ import annotations

from collections.abc import Mapping
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
from longtake.types import Usage


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
