"""What a model is shown of a film, as slots of a prompt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from longtake.footage.look import Look
from longtake.footage.protocol import Footage
from longtake.prompts import Plain
from longtake.steps.fit import Around
from longtake.timecode import clock

SPOKEN = 5
"""Upper bound on speech rate, in words per second; used by estimates."""


def length(footage: Footage) -> Plain:
    """How long the film is."""
    return Plain(clock(footage.duration))


def shown_to(footage: Footage, look: Look) -> dict[str, Any]:
    """The slots of a look: pictures, or captions where the footage has no pictures."""
    return {"length": length(footage), "seen": captions_of(look), "frames": look.frames}


def captions_of(look: Look) -> Any:
    """The captions of a look as a slot; empty if there are pictures instead."""
    return list(look.captions) or Plain("")


def spoken_around(footage: Footage, rows: Sequence[int], most: int) -> Around | Plain:
    """What is said in the film, up to ``most`` words, preferring lines near the given moments.

    Nothing is recognised for this: only lines that are already known are used. A model with a
    small context is shown fewer lines, again the nearest.
    """
    lines = footage.known_lines()[0]
    if not lines or most <= 0:
        return Plain("")
    return Around(lines, [float(footage.times[row]) for row in rows]).within(most)


def most_spoken(duration: float, most: int) -> int:
    """The most words of subtitles in a prompt about a film of this length."""
    return min(most, round(SPOKEN * duration))
