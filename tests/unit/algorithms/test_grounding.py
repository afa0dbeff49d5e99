"""Cited intervals against true ones: hand-made numbers, and what must always hold."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtake.algorithms.intervals import gap, iop, iou, precision, recall, tightness
from longtake.types import Segment

TRUTH = [Segment(10, 20), Segment(50, 60)]


@pytest.mark.parametrize(
    ("predicted", "expected_iou", "expected_iop"),
    [
        (Segment(10, 20), 1.0, 1.0),
        (Segment(15, 25), 5 / 15, 0.5),
        (Segment(12, 14), 0.2, 1.0),
        (Segment(0, 100), 0.1, 0.1),
        (Segment(25, 30), 0.0, 0.0),
        (Segment(15, 15), 0.0, 1.0),  # a moment: as the authors' code counts it
        (Segment(30, 30), 0.0, 0.0),
    ],
)
def test_iou_and_iop_as_their_authors_define_them(predicted, expected_iou, expected_iop):
    assert iou(predicted, TRUTH) == pytest.approx(expected_iou)
    assert iop(predicted, TRUTH) == pytest.approx(expected_iop)


def test_citations_within_five_seconds_are_right():
    cited = [Segment(24, 24), Segment(26, 26), Segment(47, 48), Segment(200, 210)]
    assert precision(cited, TRUTH) == 0.5
    assert recall(cited, TRUTH) == 1.0
    assert recall(cited[:1], TRUTH) == 0.5


def test_nothing_cited_is_neither_right_nor_wrong():
    assert precision([], TRUTH) is None
    assert recall([], TRUTH) == 0.0
    assert recall([Segment(1, 2)], []) is None
    assert iou(Segment(1, 2), []) == 0.0


def test_tightness_counts_every_second_once():
    assert tightness([Segment(10, 20), Segment(15, 20)], [Segment(10, 30)]) == pytest.approx(0.5)
    assert tightness([], TRUTH) == 0.0


segments = st.builds(
    lambda start, length: Segment(start, start + length), st.integers(0, 100), st.integers(0, 30)
)


@given(st.lists(segments, min_size=1, max_size=5), st.lists(segments, min_size=1, max_size=5))
def test_what_always_holds(cited, truth):
    assert gap(cited[0], truth[0]) == gap(truth[0], cited[0])
    for predicted in cited:
        assert 0 <= iou(predicted, truth) <= 1
        assert iop(predicted, truth) >= iou(predicted, truth)
    assert precision(truth, truth) == recall(truth, truth) == 1.0
    assert 0 <= tightness(cited, truth) <= 1 + 1e-9
