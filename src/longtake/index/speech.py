"""Recognised speech as a layer of text, tile by tile.

::

    tile        |-------- 60 s --------|-------- 60 s --------|
    heard      |==========================|
                ^ 2 s before              ^ 6 s after

Each tile is transcribed with a margin, so that no word is cut, and keeps the lines that begin in
it. Tiles can be finished in any order: indexing resumes, and a method may ask for one part of a
long film.
"""

from __future__ import annotations

import math

import numpy as np

from longtake.algorithms.coverage import coverage
from longtake.index.layers import Advance, ignore
from longtake.index.source import Source
from longtake.index.store import LayerKey
from longtake.media.audio import listen
from longtake.perception.protocols import Heard, Listener
from longtake.stopping import check_stop
from longtake.types import Line, Segment

TILE = 60.0
# a word may begin before its tile; a sentence takes a few seconds to end after it
BEFORE, AFTER = 2.0, 6.0


class SpeechLayer:
    """The recognised speech of one film."""

    def __init__(self, source: Source, listener: Listener) -> None:
        self._source, self._text, self._listener = source, source.text, listener
        params = {"listener": listener.key, "tile": TILE}
        self.key = LayerKey("speech", 1, params)
        self.unsupported_key = LayerKey("unsupported_speech", 1, params)

    @property
    def _duration(self) -> float:
        return self._source.video.duration

    def missing(self, within: Segment | None = None) -> list[Segment]:
        """Tiles that overlap ``within`` and have not been transcribed."""
        within = within or Segment(0.0, self._duration)
        known = self._text.covered(self.key)
        tiles = []
        for number in range(math.ceil(self._duration / TILE)):
            tile = Segment(number * TILE, min((number + 1) * TILE, self._duration))
            if tile.overlap(within) > 0 and coverage(known, tile) < 1.0:
                tiles.append(tile)
        return tiles

    def build(self, within: Segment | None = None, advance: Advance = ignore) -> None:
        """Transcribe the tiles that are missing."""
        self._source.ensure(
            lambda: not self.missing(within), lambda: self.transcribe(within, advance)
        )

    def transcribe(self, within: Segment | None = None, advance: Advance = ignore) -> None:
        """The same; call while the folder is ``building``, from any thread."""
        tiles = self.missing(within)
        for done, tile in enumerate(tiles, 1):
            self.keep(tile, self.hear(tile))
            advance(done / len(tiles))

    def hear(self, tile: Segment) -> Heard:
        """What is said in a tile and its margins; nothing is stored."""
        stretch = self._stretch(tile)
        slices = listen(
            self._source.path,
            origin=self._source.video.origin,
            within=stretch,
            slice_seconds=stretch.duration,
            limits=self._source.settings.media,
        )
        samples = np.concatenate([np.zeros(0, np.float32), *(part.samples for part in slices)])
        check_stop()
        return self._listener.listen(samples, stretch.start)

    def keep(self, tile: Segment, heard: Heard) -> None:
        """Store what was heard of a tile; call while the folder is ``building``."""
        # the margins of two tiles overlap, so both may hear the same line
        neighbours = self._text.lines(self.key, self._stretch(tile))
        lines = [line for line in heard.lines if line.segment.start in tile]
        lines = [line for line in lines if not _repeats(line, neighbours)]
        skipped = [part for part in heard.unsupported if part.segment.start in tile]
        if skipped:
            reasons = [Line(part.segment, part.reason) for part in skipped]
            self._text.add(self.unsupported_key, reasons, [part.segment for part in skipped])
        # last: a tile counts as covered only once everything about it is stored
        self._text.add(self.key, lines, [tile])

    def _stretch(self, tile: Segment) -> Segment:
        """A tile with its margins."""
        return Segment(max(0.0, tile.start - BEFORE), min(self._duration, tile.end + AFTER))


def _repeats(line: Line, others: list[Line]) -> bool:
    """Whether a neighbouring tile already has this line, starting a moment earlier."""
    half = 0.5 * line.segment.duration
    return any(line.segment.overlap(other.segment) > half for other in others)
