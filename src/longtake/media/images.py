"""Converts decoded frames to arrays, and arrays to files."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from av.video.frame import VideoFrame
from av.video.reformatter import Interpolation

from longtake.media import nvdec
from longtake.replacing import replacing
from longtake.types import Pixels


def to_pixels(frame: VideoFrame, *, width: int | None, rotation: int, aspect: float) -> Pixels:
    """Convert a frame to RGB as it is displayed: upright, square pixels, at most ``width`` wide."""
    quarter = rotation // 90 % 4
    square_width = frame.width * aspect
    # scaling comes before turning, so a limit on the upright width may apply to the stored height
    upright_width = frame.height if quarter % 2 else square_width
    scale = min(1.0, width / upright_width) if width else 1.0
    rgb = _scaled(frame, max(1, round(square_width * scale)), max(1, round(frame.height * scale)))
    if quarter == 0:
        return rgb
    # FFmpeg counts the rotation anticlockwise, as rot90 does
    return np.ascontiguousarray(np.rot90(rgb, quarter))


def _scaled(frame: VideoFrame, width: int, height: int) -> Pixels:
    if nvdec.is_on_gpu(frame):
        return nvdec.to_pixels(frame, width=width, height=height)
    scaled = frame.reformat(width, height, format="rgb24", interpolation=Interpolation.AREA)
    rgb: Pixels = scaled.to_ndarray()  # type: ignore[assignment]
    return rgb


def display_size(width: int, height: int, rotation: int, aspect: float) -> tuple[int, int]:
    """Return width and height as displayed."""
    # an absurd aspect ratio must not leave a picture without pixels
    square_width = max(1, round(width * aspect))
    return (height, square_width) if rotation // 90 % 2 else (square_width, height)


def save_png(pixels: Pixels, path: Path) -> None:
    """Write a picture to a PNG file."""
    from PIL import Image

    with replacing(path) as draft:
        Image.fromarray(pixels).save(draft, "PNG")


def encoded(pixels: Pixels, kind: str) -> bytes:
    """A picture as the bytes of a file, ``jpeg`` or ``png``."""
    from PIL import Image

    file = io.BytesIO()
    # PNG ignores the quality
    Image.fromarray(pixels).save(file, kind.upper(), quality=90)
    return file.getvalue()
