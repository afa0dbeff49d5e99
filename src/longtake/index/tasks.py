"""What indexing a film consists of: tasks, cheapest first, each with an estimate."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

from longtake.index.film import Film
from longtake.index.layers import Advance, FrameLayer, Glimpses, share_built, width_for, with_grid
from longtake.types import Segment

PROBE_SECONDS = 8.0
"""Stretch in the middle of the film on which the speed is measured."""


TASKS = ("subtitles", "frames", "speech", "onscreen")
"""Names of the parts, cheapest first."""


class Task(Protocol):
    """One part of indexing."""

    name: str

    def describe(self) -> str:
        """What it gives, in a few words."""

    def done(self) -> bool:
        """Whether there is nothing left to do."""

    def estimate(self) -> float | None:
        """Seconds it will take on this machine; may measure a little to know. ``None``: known only later."""

    def build(self, advance: Advance) -> None:
        """Do what is missing."""


def tasks(footage: Film) -> list[Task]:
    """Everything that ``longtake index`` does for one film, cheap first."""
    return [
        SubtitleTask(footage),
        FrameTask(footage, footage.looking_layers()),
        SpeechTask(footage),
        OnscreenTask(footage),
    ]


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
        frames = list(
            footage.video.sample(fps, width=width_for(footage.video, missing), within=stretch)
        )
        for layer in missing:
            layer.rows(frames)
        a_frame = (time.perf_counter() - began) / len(frames)
        left = 1 - min(
            share_built(footage.folder, layer, fps, len(footage.times)) for layer in missing
        )
        return a_frame * len(footage.times) * left

    def build(self, advance: Advance) -> None:
        """Compute what is missing."""
        self._footage.frame_layers(self._layers, advance)

    def _missing(self) -> list[FrameLayer]:
        fps = self._footage.settings.index.fps
        return [
            layer
            for layer in self._layers
            if not self._footage.folder.has(with_grid(layer.key, fps))
        ]


class SpeechTask:
    """Recognised speech, where there are no subtitles."""

    name = "speech"

    def __init__(self, footage: Film) -> None:
        self._footage = footage

    def describe(self) -> str:
        """Who listens, or why nobody does."""
        footage = self._footage
        if footage.subtitle_key() is not None:
            return "not needed, there are subtitles"
        if not footage.video.info.audio:
            return "the film has no sound"
        if footage.unheard:
            return footage.unheard
        if footage.hearing is None:
            return "nobody listens (perception.listener)"
        return f"by {footage.settings.perception.listener}"

    def done(self) -> bool:
        """Whether every minute was listened to, or cannot be."""
        hearing = self._footage.hearing
        return hearing is None or not hearing.missing()

    def estimate(self) -> float:
        """Measured on one tile from the middle, which is then done."""
        hearing = self._footage.hearing
        assert hearing is not None
        left = hearing.missing()
        began = time.perf_counter()
        with self._footage.folder.building():
            hearing.build(Segment(left[len(left) // 2].start, left[len(left) // 2].start + 0.1))
        return (time.perf_counter() - began) * (len(left) - 1)

    def build(self, advance: Advance) -> None:
        """Listen to what is missing."""
        hearing = self._footage.hearing
        if hearing is not None:
            with self._footage.folder.building():
                hearing.build(advance=advance)


class OnscreenTask:
    """On-screen text of every distinct shot."""

    name = "onscreen"

    def __init__(self, footage: Film) -> None:
        self._footage = footage

    def describe(self) -> str:
        """How many frames stand for the film."""
        if not self._footage.settings.perception.reader:
            return "nobody reads (perception.reader)"
        if not self._footage.has_layer(Glimpses()):
            return "one frame for each distinct shot"
        reading = self._footage.reading
        return f"{len(reading.missing()) if reading else 0} shots left to read"

    def done(self) -> bool:
        """Whether every shot was read."""
        if self._footage.settings.perception.reader and not self._footage.has_layer(Glimpses()):
            return False
        reading = self._footage.reading
        return reading is None or not reading.missing()

    def estimate(self) -> float | None:
        """Measured on one shot, which is then done; how many there are is known once the frames are."""
        if not self._footage.has_layer(Glimpses()):
            return None
        reading = self._footage.reading
        assert reading is not None
        left = reading.missing()
        moment = float(self._footage.times[left[len(left) // 2]])
        began = time.perf_counter()
        with self._footage.folder.building():
            reading.build(Segment(moment, moment + 0.01))
        return (time.perf_counter() - began) * (len(left) - 1)

    def build(self, advance: Advance) -> None:
        """Read what is missing."""
        reading = self._footage.reading
        if reading is not None:
            with self._footage.folder.building():
                reading.build(advance=advance)
