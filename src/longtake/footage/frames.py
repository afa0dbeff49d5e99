"""Footage made of pictures alone: no film, no sound, nothing between them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from longtake.algorithms import sampling
from longtake.footage.plain import PlainFootage
from longtake.perception.protocols import ImageTextEncoder
from longtake.perception.senses import Senses
from longtake.types import Frame, Line, Segment


class FrameFootage(PlainFootage):
    """A series of frames in the order of their times; the grid is the frames themselves."""

    def __init__(self, name: str, frames: Sequence[Frame], senses: Senses) -> None:
        self.name = name
        self._frames, self._senses = list(frames), senses
        self.times: NDArray[np.float64] = np.asarray([frame.time for frame in frames], np.float64)
        # the last frame stays as long as frames usually do
        gaps = np.diff(self.times)
        self.duration = float(self.times[-1] + (np.median(gaps) if len(gaps) else 1.0))
        self.native_frames = len(self._frames)

    @property
    def encoder(self) -> ImageTextEncoder:
        """The space shared by :meth:`embeddings` and :meth:`encode`, loaded when it is needed."""
        return self._senses.images

    def at(self, times: Sequence[float], *, width: int | None = None) -> list[Frame]:  # noqa: ARG002
        """The frames given for these times, or for the last moment before each."""
        rows = np.searchsorted(self.times, list(times), side="right") - 1
        return [self._frames[row] for row in np.clip(rows, 0, len(self._frames) - 1)]

    def uniform(
        self, n: int, *, within: Segment | None = None, width: int | None = None
    ) -> list[Frame]:
        """``n`` of the frames, evenly spaced, both ends included."""
        inside = self._inside(within)
        return self.at(inside[sampling.uniform(len(inside), n)].tolist(), width=width)

    def random(
        self, n: int, *, within: Segment | None = None, seed: int = 0, width: int | None = None
    ) -> list[Frame]:
        """``n`` distinct frames in time order; the same seed gives the same frames."""
        inside = self._inside(within)
        return self.at(inside[sampling.random(len(inside), n, seed)].tolist(), width=width)

    def embeddings(self) -> NDArray[np.float32]:
        """One unit row per frame."""
        return self._embeddings

    @cached_property
    def _embeddings(self) -> NDArray[np.float32]:
        return np.asarray(self._senses.images.images(self._frames), np.float32)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit row per text, in the space of :meth:`embeddings`."""
        return self._senses.images.texts(texts)

    def features(self) -> NDArray[np.float32]:
        """One row per frame describing how it looks."""
        return np.asarray(self._senses.scene_encoder.images(self._frames), np.float32)

    def meanings(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit row per text; the cosine of two rows measures how close they are in meaning."""
        return self._senses.sentences.texts(texts)

    def speech(self, within: Segment | None = None) -> list[Line]:  # noqa: ARG002
        """Nothing: pictures have no sound."""
        return []

    def onscreen(self, within: Segment | None = None) -> list[Line]:  # noqa: ARG002
        """Nothing: the pictures are not read."""
        return []

    def known_lines(self) -> tuple[list[Line], list[Line]]:
        """Nothing."""
        return [], []

    def _inside(self, within: Segment | None) -> NDArray[np.float64]:
        if within is None:
            return self.times
        inside = self.times[(self.times >= within.start) & (self.times < within.end)]
        # a stretch without a frame shows what was there before it
        return inside if len(inside) else np.asarray([within.start])
