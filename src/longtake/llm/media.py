"""Frames as they are sent: one by one, several on a contact sheet, or as a video.

On sheets and in videos the time of each frame is written into it: a model that samples a video, or
reads a sheet in another order, still knows when a frame appears in the film.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from longtake._util.timecode import clock
from longtake.types import Frame, Pixels

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

# Pillow and PyAV are imported late throughout: most questions are asked in words

PER_SHEET = 9
"""Frames on one contact sheet: three rows of three, so that tiles keep the frames' proportions."""
WIDEST = 1568
"""Pixels across a sheet: models scale wider pictures down."""


def encode_jpeg(pixels: Pixels, max_pixels: int) -> bytes:
    """Encode RGB pixels as JPEG, scaled down (never up) to at most ``max_pixels``."""
    from PIL import Image

    picture = Image.fromarray(pixels)
    size = scaled(picture.width, picture.height, max_pixels)
    if size != picture.size:
        picture = picture.resize(size, Image.Resampling.LANCZOS, reducing_gap=2.0)
    out = io.BytesIO()
    # more makes files larger; vision encoders see patches of 14 to 28 pixels and gain nothing
    picture.save(out, "JPEG", quality=85)
    return out.getvalue()


def contact_sheet(frames: Sequence[Frame], max_pixels: int = WIDEST * WIDEST) -> Pixels:
    """The frames in rows, as square as possible so that the tiles stay large."""
    from PIL import Image

    columns = math.ceil(math.sqrt(len(frames)))
    rows = math.ceil(len(frames) / columns)
    height, width = frames[0].pixels.shape[:2]
    widest = (WIDEST / columns) ** 2 * height / width
    width, height = scaled(width, height, min(max_pixels / (columns * rows), widest))
    sheet = Image.new("RGB", (columns * width, rows * height))
    for number, frame in enumerate(frames):
        row, column = divmod(number, columns)
        sheet.paste(stamped(frame, (width, height)), (column * width, row * height))
    return np.asarray(sheet)


def encode_video(frames: Sequence[Frame], max_pixels: int, *, at_own_rate: bool = False) -> bytes:
    """The frames as MP4, one a second: the rate at which models look at videos by themselves.

    ``at_own_rate`` gives them the times that they have in the film, from the first on.
    """
    import av

    # H.264 halves the colours' resolution, so sides are even
    rows, columns = frames[0].pixels.shape[:2]
    width, height = (max(2, side - side % 2) for side in scaled(columns, rows, max_pixels))
    first, last = frames[0].time, frames[-1].time
    rate = (len(frames) - 1) / (last - first) if at_own_rate else 1
    out = io.BytesIO()
    with av.open(out, "w", format="mp4") as file:
        rounded = Fraction(rate).limit_denominator(1001)
        stream = file.add_stream("libx264", rate=rounded, options={"crf": "23"})
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        stream.codec_context.time_base = Fraction(1, 1000)
        for number, frame in enumerate(frames):
            pixels = np.asarray(stamped(frame, (width, height)))
            picture = av.VideoFrame.from_ndarray(pixels, format="rgb24")
            picture.pts = round(1000 * (frame.time - first if at_own_rate else number))
            picture.time_base = Fraction(1, 1000)
            file.mux(stream.encode(picture))
        file.mux(stream.encode())
    return out.getvalue()


def stamped(frame: Frame, size: tuple[int, int]) -> Picture:
    """A frame at a size, with its time in the upper left corner."""
    from PIL import Image, ImageDraw, ImageFont

    tile = Image.fromarray(frame.pixels).resize(size, Image.Resampling.BOX)
    draw = ImageDraw.Draw(tile)
    font = ImageFont.load_default(size=max(11, size[0] // 14))
    text = clock(frame.time, millis=True)
    box = draw.textbbox((4, 4), text, font=font)
    # dark behind light: readable on any picture
    draw.rectangle((box[0] - 3, box[1] - 2, box[2] + 3, box[3] + 2), fill=(0, 0, 0))
    draw.text((4, 4), text, font=font, fill=(255, 255, 255))
    return tile


def scaled(width: int, height: int, max_pixels: float) -> tuple[int, int]:
    """A size scaled down (never up) to at most ``max_pixels``, with the same proportions."""
    scale = min(1.0, math.sqrt(max_pixels / (height * width)))
    return max(1, int(width * scale)), max(1, int(height * scale))
