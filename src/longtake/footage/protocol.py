"""What a method may ask of a film, whatever it is made of: a file, captions alone, or a script."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from longtake.types import Frame, Line, Segment


class Footage(Protocol):
    """A video as methods see it. Frames refer to :attr:`times`, a grid of one moment a second by default."""

    @property
    def name(self) -> str:
        """What it is called, for the trace."""

    @property
    def duration(self) -> float:
        """Seconds."""

    @property
    def times(self) -> NDArray[np.float64]:
        """The grid: the moments that embeddings, frame numbers and samples refer to."""

    @property
    def encoder(self) -> Encoder:
        """The space that :meth:`embeddings` and :meth:`encode` share."""

    def at(self, times: Sequence[float], *, width: int | None = None) -> list[Frame]:
        """The frames on screen at these moments."""

    def uniform(
        self, n: int, *, within: Segment | None = None, width: int | None = None
    ) -> list[Frame]:
        """``n`` frames of the grid spread evenly, ends included."""

    def random(
        self, n: int, *, within: Segment | None = None, seed: int = 0, width: int | None = None
    ) -> list[Frame]:
        """``n`` different frames of the grid, the same for the same seed, in time order."""

    def embeddings(self) -> NDArray[np.float32]:
        """A unit row per moment of the grid."""

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """A unit row per text, in the space of :meth:`embeddings`."""

    def features(self) -> NDArray[np.float32]:
        """A row per moment of the grid that says how it looks, with no text in mind."""

    def meanings(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """A unit row per text; the cosine of two says how close they are in meaning."""

    def captions(self, times: Sequence[float]) -> list[str] | None:
        """Ready-made captions at these moments; ``None`` where pictures must be described by a model."""

    def speech(self, within: Segment | None = None) -> list[Line]:
        """What is said: subtitles where there are any, else what was recognised."""

    def onscreen(self, within: Segment | None = None) -> list[Line]:
        """What can be read in the picture."""

    def known_lines(self) -> tuple[list[Line], list[Line]]:
        """What is said and what can be read, as far as it is known without any work."""


class Encoder(Protocol):
    """What is known of the space that pictures and texts share."""

    @property
    def name(self) -> str:
        """The name it goes by in a configuration."""

    @property
    def logit_scale(self) -> float | None:
        """What a cosine is multiplied with to become the model's own logit, where known."""

    @property
    def thresholds(self) -> Any:
        """Cut-offs on this encoder's own scale, by name; only those with a source or a computation."""
