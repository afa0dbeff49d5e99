"""Reading what is on the screen."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from drawings import as_frame, card, noise
from PIL import Image, ImageDraw, ImageFont

from longtake.algorithms.passages import match
from longtake.perception.ocr import RapidReader, _of_similar_length
from longtake.perception.protocols import TextReader


@pytest.fixture(scope="module")
def reader():
    return RapidReader()


def test_text_is_read_with_its_place(reader):
    boxes = reader.read(as_frame(card("THE LAST TRAIN", "Chapter 12")))
    assert isinstance(reader, TextReader)
    assert [match("the last train", boxes[0].text), match("chapter 12", boxes[1].text)] == [1, 1]
    left, top, right, bottom = boxes[0].box
    assert 0 <= left < 0.5 < right <= 1
    assert 0.2 < top < bottom < 0.5
    assert all(0.5 <= box.score <= 1 for box in boxes)


@pytest.mark.usefixtures("networks_run_anew")
def test_a_reader_that_was_unloaded_reads_again(reader):
    frame = as_frame(card("ORANGE", size=(320, 180)))
    first = reader.read(frame)
    reader.unload()
    assert "_models" not in vars(reader)
    assert reader.read(frame) == first


def test_a_plain_picture_holds_no_text(reader):
    assert reader.read(as_frame(card())) == []


@pytest.mark.parametrize("size", [(1, 1), (17, 301)])
def test_odd_sizes_are_read_without_complaint(reader, size):
    assert reader.read(noise(*size)) == []


@pytest.mark.usefixtures("networks_run_anew")
def test_threads_may_share_a_reader(reader):
    words = ["ORANGE", "WINTER"]
    frames = [as_frame(card(word, size=(320, 180))) for word in words]
    with ThreadPoolExecutor(2) as pool:
        assert [boxes[0].text for boxes in pool.map(reader.read, frames)] == words


def test_the_whole_frame_is_searched_only_beside_small_print():
    reader = RapidReader()
    scales = []
    boxes = reader._models.boxes
    reader._models.boxes = lambda picture, scale: scales.append(scale) or boxes(picture, scale)
    assert reader.read(as_frame(card())) == []
    assert reader.read(as_frame(card("THE LAST TRAIN")))
    assert max(scales) <= 1
    reader.read(as_frame(small_print("terms apply", 230)))
    assert scales[-1] > 1


def small_print(text: str, ground: int) -> Image.Image:
    picture = Image.fromarray(np.full((720, 1280, 3), ground, np.uint8))
    ink = 0 if ground > 127 else 255
    ImageDraw.Draw(picture).text((300, 300), text, ink, ImageFont.load_default(11))
    return picture


def test_black_borders_are_not_searched():
    reader = RapidReader()
    searched = []
    boxes = reader._models.boxes
    reader._models.boxes = lambda picture, scale: (
        searched.append((picture.shape[:2], scale)) or boxes(picture, scale)
    )
    (box,) = reader.read(as_frame(small_print("terms apply", 0)))
    # one search, at full size, of hardly more than the words
    ((height, width), scale), *more = searched
    assert (height, width) < (70, 120)
    assert scale == 1
    assert more == []
    assert match("terms apply", box.text) == 1
    left, top, right, bottom = box.box
    assert 290 < left * 1280 < right * 1280 < 380
    assert 290 < top * 720 < bottom * 720 < 330
    assert reader.read(as_frame(Image.new("RGB", (1280, 720)))) == []


def test_long_lines_are_recognised_few_at_once():
    groups = _of_similar_length([2.0, 60.0, 3.0, 15.0, 1.0, 20.0, 60.0])
    assert groups == [[4, 0, 2], [3, 5], [1], [6]]
    assert _of_similar_length([]) == []
