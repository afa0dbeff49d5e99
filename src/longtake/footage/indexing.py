"""What indexing a film consists of: tasks, cheapest first, each with an estimate."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

from longtake.footage.film import Film
from longtake.footage.layers import Advance, FrameLayer, Glimpses, share_built, with_grid
from longtake.types import Segment

PROBE_SECONDS = 8.0
"""Stretch in the middle of the film on which the speed is measured."""


class Task(Protocol):
    """One part of indexing."""

    name: str

    def describe(self) -> str:
        """What it gives, in a few words."""

    def done(self) -> bool:
        """Whether there is nothing left to do."""

    def estimate(self) -> float:
        """Seconds it will take on this machine; may measure a little to know."""

    def build(self, advance: Advance) -> None:
        """Do what is missing."""


def tasks(footage: Film, layers: Sequence[FrameLayer] | None = None) -> list[Task]:
    """Everything that ``longtake index`` does for one film, cheap first."""
    return [SubtitleTask(footage), FrameTask(footage, layers if layers is not None else [Glimpses()])]


class SubtitleTask:
    """Lines from a side-car file or a stream inside the film."""

    name = "subtitles"

    def __init__(self, footage: Film) -> None:
        self._footage = footage

    def describe(self) -> str:
        """Where the lines come from."""
        if self._footage.subtitle_key() is None:
            return "none beside or inside the film"
        file = self._footage.subtitle_file
        return f"from {file.name}" if file else "from the film's own stream"

    def done(self) -> bool:
        """Whether they were read before."""
        key = self._footage.subtitle_key()
        return key is None or self._footage.text.has(key)

    def estimate(self) -> float:
        """A side-car is read at once; a stream costs about one reading of the file."""
        return 0.0 if self._footage.subtitle_file else self._footage.video.info.size / 1e9

    def build(self, advance: Advance) -> None:
        """Read them."""
        self._footage.subtitles()
        advance(1.0)


class FrameTask:
    """Frame layers, in one pass over the film."""

    name = "frames"

    def __init__(self, footage: Film, layers: Sequence[FrameLayer]) -> None:
        self._footage, self._layers = footage, layers

    def describe(self) -> str:
        """Which layers, at which rate."""
        names = ", ".join(layer.key.name for layer in self._layers)
        return f"{names} at {self._footage.settings.index.fps:g} fps"

    def done(self) -> bool:
        """Whether every layer is there."""
        return not self._missing()

    def estimate(self) -> float:
        """Measured on a few seconds from the middle of the film."""
        footage, fps, missing = self._footage, self._footage.settings.index.fps, self._missing()
        middle = footage.duration / 2
        stretch = Segment(max(0.0, middle - PROBE_SECONDS / 2), middle + PROBE_SECONDS / 2)
        began = time.perf_counter()
        frames = list(footage.video.sample(fps, width=max(layer.width for layer in missing), within=stretch))
        for layer in missing:
            layer.rows(frames)
        a_frame = (time.perf_counter() - began) / len(frames)
        left = 1 - min(share_built(footage.folder, layer, fps, len(footage.times)) for layer in missing)
        return a_frame * len(footage.times) * left

    def build(self, advance: Advance) -> None:
        """Compute what is missing."""
        self._footage.frame_layers(self._layers, advance)

    def _missing(self) -> list[FrameLayer]:
        fps = self._footage.settings.index.fps
        return [layer for layer in self._layers if not self._footage.folder.has(with_grid(layer.key, fps))]
