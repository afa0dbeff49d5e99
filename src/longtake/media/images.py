"""Decoded pictures as arrays and files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from av.video.frame import VideoFrame
from av.video.reformatter import Interpolation

from longtake.types import Pixels


def to_pixels(frame: VideoFrame, *, width: int | None, rotation: int, aspect: float) -> Pixels:
    """RGB as it is meant to be seen: upright, with square pixels, at most ``width`` wide."""
    quarter = rotation // 90 % 4
    shown = (frame.width * aspect, frame.height)
    upright_width = shown[1] if quarter % 2 else shown[0]
    scale = min(1.0, width / upright_width) if width else 1.0
    target = (max(1, round(shown[0] * scale)), max(1, round(shown[1] * scale)))
    rgb: Pixels = frame.reformat(
        *target, format="rgb24", interpolation=Interpolation.AREA
    ).to_ndarray()  # type: ignore[assignment]
    # FFmpeg counts the rotation anticlockwise, as rot90 does
    return np.ascontiguousarray(np.rot90(rgb, quarter)) if quarter else rgb


def display_size(width: int, height: int, rotation: int, aspect: float) -> tuple[int, int]:
    """Width and height on screen."""
    shown = (round(width * aspect), height)
    return (shown[1], shown[0]) if rotation // 90 % 2 else shown


def save_png(pixels: Pixels, path: Path) -> None:
    """Write a picture as PNG."""
    from PIL import Image

    Image.fromarray(pixels).save(path, "PNG")
