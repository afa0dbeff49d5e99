"""Fusion, coverage and phrases: examples worked out by hand, and invariants."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtake.algorithms.intervals import coverage, union
from longtake.algorithms.passages import (
    SHORTEST,
    K,
    by_moment,
    find,
    match,
    reciprocal_rank,
    said_at,
    squeeze,
)
from longtake.types import Line, Segment


def test_reciprocal_rank_by_hand():
    fused = reciprocal_rank([["a", "b", "c"], ["b", "d"]])
    assert fused == [
        ("b", pytest.approx(1 / 62 + 1 / 61)),
        ("a", pytest.approx(1 / 61)),
        ("d", pytest.approx(1 / 62)),
        ("c", pytest.approx(1 / 63)),
    ]


def test_an_item_counts_once_per_ranking():
    assert reciprocal_rank([["a", "a", "b"]]) == [
        ("a", pytest.approx(1 / 61)),
        ("b", pytest.approx(1 / 62)),
    ]
    assert reciprocal_rank([]) == []


@given(st.lists(st.lists(st.integers(0, 9), unique=True), min_size=1, max_size=4))
def test_no_score_exceeds_a_first_place_in_every_ranking(rankings):
    fused = reciprocal_rank(rankings)
    assert {item for item, _ in fused} == {item for ranking in rankings for item in ranking}
    assert all(0 < score <= len(rankings) / (K + 1) + 1e-12 for _, score in fused)


def test_sources_that_agree_on_a_moment_raise_its_score():
    fused = by_moment({"frame": [10.0, 50.0], "speech": [51.0, 90.0], "onscreen": [10.5]}, apart=2)
    assert [moment[0] for moment in fused] == [10.0, 51.0, 90.0]
    assert fused[0][2] == {"frame": 10.0, "onscreen": 10.5}
    assert fused[1][1] == pytest.approx(1 / 62 + 1 / 61)


def test_a_source_counts_once_for_a_moment():
    assert by_moment({"frame": [10.0, 10.5, 11.0]}) == [
        (10.0, pytest.approx(1 / 61), {"frame": 10.0})
    ]


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


@pytest.mark.parametrize(
    ("phrase", "text", "score"),
    [
        ("all rights reserved", "ALLRIGHTS RESERVED.", 1),
        ("Café Müller", "CAFE MULLER", 1),
        ("rights", "the rightsholder", 1),
        ("creative commons", "Using creative comments.", 1 - 2 / 15),
        ("abc", "", 0),
        ("", "abc", 0),
        ("is", "this", 0),
        ("is", "this IS it", 1),
        ("kitten", "sitting", 1 - 2 / 6),
    ],
)
def test_phrase_scores(phrase, text, score):
    assert match(phrase, text) == pytest.approx(score)


def test_the_place_of_a_phrase_tells_when_in_a_line_it_was_said():
    text = "You refine it, so it works for you. Welcome where colaboration rules."
    line = Line(Segment(120, 130), text)
    assert find("collaboration rules", line.text).score == pytest.approx(1 - 1 / 18)
    assert said_at("welcome", line) == pytest.approx(124.8, abs=0.2)
    assert said_at("collaboration rules", line) == pytest.approx(126.9, abs=0.3)
    assert said_at("you refine", line) == 120
    assert find("zzz", "abc") == (0, 0, 0)
    assert find("it", "so it is").begin == pytest.approx(2 / 6)


@given(st.text(max_size=30), st.text(max_size=60))
def test_a_score_is_between_0_and_1_and_every_text_contains_itself(phrase, text):
    assert 0 <= match(phrase, text) <= 1
    if len(squeeze(text)) >= 3:
        assert match(text, f"x{text}y") == 1


def slowly(needle: str, hay: str) -> tuple[int, int]:
    """Sellers' edit table, column by column."""
    column = list(range(len(needle) + 1))
    fewest, best = column[-1], 0
    for position, letter in enumerate(hay, start=1):
        before, column[0] = column[:], 0
        for row, wanted in enumerate(needle, start=1):
            substituted = before[row - 1] + (letter != wanted)
            column[row] = min(substituted, before[row] + 1, column[row - 1] + 1)
        if column[-1] < fewest:
            fewest, best = column[-1], position
    return fewest, best


@given(st.text("abc", min_size=SHORTEST, max_size=80), st.text("abcd", min_size=1, max_size=40))
def test_the_bit_vector_algorithm_agrees_with_the_edit_table(needle, hay):
    edits, end = slowly(needle, hay)
    score = 1 - edits / len(needle)
    found = find(needle, hay)
    assert found.score == pytest.approx(max(0.0, score))
    if 0 < score < 1:
        assert found.end == pytest.approx(end / len(hay))
