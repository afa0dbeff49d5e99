"""What agents are shown of a film, as prompts take it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from longtake.footage.look import Look
from longtake.footage.protocol import Footage
from longtake.prompts import Plain
from longtake.steps.fit import Around
from longtake.timecode import clock

SPOKEN = 5
"""Words a second that nobody speaks for long: more subtitles than that are no speech."""


def length(footage: Footage) -> Plain:
    """How long the film is."""
    return Plain(clock(footage.duration))


def shown_to(footage: Footage, look: Look) -> dict[str, Any]:
    """What an agent sees: pictures, or captions where there are none."""
    return {
        "length": length(footage),
        "seen": list(look.captions) or Plain(""),
        "frames": look.frames,
    }


def spoken_around(footage: Footage, rows: Sequence[int], most: int) -> Around | Plain:
    """What is said in the film, as far as it is known without listening, the lines nearest to these moments first.

    At most ``most`` words; a model with little room is given fewer, again those nearest.
    """
    lines = footage.known_lines()[0]
    if not lines or most <= 0:
        return Plain("")
    return Around(lines, [float(footage.times[row]) for row in rows]).within(most)


def most_spoken(duration: float, most: int) -> int:
    """The most words of subtitles that a prompt about a film of this length holds."""
    return min(most, round(SPOKEN * duration))
