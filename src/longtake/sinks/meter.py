"""Counts what a run uses."""

from __future__ import annotations

from collections.abc import Callable

from longtake.events import ChatCalled, Event, Noted
from longtake.types import Usage


class Meter:
    """Sums usage in total, by model and by prompt, and counts notes such as repaired replies."""

    def __init__(self) -> None:
        self.total = Usage()
        self.by_model: dict[str, Usage] = {}
        self.by_prompt: dict[str, Usage] = {}
        self.cached = 0
        """Number of replies that came from the reply cache."""
        self.notes: dict[str, int] = {}
        """Number of notes by label: ``retry``, ``asked_again``, ``default_taken``, …"""

    def handle(self, event: Event) -> None:
        """Count one event."""
        # a failed call reports no usage
        if isinstance(event, ChatCalled) and event.error is None:
            model, prompt, usage = event.model, event.prompt, event.usage
            self.total += usage
            self.by_model[model] = self.by_model.get(model, Usage()) + usage
            self.by_prompt[prompt] = self.by_prompt.get(prompt, Usage()) + usage
            self.cached += event.cached
        elif isinstance(event, Noted):
            self.notes[event.label] = self.notes.get(event.label, 0) + 1

    def picture(self, digest: str, jpeg: Callable[[], bytes]) -> None:
        """Ignore the picture."""

    def close(self) -> None:
        """Do nothing."""
