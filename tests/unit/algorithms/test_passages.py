"""Lines ranked by words and meaning, and grouped with their neighbours."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtake.algorithms import lexical
from longtake.algorithms.passages import QUOTED, by_words, occurrences, with_neighbours
from longtake.types import Line, Segment


def test_rare_words_weigh_more_and_a_quoted_phrase_most():
    texts = ["the compass weighs twelve stones", "the day is long", "ALLRIGHTS RESERVED"]
    scores = by_words(["How heavy is the compass?", "all rights reserved"], texts)
    assert scores[0].argmax() == 0
    assert scores[0, 1] < scores[0, 0]
    assert scores[1, 2] >= QUOTED
    assert scores[1, 0] == 0


def lines(*starts):
    return [Line(Segment(start, start + 2), "text") for start in starts]


@given(st.sets(st.integers(0, 30), min_size=1), st.integers(0, 3))
def test_every_chosen_line_is_in_one_run_with_its_neighbours(chosen, reach):
    runs = with_neighbours(sorted(chosen), lines(*range(0, 62, 2)), reach)
    flat = [number for run in runs for number in run]
    assert flat == sorted(set(flat))
    assert chosen <= set(flat)
    assert all(b - a == 1 for run in runs for a, b in pairwise(run))
    assert all(min(abs(number - each) for each in chosen) <= reach for number in flat)


def test_lines_that_are_far_apart_in_time_are_no_neighbours():
    assert with_neighbours([1], lines(0, 10, 100), 1) == [[1]]
    assert with_neighbours([0, 1], lines(0, 10, 100), 0) == [[0], [1]]
    assert with_neighbours([1], lines(6, 10, 14), 1) == [[0, 1, 2]]


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("What does he say?", "English"),
        ("gradient descent method", "English"),
        ("Was sagt der Mann über Geld?", "German"),
        ("¿Qué dice el hombre?", "Spanish"),
        ("Что он говорит?", "Russian"),
        ("彼は何と言いましたか", "Japanese"),
        # too few words, names alone, and words of several languages
        ("Quem fala?", ""),
        ("Bjarne Stroustrup Metaprogramming", ""),
        ("share your creative wealth", ""),
        ("", ""),
    ],
)
def test_a_language_is_named_only_if_its_words_stand_out(text, language):
    assert lexical.language_of(text) == language


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("fails", "failing", True),
        ("meetings", "meet", True),
        ("feeling", "feel", True),
        ("thought", "thinks", True),
        ("thinking", "thinks", True),
        ("costs", "costing", True),
        ("ipods", "ipod", True),
        ("news", "new", False),
        ("evening", "even", False),
        ("best", "good", False),
        ("is", "are", False),
        ("", "s", False),
    ],
)
def test_forms_of_a_word(one, other, same):
    assert lexical.same_word(one, other) == lexical.same_word(other, one) == same


def test_occurrences_by_hand():
    lines = [
        Line(Segment(0, 8), "Two red cars, a red"),
        Line(Segment(9, 10), "car's door and redcar."),
        Line(Segment(30, 31), "red"),
        Line(Segment(40, 41), "car"),
    ]
    found = occurrences("red car", lines)
    # a word lasts as long as it has letters: 14 letters in 8 seconds
    assert [hit.segment.start for hit in found] == pytest.approx([3 / 14 * 8, 11 / 14 * 8])
    assert found[1].text == "Two red cars, a red car's door and redcar."
    assert occurrences("", lines) == occurrences("blue car", lines) == []
