"""A cited moment lasts as long as what it shows."""

from __future__ import annotations

import pytest
from support.footages import TestFootage
from support.talking import WordSpace

from longtake.agents.verify import with_extent
from longtake.footage.plain import CaptionedFootage
from longtake.types import Evidence, Segment

CAPTIONS = ["a dog", *["a cat"] * 4, "a dog", "a cow", "a dog", "a cow"]


@pytest.mark.parametrize(
    ("time", "extent"),
    [(2.0, (1, 5)), (2.5, (1, 5)), (6.0, (5.5, 7.5)), (0, (0, 1.5)), (8, (7.5, 9))],
)
def test_a_caption_lasts_while_it_stays_the_same_and_at_least_two_seconds(time, extent):
    footage = CaptionedFootage("cats", CAPTIONS, WordSpace())
    cited = with_extent(Evidence(Segment(time, time), "caption", "a cat"), footage)
    assert cited.segment == Segment(*extent)


def test_a_frame_lasts_two_seconds_and_no_longer_than_the_film():
    footage = TestFootage(10)
    assert with_extent(Evidence(Segment(3, 3), "frame"), footage).segment == Segment(2.5, 4.5)
    assert with_extent(Evidence(Segment(10, 10), "frame"), footage).segment == Segment(8.5, 10)


def test_what_has_a_length_keeps_it():
    line = Evidence(Segment(3, 3.2), "speech", "hello")
    assert with_extent(line, TestFootage(10)) is line
