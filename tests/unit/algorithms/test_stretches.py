"""Stretches of talk that are about a query."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from longtake.algorithms.stretches import STEP, THRESHOLDS, Talk, best_run, bm25, find, speaker
from longtake.types import Line, Segment


def unrelated(texts):
    """Meanings that tell nothing, so that words and speakers decide."""
    return np.ones((len(texts), 4), np.float32) / 2


def talk(*texts, seconds=30.0):
    lines = [
        Line(Segment(number * seconds, (number + 1) * seconds), text)
        for number, text in enumerate(texts)
    ]
    return Talk(lines, seconds * len(texts), unrelated)


@given(arrays.arrays(np.float64, st.integers(1, 12), elements=st.floats(-5, 5)))
def test_best_run_has_the_greatest_sum(gains):
    first, last = best_run(gains)
    sums = [gains[i:j].sum() for i, j in combinations(range(len(gains) + 1), 2)]
    assert last > first
    assert gains[first:last].sum() == pytest.approx(max(sums))


def test_a_stretch_is_where_the_words_of_the_query_are_said():
    said = ["let us begin"] * 8 + ["the battery is cheap", "a solar battery costs more"]
    said += ["what shall we eat"] * 8
    query = "What was said about the battery?"
    (stretch,) = find(talk(*said).scores([query]), query, max_stretches=1)
    # the window before holds the words of what follows
    assert stretch.start == pytest.approx(240, abs=45)
    assert stretch.end == pytest.approx(300, abs=45)


def test_a_named_speaker_leads_to_what_that_speaker_says():
    said = ["Anna: the case is round"] * 4 + ["Ben: the case is square"] * 4
    both = talk(*said)
    halves = len(both.texts) // 2
    scores = both.scores(["What does Ben think of the case?"])
    assert scores[halves:].mean() > scores[:halves].mean()


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Project Manager: Right. Okay.", "Project Manager"),
        ("it starts at 10:30 sharp", ""),
        ("no name here", ""),
    ],
)
def test_speaker_is_the_name_before_the_colon(text, name):
    assert speaker(text)[0] == name
    assert text.endswith(speaker(text)[1])


def test_words_of_a_long_line_are_spread_over_its_time():
    line = Line(Segment(0, 4 * STEP), "one two three four")
    assert Talk([line], 4 * STEP, unrelated).texts == ["one", "two", "three", "four"]


def test_lines_that_name_absurd_times_take_no_memory():
    line = Line(Segment(0, 1e12), "one two three four")
    assert len(Talk([line], 60.0, unrelated).texts) == 4


def test_a_question_about_all_of_a_topic_finds_more():
    above = THRESHOLDS[1] + 0.1
    scores = np.array([0.0, above, 3.0, above, 0.0])
    (narrow,) = find(scores, "Why?", max_stretches=1)
    (broad,) = find(scores, "Summarize the plan.", max_stretches=1)
    assert (narrow.duration, broad.duration) == (STEP, 3 * STEP)


def test_a_second_stretch_counts_if_it_is_nearly_as_good():
    scores = np.array([5.0, -9.0, 4.5, -9.0, 2.0])
    assert find(scores, "Why?") == [Segment(0, STEP), Segment(2 * STEP, 3 * STEP)]
    assert find(np.array([5.0, -9.0, 2.0]), "Why?") == [Segment(0, STEP)]


def test_bm25_prefers_rare_words_and_short_documents():
    documents = [Counter(["dog", "cat"]), Counter(["dog"] * 9 + ["cat"]), Counter(["dog"])]
    scores = bm25("cat", documents)
    assert scores[0] > scores[1] > scores[2] == 0
    assert bm25("cat", documents).max() > bm25("dog", documents).max()
