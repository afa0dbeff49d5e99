"""A clip's score from the vectors of its frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from longtake.perception.runtime import unit

if TYPE_CHECKING:
    from longtake.perception.protocols import Array


class MeanPooling:
    """Compares the mean of the frames' vectors, scaled to unit length, with each text."""

    key = "mean"

    def __init__(self) -> None:
        self.thresholds: Mapping[str, float] = {}

    def scores(self, frames: Array, texts: Array) -> Array:
        """One cosine per text; 0 for a clip without frames."""
        if len(frames) == 0:
            return np.zeros(len(texts), np.float32)
        return np.asarray(texts @ unit(frames.mean(axis=0, keepdims=True))[0], np.float32)
