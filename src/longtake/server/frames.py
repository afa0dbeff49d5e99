"""Frames of a film as JPEG."""

from __future__ import annotations

import io

from PIL import Image

from longtake.index.film import Film
from longtake.types import Frame

QUALITY = 82


def jpeg(frame: Frame) -> bytes:
    """A frame as JPEG."""
    data = io.BytesIO()
    Image.fromarray(frame.pixels).save(data, "JPEG", quality=QUALITY)
    return data.getvalue()


def frame_at(film: Film, time: float, width: int) -> Frame:
    """The frame on screen at a time; the last one at the very end."""
    (shown,) = film.at([min(max(0.0, time), film.duration)], width=width)
    return shown


def jpeg_at(film: Film, time: float, width: int) -> bytes:
    """The frame on screen at a time, as JPEG."""
    return jpeg(frame_at(film, time, width))
