"""Shows notes where there is no run to show, as when indexing or searching."""

from __future__ import annotations

from collections.abc import Callable

from longtake.events import Event, Noted


class NoteSink:
    """Passes each note to a callback as one line of text."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say

    def handle(self, event: Event) -> None:
        """Pass on a note; other events are ignored."""
        if isinstance(event, Noted):
            label = event.label.replace("_", " ")
            data = ", ".join(f"{key} {value}" for key, value in event.data.items())
            self._say(f"{label}: {data}")

    def picture(self, digest: str, jpeg: Callable[[], bytes]) -> None:
        """Ignore the picture."""

    def close(self) -> None:
        """Do nothing."""
