"""Speech as a layer of text, tile by tile.

::

    tile        |-------- 60 s --------|-------- 60 s --------|
    listened   |==========================|
                ^ 2 s before              ^ 6 s after

Each tile is listened to with a margin, so that no word is cut, and keeps the lines that begin in it. Tiles are
finished one by one in any order: indexing resumes, and a method may ask for one stretch of a long film only.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from longtake.algorithms.coverage import coverage
from longtake.config import MediaSettings
from longtake.index.layers import Advance, ignore
from longtake.index.store import LayerKey
from longtake.index.text import TextStore
from longtake.media.audio import listen
from longtake.perception.protocols import Listener
from longtake.types import Line, Segment

TILE = 60.0
BEFORE, AFTER = 2.0, 6.0


class Hearing:
    """One film's recognised speech."""

    def __init__(
        self,
        path: Path,
        text: TextStore,
        listener: Listener,
        *,
        origin: float,
        duration: float,
        limits: MediaSettings,
    ) -> None:
        self._path, self._text, self._listener = path, text, listener
        self._origin, self._duration, self._limits = origin, duration, limits
        self.key = LayerKey("speech", 1, {"listener": listener.key, "tile": TILE})
        self.unsupported_key = LayerKey(
            "unsupported_speech", 1, {"listener": listener.key, "tile": TILE}
        )

    def missing(self, within: Segment | None = None) -> list[Segment]:
        """Tiles that were not listened to yet and touch ``within``."""
        within = within or Segment(0.0, self._duration)
        known = self._text.covered(self.key)
        tiles = [
            Segment(n * TILE, min((n + 1) * TILE, self._duration))
            for n in range(math.ceil(self._duration / TILE))
        ]
        return [t for t in tiles if t.overlap(within) > 0 and coverage(known, t) < 1.0]

    def build(self, within: Segment | None = None, advance: Advance = ignore) -> None:
        """Listen to what is missing."""
        tiles = self.missing(within)
        for done, tile in enumerate(tiles):
            self._listen(tile)
            advance((done + 1) / len(tiles))

    def _listen(self, tile: Segment) -> None:
        stretch = Segment(max(0.0, tile.start - BEFORE), min(self._duration, tile.end + AFTER))
        slices = list(
            listen(
                self._path,
                origin=self._origin,
                within=stretch,
                slice_seconds=stretch.duration,
                limits=self._limits,
            )
        )
        samples = np.concatenate([s.samples for s in slices]) if slices else np.zeros(0, np.float32)
        heard = self._listener.listen(samples, stretch.start)
        neighbours = self._text.lines(self.key, stretch)
        lines = [
            line
            for line in heard.lines
            if line.segment.start in tile and not _repeats(line, neighbours)
        ]
        doubts = [Line(u.segment, u.reason) for u in heard.unsupported if u.segment.start in tile]
        if doubts:
            self._text.add(self.unsupported_key, doubts, [u.segment for u in doubts])
        self._text.add(self.key, lines, [tile])


def _repeats(line: Line, others: list[Line]) -> bool:
    """Whether a neighbouring tile already has this line, begun a moment earlier."""
    return any(
        line.segment.overlap(other.segment) > 0.5 * line.segment.duration for other in others
    )
