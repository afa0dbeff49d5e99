"""Events into a trace file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from longtake import __version__, trace
from longtake.events import Event


class JsonlSink:
    """Appends each event to a trace file as it happens, so that a crash loses nothing before it."""

    def __init__(self, path: Path, *, pictures: bool = True) -> None:
        self._pictures = pictures
        self._file = path.open("wb", buffering=0)
        self._file.write(trace.header(__version__))

    def handle(self, event: Event) -> None:
        """Write one line."""
        self._file.write(trace.encode(event))

    def picture(self, digest: str, jpeg: Callable[[], bytes]) -> None:
        """Write the picture, unless the trace was asked to hold none."""
        if self._pictures:
            self._file.write(trace.encode_picture(digest, jpeg()))

    def close(self) -> None:
        """Close the file."""
        self._file.close()
