"""On-screen text as a layer: one frame is read for each visually distinct shot, and what is asked for."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtake.algorithms.coverage import coverage
from longtake.algorithms.shots import Survey, survey
from longtake.index.layers import Advance, ignore
from longtake.index.store import LayerKey
from longtake.index.text import TextStore
from longtake.media.video import Video
from longtake.perception.protocols import Reader
from longtake.types import Frame, Line, Segment

WIDTH = 1280
"""Widest picture that is read; small print below this is legible, and reading costs by the pixel."""


class Reading:
    """One film's on-screen text. Reading costs seconds a frame, so it is done once per look, and remembered."""

    def __init__(
        self,
        video: Video,
        text: TextStore,
        reader: Reader,
        *,
        glimpses: NDArray[Any],
        times: NDArray[np.float64],
    ) -> None:
        self._video, self._text, self._reader = video, text, reader
        self._glimpses, self._times = glimpses, times
        self._step = float(times[1] - times[0]) if len(times) > 1 else video.duration
        made = {"reader": reader.key, "step": self._step, "width": WIDTH}
        self.key = LayerKey("onscreen", 2, made)  # 2: signs beside movement are looks of their own
        self.exact_key = LayerKey("onscreen_exact", 1, made)

    @cached_property
    def _survey(self) -> Survey:
        return survey(np.asarray(self._glimpses))

    def missing(self, within: Segment | None = None) -> list[int]:
        """Frames that stand for a look inside ``within`` and were not read yet."""
        within = within or Segment(0.0, self._video.duration)
        inside = (self._times < within.end) & (self._times + self._step > within.start)
        wanted = np.unique(self._survey.stands[inside])
        known = self._text.covered(self.key)
        return [int(f) for f in wanted if coverage(known, self._moment(f)) < 1.0]

    def build(self, within: Segment | None = None, advance: Advance = ignore) -> None:
        """Read what is missing, one finished frame at a time."""
        frames = self.missing(within)
        pictures = self._video.frames(self._times[frames], width=WIDTH) if frames else iter(())
        for done, (number, picture) in enumerate(zip(frames, pictures, strict=True)):
            self._keep(
                picture, [self._stretch(a, b) for a, b in self._survey.spans(number)], self.key
            )
            advance((done + 1) / len(frames))

    def exactly(self, time: float) -> list[Line]:
        """What can be read in the very frame at a moment; the frame that stands for its shot may differ in a word."""
        number = int(
            np.clip(np.searchsorted(self._times, time, side="right") - 1, 0, len(self._times) - 1)
        )
        moment = self._moment(number)
        if coverage(self._text.covered(self.exact_key), moment) < 1.0:
            (picture,) = self._video.at([float(self._times[number])], width=WIDTH)
            self._keep(picture, [moment], self.exact_key)
        return self._text.lines(self.exact_key, moment)

    def _keep(self, picture: Frame, where: list[Segment], key: LayerKey) -> None:
        boxes = self._reader.read(picture)
        self._text.add(key, [Line(stretch, box.text) for stretch in where for box in boxes], where)

    def _moment(self, number: int) -> Segment:
        return self._stretch(number, number + 1)

    def _stretch(self, begin: int, end: int) -> Segment:
        return Segment(
            float(self._times[begin]),
            min(float(self._times[end - 1]) + self._step, self._video.duration),
        )
