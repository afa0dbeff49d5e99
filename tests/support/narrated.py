"""Captions shown to every kind of method: as pictures in words, and as a narrator's lines."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from longtake.footage.plain import CaptionedFootage
from longtake.llm.backend import Description
from longtake.types import Frame, Line, Segment

SPOKEN_EVERY = 5
"""Seconds from one narrated line to the next."""


class Narrated(CaptionedFootage):
    """A captioned video with stand-ins for pictures: a describer tells the caption of each.

    Methods that look at frames run on it with a text model (``socratic``). Every few seconds the
    caption is also a spoken line, so that steps that read subtitles run too.
    """

    has = frozenset({"pictures"})

    def describer(self) -> CaptionWitness:
        """Tells the captions."""
        return CaptionWitness(self)

    def at(self, times: Sequence[float], *, width: int | None = None) -> list[Frame]:
        """Grey stand-ins with the right times."""
        return [Frame(float(time), np.full((28, 28, 3), 128, np.uint8)) for time in times]

    def speech(self, within: Segment | None = None) -> list[Line]:
        """The narrator's lines."""
        lines = []
        for start in range(0, len(self.times), SPOKEN_EVERY):
            end = min(start + SPOKEN_EVERY, len(self.times))
            line = Line(Segment(float(start), float(end)), self.captions([start])[0])
            if within is None or line.segment.overlap(within) > 0:
                lines.append(line)
        return lines

    def known_lines(self) -> tuple[list[Line], list[Line]]:
        """The narrator's lines; nothing is written on the screen."""
        return self.speech(), []


class CaptionWitness:
    """Describes a picture by the caption of its moment."""

    revision = "captions"

    def __init__(self, footage: CaptionedFootage) -> None:
        self._footage = footage

    def describe(self, frame: Frame, channels: Sequence[str]) -> Description:
        """The caption at the frame's time."""
        caption = self._footage.captions([frame.time])[0]
        return Description(tags=(caption,)) if "tags" in channels else Description()
