"""What a run used, counted from its events."""

from __future__ import annotations

from collections.abc import Callable

from longtake.events import ChatCalled, Event, Noted
from longtake.types import Usage


class Meter:
    """Sums usage over all calls, by model and by prompt, and counts how often a reply had to be mended."""

    def __init__(self) -> None:
        self.total = Usage()
        self.by_model: dict[str, Usage] = {}
        self.by_prompt: dict[str, Usage] = {}
        self.cached = 0
        """Replies that came from the reply cache."""
        self.notes: dict[str, int] = {}
        """How often each kind of note was made: ``retry``, ``asked_again``, ``default_taken``, …"""

    def handle(self, event: Event) -> None:
        """Count one event."""
        if isinstance(event, ChatCalled) and event.error is None:
            self.total += event.usage
            self.by_model[event.model] = self.by_model.get(event.model, Usage()) + event.usage
            self.by_prompt[event.prompt] = self.by_prompt.get(event.prompt, Usage()) + event.usage
            self.cached += event.cached
        elif isinstance(event, Noted):
            self.notes[event.label] = self.notes.get(event.label, 0) + 1

    def picture(self, digest: str, jpeg: Callable[[], bytes]) -> None:
        """Keep none."""

    def close(self) -> None:
        """Nothing to finish."""
