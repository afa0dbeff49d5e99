"""Cited intervals against true ones: hand-made numbers, and what must always hold."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtake.algorithms.intervals import (
    coverage,
    gap,
    iop,
    iou,
    precision,
    recall,
    tightness,
    union,
)
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


def test_union_merges_overlapping_and_touching_segments():
    segments = [Segment(5, 7), Segment(0, 2), Segment(2, 3), Segment(6, 9), Segment(4, 4)]
    assert union(segments) == [Segment(0, 3), Segment(5, 9)]


def test_coverage_by_hand():
    segments = [Segment(0, 2), Segment(1, 4), Segment(8, 20)]
    assert coverage(segments, Segment(0, 10)) == pytest.approx(0.6)
    assert coverage([], Segment(0, 10)) == 0
    assert coverage([], Segment(3, 3)) == 1


pairs_of_times = st.tuples(st.floats(0, 100), st.floats(0, 100))


@given(st.lists(pairs_of_times.map(lambda pair: Segment(min(pair), max(pair)))))
def test_coverage_is_a_share_and_grows(segments):
    within = Segment(20, 80)
    shares = [coverage(segments[:n], within) for n in range(len(segments) + 1)]
    assert all(0 <= share <= 1 for share in shares)
    assert all(after >= before - 1e-9 for before, after in pairwise(shares))
