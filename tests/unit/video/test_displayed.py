"""Frames as a screen shows them: HDR, interlaced and turned films beside their golden pictures."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from av.video.reformatter import ColorPrimaries, ColorTrc
from numpy.typing import NDArray

from longtake.types import Pixels
from longtake.video.clip import Encoding, write_film
from longtake.video.video import Video

BT2020_NCL = 9
"""The matrix of BT.2020 in H.264 and HEVC."""


def write_yuv(
    path: Path, planes: list[list[NDArray[Any]]], form: str, context: Mapping[str, Any]
) -> None:
    """Write frames given as planes, with properties of the encoder's context."""
    with av.open(str(path), "w") as file:
        stream: Any = file.add_stream("libx264", rate=25)
        stream.height, stream.width = planes[0][0].shape
        stream.pix_fmt = form
        for name, value in context.items():
            setattr(stream.codec_context, name, value)
        for number, each in enumerate(planes):
            frame = av.VideoFrame(stream.width, stream.height, form)
            for plane, values in zip(frame.planes, each, strict=True):
                line = np.zeros((plane.height, plane.line_size // values.itemsize), values.dtype)
                line[:, : values.shape[1]] = values
                plane.update(line.tobytes())
            frame.pts = number
            for name in ("color_trc", "color_primaries", "colorspace", "color_range"):
                if name in context:
                    setattr(frame, name, context[name])
            file.mux(stream.encode(frame))
        file.mux(stream.encode())


def patches(luma: list[float], cb: list[float], cr: list[float]) -> list[NDArray[np.uint16]]:
    """Patches of 32 × 32 pixels beside one another, in 10 bits of limited range."""
    y = np.round(64 + 876 * np.array(luma)).astype(np.uint16)
    u, v = (np.round(512 + 896 * np.array(each)).astype(np.uint16) for each in (cb, cr))
    wide = np.tile(np.repeat(y, 32), (32, 1))
    return [wide, *(np.tile(np.repeat(each, 16), (16, 1)) for each in (u, v))]


def first_patches(path: Path) -> list[list[int]]:
    (frame,) = Video(path).at([0.0])
    return [frame.pixels[16, 16 + 32 * n].tolist() for n in range(frame.pixels.shape[1] // 32)]


def hdr(transfer: ColorTrc, options: Mapping[str, str]) -> dict[str, Any]:
    return {
        "color_trc": transfer,
        "color_primaries": ColorPrimaries.BT2020,
        "colorspace": BT2020_NCL,
        "color_range": 1,
        "options": {"preset": "ultrafast", "qp": "0", **options},
    }


# code values of 0, 1, 10, 100, 203, 1000 and 4000 cd/m² in SMPTE ST 2084
PQ = [0.0, 0.1499, 0.3019, 0.5081, 0.5807, 0.7518, 0.9026]
PQ_SHOWN = [0, 15, 63, 180, 215, 255, 255]
# 0 %, 10 %, 38 %, 50 %, 75 % (the white of HLG, 203 cd/m²) and 100 % in ITU-R BT.2100
HLG = [0.0, 0.1, 0.38, 0.5, 0.75, 1.0]
HLG_SHOWN = [0, 16, 101, 137, 215, 255]


@pytest.mark.parametrize(
    ("transfer", "codes", "shown"),
    [(ColorTrc.SMPTE2084, PQ, PQ_SHOWN), (ColorTrc.ARIB_STD_B67, HLG, HLG_SHOWN)],
    ids=["PQ", "HLG"],
)
def test_greys_of_hdr_films_are_as_bright_as_on_an_ordinary_screen(
    transfer: ColorTrc, codes: list[float], shown: list[int], tmp_path: Path
) -> None:
    grey = [0.0] * len(codes)
    frames = [patches(codes, grey, grey)] * 2
    write_yuv(tmp_path / "hdr.mp4", frames, "yuv420p10le", hdr(transfer, {}))
    found = np.array(first_patches(tmp_path / "hdr.mp4"))
    assert np.abs(found - np.array(shown)[:, None]).max() <= 3


def test_an_ordinary_film_of_the_same_codes_is_shown_as_it_is(tmp_path: Path) -> None:
    grey = [0.0] * len(PQ)
    context = hdr(ColorTrc.BT709, {})
    write_yuv(tmp_path / "sdr.mp4", [patches(PQ, grey, grey)] * 2, "yuv420p10le", context)
    found = np.array(first_patches(tmp_path / "sdr.mp4"))
    assert np.abs(found - 255 * np.array(PQ)[:, None]).max() <= 3


def test_a_red_of_the_wide_gamut_stays_red(tmp_path: Path) -> None:
    """203 cd/m² of BT.709's red, as BT.2020 writes it in PQ."""
    red = np.array([0.5366, 0.3473, 0.2166])  # PQ of 203 times 0.6274, 0.0691, 0.0164
    luma = float(red @ [0.2627, 0.6780, 0.0593])
    cb, cr = (red[2] - luma) / 1.8814, (red[0] - luma) / 1.4746
    frames = [patches([luma, luma], [cb, cb], [cr, cr])] * 2
    write_yuv(tmp_path / "red.mp4", frames, "yuv420p10le", hdr(ColorTrc.SMPTE2084, {}))
    r, g, b = first_patches(tmp_path / "red.mp4")[0]
    assert r >= 200
    assert max(g, b) <= 40


def a_moving_bar(shift: int) -> list[NDArray[np.uint8]]:
    """A bright bar; its even lines were taken a moment before its odd ones."""
    luma = np.full((64, 96), 40, np.uint8)
    luma[0::2, 20:44] = 200
    luma[1::2, 20 + shift : 44 + shift] = 200
    return [luma, *(np.full((32, 48), 128, np.uint8) for _ in range(2))]


def combing(pixels: Pixels) -> float:
    """Mean difference between neighbouring lines, beyond that of lines two apart."""
    grey = pixels.mean(axis=2)
    return float(np.abs(np.diff(grey, axis=0)).mean() - np.abs(grey[2:] - grey[:-2]).mean())


@pytest.mark.parametrize("interlaced", [True, False])
def test_an_interlaced_frame_shows_one_moment(interlaced: bool, tmp_path: Path) -> None:
    options = {"preset": "ultrafast", "qp": "0"} | ({"x264-params": "tff=1"} if interlaced else {})
    frames = [a_moving_bar(16)] * 3
    write_yuv(tmp_path / "bar.mp4", frames, "yuv420p", {"options": options})
    (frame,) = Video(tmp_path / "bar.mp4").at([0.0])
    assert frame.pixels.shape == (64, 96, 3)
    if not interlaced:
        assert combing(frame.pixels) > 20
        return
    golden = np.full((64, 96), 28, np.uint8)
    golden[:, 20:44] = 214
    assert combing(frame.pixels) < 1
    difference = np.abs(frame.pixels.astype(int) - golden[..., None])
    assert difference[:, np.r_[0:18, 22:42, 46:96]].max() <= 3, "the upper field, in every line"


@pytest.mark.parametrize("rotation", [0, 90, 180, 270])
def test_a_turned_film_is_shown_upright(rotation: int, tmp_path: Path) -> None:
    upright = np.zeros((48, 64, 3), np.uint8)
    upright[:24, :32], upright[:24, 32:] = (220, 30, 30), (30, 220, 30)
    upright[24:, :32], upright[24:, 32:] = (30, 30, 220), (220, 220, 220)
    stored = np.ascontiguousarray(np.rot90(upright, -rotation // 90))
    encoding = Encoding(rotation=rotation, options={"preset": "ultrafast", "qp": "0"})
    write_film(tmp_path / "turned.mp4", [stored] * 3, encoding)
    (frame,) = Video(tmp_path / "turned.mp4").at([0.0])
    assert frame.pixels.shape == upright.shape
    difference = np.abs(frame.pixels.astype(int) - upright)
    corners = difference[np.ix_([4, 44], [4, 60])]
    assert corners.max() <= 6
