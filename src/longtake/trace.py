"""Events on disk: one JSON object a line, the first of them the version.

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
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from longtake.errors import RunError
from longtake.events import Event

VERSION = 1

_adapter: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="kind")])


@dataclass(frozen=True)
class Trace:
    """A run as it was recorded."""

    events: tuple[Event, ...]
    pictures: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """JPEG by digest."""
    complete: bool = True
    """False when the file ends in the middle of a line, as after a crash."""


def header(longtake: str) -> bytes:
    """The first line of a trace."""
    return json.dumps({"longtake_trace": VERSION, "longtake": longtake}).encode() + b"\n"


def encode(event: Event) -> bytes:
    """One event as a line."""
    return _adapter.dump_json(event) + b"\n"


def encode_picture(digest: str, jpeg: bytes) -> bytes:
    """One picture as a line."""
    data = base64.b64encode(jpeg).decode()
    return json.dumps({"kind": "picture", "digest": digest, "jpeg": data}).encode() + b"\n"


def read(path: Path) -> Trace:
    """Read a trace file; a last line that was cut off is left out and noted in ``complete``."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise RunError(f"{path}: cannot be read ({error.strerror or error})") from error
    first = _json(lines[0]) if lines else None
    if not isinstance(first, dict) or "longtake_trace" not in first:
        raise RunError(f"{path}: not a longtake trace (its first line holds no version)")
    if first["longtake_trace"] != VERSION:
        raise RunError(
            f"{path}: trace version {first['longtake_trace']}; this longtake reads {VERSION}"
        )
    complete = lines[-1] == b""
    events: list[Event] = []
    pictures: dict[str, bytes] = {}
    for number, line in enumerate(lines[1:-1], start=2):
        raw = _json(line)
        if not isinstance(raw, dict):
            raise RunError(f"{path}:{number}: not a JSON object")
        try:
            if raw.get("kind") == "picture":
                pictures[raw["digest"]] = base64.b64decode(raw["jpeg"], validate=True)
            else:
                events.append(_adapter.validate_python(raw, strict=False))
        except (ValidationError, KeyError, ValueError) as error:
            raise RunError(f"{path}:{number}: not an event of trace version {VERSION}") from error
    return Trace(tuple(events), pictures, complete)


def _json(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None
