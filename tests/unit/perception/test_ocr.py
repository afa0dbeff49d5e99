"""Reading what is on the screen."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from drawings import as_frame, card, noise
from PIL import Image, ImageDraw, ImageFont

from longtake.algorithms.phrases import match
from longtake.perception.ocr import RapidReader
from longtake.perception.protocols import Reader


@pytest.fixture(scope="module")
def reader():
    return RapidReader()


def test_text_is_read_with_its_place(reader):
    boxes = reader.read(as_frame(card("THE LAST TRAIN", "Chapter 12")))
    assert isinstance(reader, Reader)
    assert [match("the last train", boxes[0].text), match("chapter 12", boxes[1].text)] == [1, 1]
    left, top, right, bottom = boxes[0].box
    assert 0 <= left < 0.5 < right <= 1
    assert 0.2 < top < bottom < 0.5
    assert all(0.5 <= box.score <= 1 for box in boxes)


def test_a_plain_picture_holds_no_text(reader):
    assert reader.read(as_frame(card())) == []


@pytest.mark.parametrize("size", [(1, 1), (17, 301)])
def test_odd_sizes_are_read_without_complaint(reader, size):
    assert reader.read(noise(*size)) == []


def test_threads_may_share_a_reader(reader):
    words = ["ORANGE", "WINTER"]
    frames = [as_frame(card(word, size=(320, 180))) for word in words]
    with ThreadPoolExecutor(2) as pool:
        assert [boxes[0].text for boxes in pool.map(reader.read, frames)] == words


def test_the_whole_frame_is_searched_only_beside_small_print(monkeypatch):
    reader = RapidReader()

    def refuse(picture):
        raise AssertionError("the whole frame was searched")

    monkeypatch.setattr(reader, "_thorough", refuse)
    assert reader.read(as_frame(card())) == []
    assert reader.read(as_frame(card("THE LAST TRAIN")))
    small = np.full((720, 1280, 3), 230, np.uint8)
    picture = Image.fromarray(small)
    ImageDraw.Draw(picture).text((300, 300), "terms apply", 0, ImageFont.load_default(11))
    with pytest.raises(AssertionError, match="the whole frame"):
        reader.read(as_frame(picture))
