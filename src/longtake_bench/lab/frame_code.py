"""The frame code: which second of which world a picture shows.

::

    1 0 | seed (14 bits) | minutes (8) | second (14) | checksum (12) | 0 1

Two rows of 26 black and white cells fill 182 × 14 pixels in the lower left corner of 480 × 270,
less than two per cent of the picture. The code changes once per second. It can be read from any
picture that was scaled and compressed as a whole. If it cannot be read reliably, reading gives
``None``, never a wrong moment.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from longtake.types import Pixels

COLUMNS, ROWS, CELL = 26, 2, 7
WIDTH, HEIGHT = 480, 270
"""Size of the picture for which the cells are laid out."""
MARK = ((1, 0), (0, 1))
"""The first two and the last two cells; they are the same in every code."""
_BITS = (14, 8, 14, 12)
"""Bits of seed, minutes, second and checksum."""
_EDITION = 3
"""Where the checksum begins: films of earlier editions (4095) show something else."""
_DARK, _LIGHT = 16, 240


@dataclass(frozen=True, slots=True)
class Moment:
    """A second of a world.

    Its ``repr`` seeds random draws (:mod:`longtake_bench.lab.prompt`), so no name may change.
    """

    seed: int
    minutes: int
    second: int


def stamp(pixels: Pixels, moment: Moment) -> None:
    """Draw the code into a 480 × 270 picture, in place."""
    pixels[HEIGHT - ROWS * CELL :, : COLUMNS * CELL] = _drawn(moment)


@lru_cache(maxsize=256)
def _drawn(moment: Moment) -> Pixels:
    cells = np.array(_cells(moment), np.uint8).reshape(ROWS, COLUMNS)
    light = np.where(cells.repeat(CELL, 0).repeat(CELL, 1), _LIGHT, _DARK).astype(np.uint8)
    return np.repeat(light[:, :, None], 3, axis=2)


def read(pixels: Pixels) -> Moment | None:
    """The moment that a picture shows, or ``None`` if no code can be read reliably."""
    height, width = pixels.shape[:2]
    if width < 100 or height < 56:  # cells would be smaller than 1.5 pixels
        return None
    rows, columns, top, right = _weights(width, height)
    corner = pixels[top:, :right].astype(np.float32) @ np.array([0.299, 0.587, 0.114], np.float32)
    cells = (rows @ corner @ columns.T).ravel()
    # the marks show how bright light and dark cells are in this picture
    light = (cells[0] + cells[-1]) / 2
    dark = (cells[1] + cells[-2]) / 2
    contrast = light - dark
    # 0 is mid-grey; max() keeps a flat picture from dividing by zero
    offset = (cells - (light + dark) / 2) / max(contrast, 1.0)
    # too faint, or a cell too close to mid-grey, to be sure of every bit
    if contrast < 80.0 or np.abs(offset).min() < 0.12:
        return None
    return _moment([int(value > 0) for value in offset])


@lru_cache(maxsize=64)
def _weights(width: int, height: int) -> tuple[NDArray[np.float32], NDArray[np.float32], int, int]:
    """The weight of each pixel of the corner for each row and column of cells."""
    top = int(np.floor((HEIGHT - ROWS * CELL) * height / HEIGHT))
    right = int(np.ceil(COLUMNS * CELL * width / WIDTH))
    rows = _coverage(height - top, top, height / HEIGHT, HEIGHT - ROWS * CELL, ROWS)
    columns = _coverage(right, 0, width / WIDTH, 0, COLUMNS)
    return rows, columns, top, right


def _coverage(
    pixels: int, offset: int, scale: float, origin: int, cells: int
) -> NDArray[np.float32]:
    """Overlap of each pixel with the inner half of each cell, along one axis; rows sum to one.

    The outer half is ignored because scaling and compression blur it into the next cell.
    """
    weights = np.zeros((cells, pixels), np.float32)
    for cell in range(cells):
        begin = (origin + (cell + 0.25) * CELL) * scale - offset
        end = (origin + (cell + 0.75) * CELL) * scale - offset
        for pixel in range(pixels):
            weights[cell, pixel] = max(0.0, min(end, pixel + 1) - max(begin, pixel))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True), np.float32)


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
    moment = Moment(
        seed=data >> (minutes + second),
        minutes=data >> second & ((1 << minutes) - 1),
        second=data & ((1 << second) - 1),
    )
    # a moment after the end of its film cannot be right, whatever the checksum says
    return moment if moment.second < moment.minutes * 60 else None


def _checksum(data: int, bits: int) -> int:
    """CRC-12 (polynomial 0x80F); the code of another edition or an all-dark one is invalid."""
    rest = _EDITION
    for place in range(bits - 1, -1, -1):
        top = (rest >> 11 & 1) ^ (data >> place & 1)
        rest = (rest << 1 & 0xFFF) ^ (0x80F if top else 0)
    return rest
