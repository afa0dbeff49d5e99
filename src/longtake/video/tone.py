"""Pictures of HDR films as ordinary screens show them, which is what encoders and models expect.

Code values become light, light above the white of ordinary pictures is compressed instead of cut
off, and colours beyond BT.709 move to its edge. Shown as they are stored, such films look grey.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from av.video.reformatter import ColorTrc
from numpy.typing import NDArray

from longtake.types import Pixels

WHITE = 203.0
"""Candelas per square metre of diffuse white in HDR (ITU-R BT.2408)."""
PEAK = 1000.0 / WHITE
"""The brightest light that is distinguished, 1000 cd/m²: the usual peak of masters and HLG."""
LINEAR = 0.3
"""Share of white up to which light is not compressed (the default of FFmpeg's tonemap=mobius)."""
TO_BT709 = np.array(
    [[1.6605, -0.5876, -0.0728], [-0.1246, 1.1329, -0.0083], [-0.0182, -0.1006, 1.1187]], np.float32
)
"""From the primaries of BT.2020 (ITU-R BT.2087)."""


def is_hdr(transfer: int) -> bool:
    """Whether a transfer function is one of HDR: PQ or HLG."""
    return transfer in (ColorTrc.SMPTE2084, ColorTrc.ARIB_STD_B67)


def tone_mapped(codes: NDArray[np.uint16], transfer: int) -> Pixels:
    """Map BT.2020 code values of 16 bits, height × width × 3, to sRGB."""
    light = _light(transfer)[codes]
    if transfer == ColorTrc.ARIB_STD_B67:
        # HLG stores light of the scene; a screen of 1000 cd/m² shows it with this gamma
        luma = light @ np.array([0.2627, 0.6780, 0.0593], np.float32)
        light *= (PEAK * np.power(luma, 0.2))[..., None]
    light = np.maximum(light @ TO_BT709.T, 0)
    # one factor for all three, so that hues stay
    brightest = light.max(axis=-1, keepdims=True)
    light *= _compressed(brightest) / np.maximum(brightest, 1e-6)
    steps = np.round(np.clip(light, 0, 1) * 4095).astype(np.uint16)
    pixels: Pixels = _srgb()[steps]
    return pixels


def _compressed(light: NDArray[np.float32]) -> NDArray[np.float32]:
    """Light from 0 to :data:`PEAK` as 0 to 1: a line, then a hyperbola that continues it."""
    a = -(LINEAR**2) * (PEAK - 1) / (LINEAR**2 - 2 * LINEAR + PEAK)
    b = (LINEAR**2 - 2 * LINEAR * PEAK + PEAK) / (PEAK - 1)
    factor = (b * b + 2 * b * LINEAR + LINEAR**2) / (b - a)
    return np.where(light <= LINEAR, light, factor * (light + a) / (light + b))


@lru_cache(maxsize=2)
def _light(transfer: int) -> NDArray[np.float32]:
    """The light of each code value, where 1 is white; for HLG where 1 is the brightest."""
    code = np.linspace(0, 1, 65536)
    if transfer == ColorTrc.SMPTE2084:  # SMPTE ST 2084
        root = code ** (4096 / (2523 * 128))
        base = np.maximum(root - 3424 / 4096, 0) / (2413 / 128 - 2392 / 128 * root)
        light = base ** (16384 / 2610) * 10_000 / WHITE
    else:  # ITU-R BT.2100
        a, b, c = 0.17883277, 0.28466892, 0.55991073
        light = np.where(code <= 0.5, code**2 / 3, (np.exp((code - c) / a) + b) / 12)
    return light.astype(np.float32)


@lru_cache(maxsize=1)
def _srgb() -> Pixels:
    """Light in 4096 steps as values of sRGB (IEC 61966-2-1)."""
    light = np.linspace(0, 1, 4096)
    curved = np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)
    values: Pixels = np.round(255 * curved).astype(np.uint8)
    return values
