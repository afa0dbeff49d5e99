"""Preparing frames for a vision model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from longtake.types import Frame

if TYPE_CHECKING:
    from longtake.perception.protocols import Array

Fit: TypeAlias = Literal["crop", "squash"]
Filter: TypeAlias = Literal["bilinear", "bicubic"]


@dataclass(frozen=True)
class Preprocessing:
    """Resize, crop, normalise.

    ``crop`` scales the shorter side to ``resize`` and takes the central square of ``side``;
    ``squash`` scales the whole picture to that square, so that the edges of a wide frame are kept.
    """

    side: int
    resize: int
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    filter: Filter = "bicubic"
    fit: Fit = "crop"

    @property
    def key(self) -> str:
        """Everything that changes the output, as text."""
        key = f"{self.fit}{self.resize}:{self.side}:{self.filter}:{self.mean}:{self.std}"
        return key.replace(" ", "")

    @property
    def size(self) -> int:
        """Shorter side in pixels that frames need."""
        return self.side if self.fit == "squash" else self.resize

    def prepare(self, frames: Sequence[Frame]) -> Array:
        """Frames × 3 × side × side, float32."""
        pixels = np.stack([self._square(frame.pixels) for frame in frames])
        # (x / 255 − mean) / std as one multiplication and one subtraction
        scale = 1 / (255 * np.asarray(self.std, np.float32))
        shift = np.asarray(self.mean, np.float32) / np.asarray(self.std, np.float32)
        values = pixels * scale.astype(np.float32) - shift
        return np.ascontiguousarray(values.transpose(0, 3, 1, 2), dtype=np.float32)

    def _square(
        self, pixels: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]
    ) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
        from PIL import Image

        filters = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}
        height, width = pixels.shape[:2]
        picture = Image.fromarray(np.ascontiguousarray(pixels))
        if self.fit == "squash":
            return np.asarray(picture.resize((self.side, self.side), filters[self.filter]))
        # cropping and scaling in one step: what is cropped need not be resized
        span = min(width, height) * self.side / self.resize
        left, top = (width - span) / 2, (height - span) / 2
        box = (left, top, left + span, top + span)
        return np.asarray(picture.resize((self.side, self.side), filters[self.filter], box=box))
