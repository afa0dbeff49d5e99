"""Encoding while decoding."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest
from drawings import noise

from longtake.perception.stream import encoded


def film(count, made=None, broken_at=None):
    for number in range(count):
        if number == broken_at:
            raise OSError("the disk went away")
        if made is not None:
            made.append(number)
        yield noise(4, 4, time=float(number))


def test_every_frame_comes_once_in_order():
    parts = list(encoded(len, film(10), batch=4))
    assert [times for times, _ in parts] == [(0, 1, 2, 3), (4, 5, 6, 7), (8, 9)]
    assert [size for _, size in parts] == [4, 4, 2]
    assert list(encoded(len, film(0))) == []


def test_decoding_goes_on_while_a_batch_is_encoded():
    made: list[int] = []
    decoded_further = threading.Event()

    def watched():
        for frame in film(8, made):
            if frame.time == 4:
                decoded_further.set()
            yield frame

    def encode(frames):
        if frames[0].time == 0:
            assert decoded_further.wait(10)  # would never come if decoding waited for encoding
        return len(frames)

    assert sum(size for _, size in encoded(encode, watched(), batch=2)) == 8


def test_decoding_does_not_run_away():
    made: list[int] = []
    parts = encoded(len, film(1000, made), batch=2, ahead=2)
    next(parts)
    parts.close()
    assert len(made) <= 12


def test_what_was_decoded_before_an_error_comes_before_it():
    parts = encoded(len, film(10, broken_at=5), batch=2)
    assert [next(parts)[1], next(parts)[1]] == [2, 2]
    with pytest.raises(OSError, match="the disk went away"):
        next(parts)


def test_an_error_in_the_encoder_stops_the_thread():
    before = threading.active_count()
    with pytest.raises(ZeroDivisionError):
        list(encoded(lambda _: 1 / 0, film(1000), batch=2))
    assert threading.active_count() == before


def test_importing_perception_loads_no_runtime():
    code = (
        "import sys, pkgutil, importlib, longtake.perception as p\n"
        "for m in pkgutil.iter_modules(p.__path__): importlib.import_module(f'longtake.perception.{m.name}')\n"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"onnxruntime", "tokenizers", "rapidocr", "cv2", "huggingface_hub", "moonshine_voice", "PIL", "onnx"}
    assert not heavy & set(done.stdout.split())
