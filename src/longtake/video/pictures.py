"""Pictures as files: opened, written and encoded."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from longtake._util import replacing
from longtake.types import Pixels

if TYPE_CHECKING:
    from PIL.Image import Image

# Pillow is imported late throughout: commands that show no picture start faster


def open_picture(source: Path | BinaryIO) -> Image:
    """Open a JPEG, PNG or WebP file that may come from anyone; its pixels are not decoded yet."""
    from PIL import Image

    # Pillow's other readers are for rarer formats; the one for EPS runs Ghostscript
    return Image.open(source, formats=("JPEG", "PNG", "WEBP"))


def save_png(pixels: Pixels, path: Path) -> None:
    """Write a picture to a PNG file."""
    from PIL import Image

    with replacing(path) as draft:
        Image.fromarray(pixels).save(draft, "PNG")


def encoded(pixels: Pixels, kind: str, *, quality: int = 90) -> bytes:
    """A picture as the bytes of a file, ``jpeg`` or ``png``."""
    from PIL import Image

    file = io.BytesIO()
    # PNG ignores the quality
    Image.fromarray(pixels).save(file, kind.upper(), quality=quality)
    return file.getvalue()
