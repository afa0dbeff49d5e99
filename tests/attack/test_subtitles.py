"""Subtitles from strangers: read in linear time, or refused in words."""

import contextlib
import random
import time

import pytest
from attack.bombs import HEADS, PIECES, mixed, repeated

from longtake.errors import MediaError
from longtake.video.subtitles import read_subtitles

SIZE = 100_000
SECONDS = 2.0
"""CPU time for one file of ``SIZE`` bytes; quadratic parsing took over 6."""


def read(path):
    """Read a file; gives the CPU seconds that took."""
    began = time.process_time()
    with contextlib.suppress(MediaError):
        for line in read_subtitles(path):
            assert line.text.strip()
            assert 0 <= line.segment.start <= line.segment.end
    return time.process_time() - began


@pytest.mark.parametrize("suffix", HEADS)
def test_repetition_takes_linear_time(tmp_path, suffix):
    path = tmp_path / f"bomb{suffix}"
    slow = {}
    for piece in PIECES:
        path.write_bytes(repeated(piece, suffix, SIZE))
        if (seconds := read(path)) > SECONDS:
            slow[piece] = seconds
    assert slow == {}


@pytest.mark.parametrize("seed", range(60))
def test_any_mixture_is_read_or_refused(tmp_path, seed):
    suffix, data = mixed(random.Random(seed), 3000)
    path = tmp_path / f"mixed{suffix}"
    path.write_bytes(data)
    assert read(path) < SECONDS
