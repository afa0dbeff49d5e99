"""Trace files: the events of a run, one JSON object per line, after a line with the version.

::

    {"longtake_trace": 1, "longtake": "0.1.0"}
    {"kind": "run_started", "id": 1, ...}
    {"kind": "picture", "digest": "…", "jpeg": "…base64…"}
    {"kind": "frames_seen", "id": 2, "frames": [{"time": 12.5, "digest": "…"}]}
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from longtake.errors import RunError
from longtake.tracing.events import Event

VERSION = 1


@cache
def _adapter() -> TypeAdapter[Event]:
    """Reads and writes events; built on first use, since most commands write no trace."""
    return TypeAdapter(Annotated[Event, Field(discriminator="kind")])


@dataclass(frozen=True)
class Trace:
    """A recorded run."""

    events: tuple[Event, ...]
    pictures: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """JPEG data by digest."""
    complete: bool = True
    """False if the file ends in the middle of a line, as after a crash."""


def encode_picture(digest: str, jpeg: bytes) -> bytes:
    """Encode a picture as one line."""
    data = base64.b64encode(jpeg).decode()
    return json.dumps({"kind": "picture", "digest": digest, "jpeg": data}).encode() + b"\n"


def encode(event: Event) -> bytes:
    """Encode an event as one line."""
    try:
        return _adapter().dump_json(event) + b"\n"
    except ValueError:  # the film's name is not valid UTF-8
        text = json.dumps(to_jsonable_python(event), ensure_ascii=False)
        return text.encode(errors="replace") + b"\n"


def read(path: Path) -> Trace:
    """Read a trace file; an incomplete last line is dropped and clears ``complete``."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise RunError(f"{path}: cannot be read ({error.strerror or error})") from error
    _check_version(path, lines[0])
    # a complete file ends in a newline, so the last piece is empty
    complete = lines[-1] == b""
    events: list[Event] = []
    pictures: dict[str, bytes] = {}
    for number, line in enumerate(lines[1:-1], start=2):  # line numbers as editors show them
        raw = _json(line)
        if not isinstance(raw, dict):
            raise RunError(f"{path}:{number}: not a JSON object")
        try:
            if raw.get("kind") == "picture":
                pictures[raw["digest"]] = base64.b64decode(raw["jpeg"], validate=True)
            else:
                # not strict: JSON has lists where events have tuples
                events.append(_adapter().validate_python(raw, strict=False))
        except (ValidationError, KeyError, ValueError) as error:
            raise RunError(f"{path}:{number}: not an event of trace version {VERSION}") from error
    return Trace(tuple(events), pictures, complete)


def _check_version(path: Path, line: bytes) -> None:
    first = _json(line)
    if not isinstance(first, dict) or "longtake_trace" not in first:
        raise RunError(f"{path}: not a longtake trace (no version in its first line)")
    version = first["longtake_trace"]
    if version != VERSION:
        raise RunError(f"{path}: trace version {version}; this longtake reads version {VERSION}")


def _json(line: bytes) -> Any:
    """Parse a line; ``None`` if it is malformed JSON."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
