"""Pictures as they are sent."""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from longtake.types import Pixels

QUALITY = 85
"""JPEG quality. More makes files larger; vision encoders see patches of 14 to 28 pixels and gain
nothing."""


def encode_jpeg(pixels: Pixels, max_pixels: int) -> bytes:
    """Encode RGB pixels as JPEG, scaled down (never up) to at most ``max_pixels``."""
    from PIL import Image as Picture  # late: most questions are asked in words

    picture = Picture.fromarray(pixels)
    # both sides by the same factor, so that proportions stay
    scale = math.sqrt(max_pixels / (picture.width * picture.height))
    if scale < 1:
        size = max(1, int(picture.width * scale)), max(1, int(picture.height * scale))
        picture = picture.resize(size, Picture.Resampling.LANCZOS, reducing_gap=2.0)
    out = io.BytesIO()
    picture.save(out, "JPEG", quality=QUALITY)
    return out.getvalue()
