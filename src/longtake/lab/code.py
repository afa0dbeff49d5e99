"""The frame code: which second of which world a picture shows.

Two rows of 26 black and white cells in the lower left corner, 182 × 14 pixels of 480 × 270, which is under two
per cent of the picture. It holds the world's seed (14 bits), its minutes (8), the second (14) and a checksum
(12), between two finder marks; it changes once a second. It is read from any picture that was scaled and
compressed as a whole. A picture in which it cannot be read for sure gives ``None``, never a wrong moment.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from longtake.types import Pixels

COLUMNS, ROWS, CELL = 26, 2, 7
WIDTH, HEIGHT = 480, 270
"""Size of the picture that the cells are laid out on."""
MARK = ((1, 0), (0, 1))
"""Cells that are the same in every code: the first two and the last two."""
_BITS = (14, 8, 14, 12)
_DARK, _LIGHT = 16, 240
_CONTRAST = 80.0
"""Least difference between light and dark cells."""
_MARGIN = 0.12
"""Least distance of every cell from the middle, as a share of the contrast; a cell in between is no cell."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A second of a world."""

    seed: int
    minutes: int
    second: int


def stamp(pixels: Pixels, moment: Moment) -> None:
    """Draw the code into a picture of 480 × 270, in place."""
    pixels[HEIGHT - ROWS * CELL :, : COLUMNS * CELL] = _drawn(moment)


@lru_cache(maxsize=256)
def _drawn(moment: Moment) -> Pixels:
    cells = np.array(_cells(moment), np.uint8).reshape(ROWS, COLUMNS)
    light = np.where(cells.repeat(CELL, 0).repeat(CELL, 1), _LIGHT, _DARK).astype(np.uint8)
    return np.repeat(light[:, :, None], 3, axis=2)


def read(pixels: Pixels) -> Moment | None:
    """The moment that a picture shows, or ``None`` where no code can be read for sure."""
    height, width = pixels.shape[:2]
    if width < 100 or height < 56:
        return None
    rows, columns, top, right = _weights(width, height)
    corner = pixels[top:, :right].astype(np.float32) @ np.array([0.299, 0.587, 0.114], np.float32)
    cells = (rows @ corner @ columns.T).ravel()
    light = (cells[0] + cells[-1]) / 2
    dark = (cells[1] + cells[-2]) / 2
    contrast = light - dark
    offset = (cells - (light + dark) / 2) / max(contrast, 1.0)
    if contrast < _CONTRAST or np.abs(offset).min() < _MARGIN:
        return None
    return _moment([int(value > 0) for value in offset])


@lru_cache(maxsize=64)
def _weights(width: int, height: int) -> tuple[NDArray[np.float32], NDArray[np.float32], int, int]:
    """How much each pixel of the corner counts for each row and column of cells."""
    top = int(np.floor((HEIGHT - ROWS * CELL) * height / HEIGHT))
    right = int(np.ceil(COLUMNS * CELL * width / WIDTH))
    rows = _coverage(height - top, top, height / HEIGHT, HEIGHT - ROWS * CELL, ROWS)
    columns = _coverage(right, 0, width / WIDTH, 0, COLUMNS)
    return rows, columns, top, right


def _coverage(
    pixels: int, offset: int, scale: float, origin: int, cells: int
) -> NDArray[np.float32]:
    """Share of each pixel in the inner half of each cell, along one axis; rows sum to one."""
    made = np.zeros((cells, pixels), np.float32)
    for cell in range(cells):
        begin = (origin + (cell + 0.25) * CELL) * scale - offset
        end = (origin + (cell + 0.75) * CELL) * scale - offset
        for pixel in range(pixels):
            made[cell, pixel] = max(0.0, min(end, pixel + 1) - max(begin, pixel))
    return np.asarray(made / made.sum(axis=1, keepdims=True), np.float32)


def _cells(moment: Moment) -> list[int]:
    seed, minutes, second, check = _BITS
    data = (moment.seed << (minutes + second)) | (moment.minutes << second) | moment.second
    whole = (data << check) | _checksum(data, seed + minutes + second)
    length = sum(_BITS)
    bits = [whole >> (length - 1 - place) & 1 for place in range(length)]
    return [*MARK[0], *bits, *MARK[1]]


def _moment(cells: list[int]) -> Moment | None:
    if (*cells[:2], *cells[-2:]) != (*MARK[0], *MARK[1]):
        return None
    whole = int("".join(map(str, cells[2:-2])), 2)
    seed, minutes, second, check = _BITS
    data = whole >> check
    if whole & ((1 << check) - 1) != _checksum(data, seed + minutes + second):
        return None
    found = Moment(
        data >> (minutes + second),
        data >> second & ((1 << minutes) - 1),
        data & ((1 << second) - 1),
    )
    return found if found.second < found.minutes * 60 else None


def _checksum(data: int, bits: int) -> int:
    """CRC-12 (0x80F), begun with ones so that an all-dark picture does not pass."""
    rest = 0xFFF
    for place in range(bits - 1, -1, -1):
        top = (rest >> 11 & 1) ^ (data >> place & 1)
        rest = (rest << 1 & 0xFFF) ^ (0x80F if top else 0)
    return rest
