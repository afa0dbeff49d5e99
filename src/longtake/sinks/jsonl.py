"""Events into a trace file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from pydantic_core import to_jsonable_python

from longtake import __version__, trace
from longtake.events import Event


class JsonlSink:
    """Appends each event to a trace file as it happens, so that a crash loses nothing before it.

    A disk that fills ends the recording, never the run; whoever opened the file asks for its ``problem``.
    """

    def __init__(self, path: Path, *, pictures: bool = True) -> None:
        self._pictures = pictures
        self.problem = ""
        """Why the trace ends too early; empty where it does not."""
        self._file = path.open("wb", buffering=0)
        self._write(trace.header(__version__))

    def handle(self, event: Event) -> None:
        """Write one line."""
        try:
            line = trace.encode(event)
        except ValueError:  # the film's name is not valid UTF-8
            line = (
                json.dumps(to_jsonable_python(event), ensure_ascii=False).encode(errors="replace")
                + b"\n"
            )
        self._write(line)

    def picture(self, digest: str, jpeg: Callable[[], bytes]) -> None:
        """Write the picture, unless the trace was asked to hold none."""
        if self._pictures:
            self._write(trace.encode_picture(digest, jpeg()))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _write(self, line: bytes) -> None:
        """The whole line: an unbuffered file may take a part of it before it takes no more."""
        left = memoryview(line)
        try:
            while left and not self.problem:
                left = left[self._file.write(left) :]
        except OSError as error:
            self.problem = error.strerror or str(error)
