"""Contact sheets: several frames in one picture, with their times in it."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence

from PIL import Image as PilImage
from PIL import ImageDraw, ImageFont

from longtake.timecode import clock
from longtake.types import Frame

MOST_BYTES = 700_000
"""Hosts refuse results of about a megabyte, and base64 makes a picture a third larger."""
LONGEST_SIDE = 1568
"""Pixels beyond which models scale a picture down."""


def contact_sheet(frames: Sequence[Frame]) -> bytes:
    """A JPEG below :data:`MOST_BYTES` that shows the frames in rows."""
    columns = math.ceil(math.sqrt(len(frames)))
    height, width = frames[0].pixels.shape[:2]
    tile_width = min(width, LONGEST_SIDE // columns)
    tile_height = max(1, round(tile_width * height / width))
    rows = math.ceil(len(frames) / columns)
    sheet = PilImage.new("RGB", (columns * tile_width, rows * tile_height))
    for number, frame in enumerate(frames):
        row, column = divmod(number, columns)
        tile = _labelled(frame, (tile_width, tile_height))
        sheet.paste(tile, (column * tile_width, row * tile_height))
    return _small(sheet)


def _labelled(frame: Frame, size: tuple[int, int]) -> PilImage.Image:
    tile = PilImage.fromarray(frame.pixels).resize(size, PilImage.Resampling.BOX)
    draw = ImageDraw.Draw(tile)
    font = ImageFont.load_default(size=max(11, size[0] // 14))
    text = clock(frame.time, millis=True)
    box = draw.textbbox((4, 4), text, font=font)
    # dark behind light: readable on any picture
    draw.rectangle((box[0] - 3, box[1] - 2, box[2] + 3, box[3] + 2), fill=(0, 0, 0))
    draw.text((4, 4), text, font=font, fill=(255, 255, 255))
    return tile


def _small(sheet: PilImage.Image) -> bytes:
    """The sheet as JPEG, at the best quality and size that fit."""
    for quality in (85, 70, 50):
        data = _jpeg(sheet, quality)
        if len(data) < MOST_BYTES:
            return data
    half = sheet.resize((max(1, sheet.width // 2), max(1, sheet.height // 2)))
    return _small(half)


def _jpeg(sheet: PilImage.Image, quality: int) -> bytes:
    file = io.BytesIO()
    sheet.save(file, "JPEG", quality=quality)
    return file.getvalue()
