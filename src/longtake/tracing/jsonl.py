"""Writes events to a trace file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from longtake import __version__
from longtake.tracing import trace
from longtake.tracing.events import Event, Sink


class JsonlSink(Sink):
    """Appends each event to a trace file as it happens, so that a crash loses no earlier event.

    A full disk ends the recording but never the run; whoever opened the file checks ``problem``.
    """

    def __init__(self, path: Path, *, pictures: bool = True, drafts: bool = False) -> None:
        self._pictures = pictures
        self.drafts = drafts
        self.problem = ""
        """Why the trace is incomplete; empty if it is complete."""
        self._file = path.open("wb", buffering=0)  # unbuffered: each event reaches the disk at once
        first = {"longtake_trace": trace.VERSION, "longtake": __version__}
        self._write(json.dumps(first).encode() + b"\n")

    def handle(self, event: Event) -> None:
        """Write one line."""
        self._write(trace.encode(event))

    def picture(self, digest: str, jpeg: Callable[[], bytes]) -> None:
        """Write the picture, if the trace is to contain pictures."""
        if self._pictures:
            self._write(trace.encode_picture(digest, jpeg()))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _write(self, line: bytes) -> None:
        """Write the whole line: one call to an unbuffered file may write only a part of it."""
        left = memoryview(line)
        try:
            while left and not self.problem:
                left = left[self._file.write(left) :]
        except OSError as error:
            self.problem = error.strerror or str(error)
