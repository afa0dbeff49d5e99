"""A function as a sink."""

from __future__ import annotations

from collections.abc import Callable

from longtake.events import Event


class CallingSink:
    """Calls a function with every event."""

    def __init__(self, act: Callable[[Event], None]) -> None:
        self._act = act

    def handle(self, event: Event) -> None:
        """Pass the event to the function."""
        self._act(event)

    def picture(self, digest: str, jpeg: Callable[[], bytes]) -> None:
        """Ignore the picture."""

    def close(self) -> None:
        """Do nothing."""
