"""What indexing a film consists of: tasks, cheapest first, each with an estimate."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import islice
from typing import Protocol

from longtake.index.film import Film
from longtake.index.layers import Advance, FrameLayer, Glimpses, share_built, width_for
from longtake.index.onscreen import OnscreenLayer
from longtake.types import Segment

PROBE_SECONDS = 8.0
"""Length of the stretch in the middle of the film on which speed is measured."""
PROBES = 3
"""Places in the film where shots are read to measure speed."""
NEIGHBOURS = 4
"""Shots read at each of them: a shot is decoded faster when the one before it was read, too."""
TASKS = ("subtitles", "frames", "speech", "onscreen")
"""Names of the tasks, cheapest first."""


class Task(Protocol):
    """One part of indexing."""

    name: str

    def describe(self) -> str:
        """What it computes, in a few words."""

    def done(self) -> bool:
        """Whether nothing is left to do."""

    def left(self) -> float:
        """The share of the film that is missing."""

    def estimate(self) -> float | None:
        """Seconds it will take on this machine, which may be measured; ``None``: not known yet."""

    def build(self, advance: Advance) -> None:
        """Compute what is missing."""


def tasks(film: Film) -> list[Task]:
    """Everything that ``longtake index`` does for one film, cheapest first."""
    return [
        SubtitleTask(film),
        FrameTask(film, film.pictures.layers()),
        SpeechTask(film),
        OnscreenTask(film),
    ]


class SubtitleTask:
    """Subtitles from a file or a stream inside the film."""

    name = "subtitles"

    def __init__(self, film: Film) -> None:
        self._film, self._subtitles = film, film.words.subtitles

    def describe(self) -> str:
        """Where the lines come from."""
        if self._subtitles.key() is None:
            return "none beside or inside the film"
        file = self._subtitles.file
        return f"from {file.name}" if file else "from the film's own stream"

    def done(self) -> bool:
        """Whether they are stored."""
        key = self._subtitles.key()
        return key is None or self._film.source.text.has(key)

    def left(self) -> float:
        """All or nothing."""
        return 0.0 if self.done() else 1.0

    def estimate(self) -> float:
        """A file is read at once; a stream costs about one pass over the film."""
        return 0.0 if self._subtitles.file else self._film.video.info.size / 1e9

    def build(self, advance: Advance) -> None:
        """Read them."""
        self._subtitles.lines()
        advance(1.0)


class FrameTask:
    """Frame layers, in one pass over the film."""

    name = "frames"

    def __init__(self, film: Film, layers: Sequence[FrameLayer]) -> None:
        self._film, self._layers = film, layers

    def describe(self) -> str:
        """Which layers, at which rate."""
        names = ", ".join(layer.key.name for layer in self._layers)
        return f"{names} at {self._film.source.fps:g} fps"

    def done(self) -> bool:
        """Whether every layer is stored."""
        return not self._missing()

    def estimate(self) -> float:
        """Measured on a few seconds from the middle of the film."""
        film, fps, missing = self._film, self._film.source.fps, self._missing()
        middle = film.duration / 2
        probe = Segment(max(0.0, middle - PROBE_SECONDS / 2), middle + PROBE_SECONDS / 2)
        width = width_for(film.video, missing)
        # the first frame opens the film and loads the models, which happens once
        first = list(islice(film.video.sample(fps, width=width, within=probe), 1))
        for layer in missing:
            layer.rows(first)
        # decoding and encoding together, as in the real pass
        began = time.perf_counter()
        frames = list(film.video.sample(fps, width=width, within=probe))
        for layer in missing:
            layer.rows(frames)
        per_frame = (time.perf_counter() - began) / len(frames)
        return per_frame * len(film.times) * self.left()

    def left(self) -> float:
        """By the parts that exist; layers share the pass, so the least complete one decides."""
        fps, count = self._film.source.fps, len(self._film.times)
        built = [share_built(self._film.folder, layer, fps, count) for layer in self._missing()]
        return 1 - min(built, default=1.0)

    def build(self, advance: Advance) -> None:
        """Compute the layers that are missing."""
        self._film.pictures.build(self._layers, advance)
        # text comes next, and its networks need the memory
        self._film.senses.free_pictures()

    def _missing(self) -> list[FrameLayer]:
        return [layer for layer in self._layers if not self._film.pictures.has(layer)]


class SpeechTask:
    """Recognised speech, unless there are subtitles."""

    name = "speech"

    def __init__(self, film: Film) -> None:
        self._film, self._words = film, film.words

    def describe(self) -> str:
        """Which listener is used, or why none is."""
        if self._words.subtitles.key() is not None:
            return "not needed, there are subtitles"
        if not self._film.video.info.audio:
            return "the film has no sound"
        if self._words.unheard:
            return self._words.unheard
        if self._words.recognised is None:
            return "switched off (perception.listener)"
        return f"by {self._film.settings.perception.listener}"

    def done(self) -> bool:
        """Whether all of the film has been transcribed, or cannot be."""
        layer = self._words.recognised
        return layer is None or not layer.missing()

    def left(self) -> float:
        """By the tiles that are not transcribed."""
        layer = self._words.recognised
        if layer is None:
            return 0.0
        return sum(tile.duration for tile in layer.missing()) / self._film.duration

    def estimate(self) -> float:
        """Measured on one tile from the middle, which is then done."""
        layer = self._words.recognised
        assert layer is not None
        left = layer.missing()
        # credits and silence at either end would mislead
        middle = left[len(left) // 2]
        began = time.perf_counter()
        layer.build(Segment(middle.start, middle.start + 0.1))
        return (time.perf_counter() - began) * (len(left) - 1)

    def build(self, advance: Advance) -> None:
        """Transcribe what is missing."""
        layer = self._words.recognised
        if layer is not None:
            layer.build(advance=advance)

    def build_held(self, advance: Advance) -> None:
        """The same; call while the folder is ``building``, from any thread."""
        layer = self._words.recognised
        if layer is not None:
            layer.transcribe(advance=advance)
            self._film.senses.free_listener()


class OnscreenTask:
    """On-screen text of every distinct shot."""

    name = "onscreen"

    def __init__(self, film: Film) -> None:
        self._film, self._words = film, film.words
        self._reads = film.settings.perception.reader

    def describe(self) -> str:
        """How many frames are left to read."""
        if not self._reads:
            return "switched off (perception.reader)"
        if not self._has_glimpses():
            return "one frame for each distinct shot"
        layer = self._words.readable
        return f"{len(layer.missing()) if layer else 0} shots left to read"

    def done(self) -> bool:
        """Whether every shot has been read."""
        if self._reads and not self._has_glimpses():
            return False
        layer = self._words.readable
        return layer is None or not layer.missing()

    def left(self) -> float:
        """By the shots that are not read."""
        layer = self._words.readable
        return 0.0 if layer is None else layer.share_missing()

    def estimate(self) -> float | None:
        """Measured on some shots, which are then done; unknown until the thumbnails are there."""
        if not self._has_glimpses():
            return None
        layer = self._words.readable
        assert layer is not None
        left = layer.missing()
        # the first one loads the models, which is no part of what the others will take
        alone = self._read(layer, left[:1])
        left = layer.missing()
        stretches = [left[place : place + NEIGHBOURS] for place in _places(len(left))]
        took = sum(self._read(layer, rows) for rows in stretches)
        # a stretch may show further shots that another frame stands for
        to_do = len(layer.missing())
        count = len(left) - to_do
        return to_do * (took / count if count else alone)

    def _read(self, layer: OnscreenLayer, rows: Sequence[int]) -> float:
        """Seconds that it takes to read neighbouring shots."""
        times = self._film.times
        began = time.perf_counter()
        layer.build(Segment(float(times[rows[0]]), float(times[rows[-1]]) + 0.01))
        return time.perf_counter() - began

    def build(self, advance: Advance) -> None:
        """Read what is missing."""
        layer = self._words.readable
        if layer is not None:
            layer.build(advance=advance)
            # its memory has grown to the largest frame, and a server goes on for days
            self._film.senses.free_reader()

    def _has_glimpses(self) -> bool:
        # counting the shots that are missing would compute the thumbnails first
        return self._film.pictures.has(Glimpses())


def _places(count: int) -> list[int]:
    """Where to read some of so many shots: in the middle of equal parts, and none twice."""
    if count <= PROBES * NEIGHBOURS:
        return [0] if count else []
    # titles and credits at either end would mislead
    margin = (count // PROBES - NEIGHBOURS) // 2
    return [part * count // PROBES + margin for part in range(PROBES)]
