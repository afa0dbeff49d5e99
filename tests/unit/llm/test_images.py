"""Frames as they are sent."""

import gc
import weakref

import numpy as np

from longtake.llm import chat
from longtake.llm.chat import Image
from longtake.types import Frame


def test_a_frame_that_several_agents_see_is_encoded_once_and_forgotten_with_it(monkeypatch):
    encoded = []

    def encode(pixels, max_pixels):
        encoded.append(max_pixels)
        return b"jpeg of %d pixels" % max_pixels

    monkeypatch.setattr(chat, "encode_jpeg", encode)
    frame = Frame(1.0, np.zeros((8, 8, 3), np.uint8))
    alive = weakref.ref(frame)
    first, second, smaller = Image(frame, 64), Image(frame, 64), Image(frame, 16)
    assert first.jpeg == second.jpeg
    assert first.digest == second.digest != smaller.digest
    assert encoded == [64, 16]
    del frame, first, second, smaller
    gc.collect()
    assert alive() is None
