"""On-screen text as a layer: one frame is read per visually distinct shot, others on request."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtake.algorithms.coverage import coverage
from longtake.algorithms.shots import Survey, survey
from longtake.index.layers import Advance, ignore
from longtake.index.source import Source
from longtake.index.store import LayerKey
from longtake.perception.protocols import Reader
from longtake.stopping import check_stop
from longtake.types import Frame, Line, Segment

WIDTH = 1280
"""Maximum width of a frame that is read: keeps small print legible at a bearable cost."""


class OnscreenLayer:
    """The on-screen text of one film. Reading takes seconds per frame, so each is read once."""

    def __init__(
        self, source: Source, reader: Reader, glimpses: Callable[[], NDArray[Any]]
    ) -> None:
        self._source, self._text, self._reader = source, source.text, reader
        self._glimpses, self._times = glimpses, source.grid()
        few = len(self._times) < 2
        self._step = source.video.duration if few else float(self._times[1] - self._times[0])
        params = {"reader": reader.key, "step": self._step, "width": WIDTH}
        # version 3: cards of small print that follow each other are told apart
        self.key = LayerKey("onscreen", 3, params)
        self.exact_key = LayerKey("onscreen_exact", 1, params)

    @cached_property
    def _survey(self) -> Survey:
        return survey(np.asarray(self._glimpses()))

    def missing(self, within: Segment | None = None) -> list[int]:
        """Frames that represent a shot inside ``within`` and have not been read."""
        within = within or Segment(0.0, self._source.video.duration)
        known = self._text.covered(self.key)
        # choosing shots takes seconds for a long film, and every question asks what is missing
        if coverage(known, within) >= 1.0:
            return []
        inside = (self._times < within.end) & (self._times + self._step > within.start)
        # a shot is represented by one frame, which may lie outside ``within``
        wanted = np.unique(self._survey.stands[inside])
        return [int(row) for row in wanted if coverage(known, self._moment(row)) < 1.0]

    def build(self, within: Segment | None = None, advance: Advance = ignore) -> None:
        """Read the frames that are missing; each is stored as soon as it is read."""
        self._source.ensure(
            lambda: not self.missing(within), lambda: self._read_all(within, advance)
        )

    def exactly(self, time: float) -> list[Line]:
        """The text in the very frame at a given time.

        The frame that represents its shot may differ from it by a word.
        """
        row = self._row(time)
        moment = self._moment(row)
        self._source.ensure(lambda: self._knows(moment), lambda: self._read_exactly(row, moment))
        return self._text.lines(self.exact_key, moment)

    def exactly_held(self, time: float) -> None:
        """Read the very frame at a given time; call while the folder is ``building``."""
        row = self._row(time)
        if not self._knows(self._moment(row)):
            self._read_exactly(row, self._moment(row))

    def _row(self, time: float) -> int:
        row = int(np.searchsorted(self._times, time, side="right")) - 1
        return min(max(row, 0), len(self._times) - 1)

    def _knows(self, moment: Segment) -> bool:
        return coverage(self._text.covered(self.exact_key), moment) >= 1.0

    def texts(self, rows: Sequence[int]) -> Iterator[tuple[int, list[str]]]:
        """Each row with what can be read in its frame; nothing is stored."""
        if not rows:
            return
        frames = self._source.video.frames(self._times[list(rows)], width=WIDTH)
        for row, frame in zip(rows, frames, strict=True):
            yield row, self._read(frame)

    def keep(self, row: int, texts: Sequence[str]) -> None:
        """Store what was read for the shot that a row represents."""
        shown = [self._stretch(begin, end) for begin, end in self._survey.spans(row)]
        self._add(texts, shown, self.key)

    def _read_all(self, within: Segment | None, advance: Advance) -> None:
        rows = self.missing(within)
        for done, (row, texts) in enumerate(self.texts(rows), 1):
            self.keep(row, texts)
            advance(done / len(rows))

    def _read_exactly(self, row: int, moment: Segment) -> None:
        (frame,) = self._source.video.at([float(self._times[row])], width=WIDTH)
        self._add(self._read(frame), [moment], self.exact_key)

    def _read(self, frame: Frame) -> list[str]:
        check_stop()
        return [box.text for box in self._reader.read(frame)]

    def _add(self, texts: Sequence[str], shown: list[Segment], key: LayerKey) -> None:
        lines = [Line(segment, text) for segment in shown for text in texts]
        self._text.add(key, lines, shown)

    def _moment(self, row: int) -> Segment:
        return self._stretch(row, row + 1)

    def _stretch(self, begin: int, end: int) -> Segment:
        # the last moment of the grid may reach beyond the end of the film
        last = float(self._times[end - 1]) + self._step
        return Segment(float(self._times[begin]), min(last, self._source.video.duration))
