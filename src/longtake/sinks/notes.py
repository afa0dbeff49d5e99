"""Notes to whoever indexes or searches; there is no run to show."""

from __future__ import annotations

from collections.abc import Callable

from longtake.events import Event, Noted


class NoteSink:
    """Says each note in a line of its own, in full."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say

    def handle(self, event: Event) -> None:
        """Say a note, and nothing else."""
        if isinstance(event, Noted):
            self._say(
                f"{event.label.replace('_', ' ')}: "
                + ", ".join(f"{k} {v}" for k, v in event.data.items())
            )

    def picture(self, digest: str, jpeg: Callable[[], bytes]) -> None:
        """Show none."""

    def close(self) -> None:
        """Nothing to finish."""
