"""The frame code survives what pictures go through, and is never misread."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from longtake_bench.lab import frame_code
from longtake_bench.lab.drawing import Painter
from longtake_bench.lab.frame_code import Moment, read, stamp
from longtake_bench.lab.world import make_script

MOMENTS = st.builds(
    lambda seed, minutes, share: Moment(seed, minutes, int(share * (minutes * 60 - 1))),
    st.integers(0, 16383),
    st.integers(1, 255),
    st.floats(0, 1),
)


def picture(moment, shade=128):
    pixels = np.full((270, 480, 3), shade, np.uint8)
    stamp(pixels, moment)
    return pixels


def sent(pixels, width, quality, how=Image.Resampling.LANCZOS):
    image = Image.fromarray(pixels).resize((width, round(width * 9 / 16)), how)
    out = io.BytesIO()
    image.save(out, "JPEG", quality=quality)
    return np.asarray(Image.open(out).convert("RGB"))


@given(
    moment=MOMENTS,
    width=st.integers(224, 960),
    quality=st.integers(70, 95),
    shade=st.integers(0, 255),
)
def test_the_code_survives_scaling_and_compression(moment, width, quality, shade):
    assert read(sent(picture(moment, shade), width, quality)) == moment


@pytest.mark.parametrize(
    "how", [Image.Resampling.BOX, Image.Resampling.BILINEAR, Image.Resampling.BICUBIC]
)
def test_drawn_pictures_keep_their_code(how):
    painter = Painter(make_script(9, 30))
    for second in range(0, 1800, 61):
        assert read(sent(painter.frame(second + 0.4), 224, 70, how)) == Moment(9, 30, second)


@given(moment=MOMENTS, seed=st.integers(0, 10_000), flips=st.integers(1, 3))
def test_a_damaged_code_gives_nothing_rather_than_another_moment(moment, seed, flips):
    pixels = picture(moment)
    rng = np.random.default_rng(seed)
    for cell in rng.choice(52, size=flips, replace=False):
        row, column = divmod(int(cell), 26)
        y, x = 256 + row * 7, column * 7
        pixels[y : y + 7, x : x + 7] = 255 - pixels[y : y + 7, x : x + 7]
    assert read(pixels) is None  # the checksum tells up to three wrong cells for certain


def test_films_of_earlier_editions_give_nothing(monkeypatch):
    # they show something else than this edition's world of the same seed and length
    moment = Moment(9, 30, 61)
    with monkeypatch.context() as earlier:
        earlier.setattr(frame_code, "_EDITION", 0xFFF)
        frame_code._drawn.cache_clear()
        old = picture(moment)
        assert read(old) == moment
    frame_code._drawn.cache_clear()
    assert read(old) is None
    assert read(picture(moment)) == moment


def test_what_has_no_code_gives_nothing():
    painter = Painter(make_script(9, 30), code=False)
    rng = np.random.default_rng(0)
    assert all(read(painter.frame(second)) is None for second in range(0, 1800, 17))
    assert all(read(rng.integers(0, 256, (270, 480, 3), np.uint8)) is None for _ in range(300))
    assert read(np.zeros((270, 480, 3), np.uint8)) is None
    assert read(np.full((8, 8, 3), 255, np.uint8)) is None


def test_a_cropped_or_turned_picture_gives_nothing():
    pixels = picture(Moment(7, 60, 1234))
    assert read(pixels[:-20]) is None
    assert read(np.ascontiguousarray(pixels[::-1, ::-1])) is None


def test_the_code_is_small_and_changes_once_a_second():
    assert frame_code.COLUMNS * frame_code.ROWS * frame_code.CELL**2 <= 0.02 * 480 * 270
    painter = Painter(make_script(9, 30))
    corners = [painter.frame(100 + tenth / 10)[256:, :182].tobytes() for tenth in range(30)]
    assert [len(set(corners[n : n + 10])) for n in (0, 10, 20)] == [1, 1, 1]
    assert len(set(corners)) == 3
