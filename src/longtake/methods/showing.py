"""What agents are shown of a film, as prompts take it."""

from __future__ import annotations

from typing import Any

from longtake.footage.footage import Footage
from longtake.footage.look import Look
from longtake.prompts import Plain
from longtake.timecode import clock


def length(footage: Footage) -> Plain:
    """How long the film is."""
    return Plain(clock(footage.duration))


def shown_to(footage: Footage, look: Look) -> dict[str, Any]:
    """What an agent sees: pictures, or captions where there are none."""
    return {"length": length(footage), "seen": list(look.captions) or Plain(""), "frames": look.frames}
