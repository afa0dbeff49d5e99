"""A clip that occurs in two films is recognised, and nothing else is."""

from __future__ import annotations

import numpy as np
import pytest

from longtake.library.search import without_copies
from longtake.library.segments import StoredRow, prints_of
from longtake.types import Line, Segment


def thumbnails(seed, count=10):
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 255, (count, 9, 8, 3))
    return coarse.repeat(4, 1).repeat(8, 2).astype(np.uint8)


def stored(row, film, pictures=None, said=""):
    prints = b"" if pictures is None else prints_of(pictures).tobytes()
    segment = Segment(0, 10)
    lines = {"said": [Line(segment, said)]} if said else {}
    return StoredRow(row, film, segment, lines, prints)


def same_clip(one, other):
    return len(list(without_copies([one, other]))) == 1


def test_a_clip_that_is_shifted_brighter_and_noisy_is_the_same():
    clip = thumbnails(1)
    noise = np.random.default_rng(5).normal(0, 4, clip.shape)
    other = np.clip(clip[3:] * 0.8 + 30 + noise[3:], 0, 255).astype(np.uint8)
    shifted = np.concatenate([other, thumbnails(2, 3)])
    assert same_clip(stored(1, "a", clip), stored(2, "b", shifted))
    assert not same_clip(stored(1, "a", clip), stored(2, "b", thumbnails(3)))


def test_even_pictures_tell_nothing():
    black = np.zeros((10, 36, 64, 3), np.uint8)
    assert set(prints_of(black)) == {0}
    assert not same_clip(stored(1, "a", black), stored(2, "b", black))


def test_the_same_picture_under_other_words_is_another_moment():
    hall = thumbnails(1)
    one = stored(1, "a", hall, "today we look at integrals")
    other = stored(2, "b", hall, "welcome to the final lecture of this term")
    assert not same_clip(one, other)
    assert same_clip(one, stored(3, "b", hall, "so today we look at integrals again"))


@pytest.mark.parametrize(("said", "same"), [("a b c d e f g h", True), ("yes", False)])
def test_without_pictures_only_long_equal_texts_count(said, same):
    assert same_clip(stored(1, "a", said=said), stored(2, "b", said=said)) is same


def test_moments_of_one_film_are_never_copies():
    clip = thumbnails(1)
    rows = [stored(1, "a", clip), stored(2, "b", clip), stored(3, "a", clip), stored(4, "c", clip)]
    kept = [(first.row, [copy.row for copy in copies]) for first, copies in without_copies(rows)]
    assert kept == [(1, [2, 4]), (3, [])]
