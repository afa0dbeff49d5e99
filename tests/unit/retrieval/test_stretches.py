"""Stretches of talk that are about a query."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from longtake.retrieval.stretches import EVIDENCE, STEP, Talk, best_run, bm25, expected_best
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
    stretch = talk(*said).find(query)
    # the window before holds the words of what follows
    assert stretch.start == pytest.approx(240, abs=45)
    assert stretch.end == pytest.approx(300, abs=45)


def test_a_named_speaker_leads_to_what_that_speaker_says():
    said = ["Anna: the case is round"] * 4 + ["Ben: the case is square"] * 4
    both = talk(*said)
    halves = len(both.texts) // 2
    assert both.find("What does Ben think of the case?").start >= halves * STEP
    assert both.find("What does Anna think of the case?").end <= halves * STEP


def bags(texts):
    """Meanings by the words themselves."""
    words = sorted({word for text in texts for word in text.split()})
    return np.array([[text.split().count(word) for word in words] for text in texts], np.float32)


def test_a_topic_begins_where_words_or_speakers_change():
    said = ["the case is round"] * 6 + ["batteries cost four euros"] * 6
    lines = [Line(Segment(30 * n, 30 * n + 30), text) for n, text in enumerate(said)]
    assert Talk(lines, 365.0, bags).topics(12) == [Segment(0, 180), Segment(180, 365)]
    assert Talk(lines, 365.0, bags).topics(1) == [Segment(0, 365)]
    turns = [*["Anna: yes yes"] * 6, *["Ben: yes yes"] * 6]
    assert talk(*turns).topics(12) == [Segment(0, 180), Segment(180, 360)]


@pytest.mark.parametrize("said", [[], ["one word"], ["the same"] * 20])
def test_a_talk_that_does_not_change_is_one_topic(said):
    whole = talk(*said, seconds=10)
    assert whole.topics(12) == [Segment(0, 10 * len(said))]


def test_words_of_a_long_line_are_spread_over_its_time():
    line = Line(Segment(0, 4 * STEP), "one two three four")
    assert Talk([line], 4 * STEP, unrelated).texts == ["one", "two", "three", "four"]


def test_lines_that_name_absurd_times_take_no_memory():
    line = Line(Segment(0, 1e12), "one two three four")
    assert len(Talk([line], 60.0, unrelated).texts) == 4


def test_a_question_about_all_of_a_topic_finds_more():
    said = ["let us begin"] * 9 + ["the battery is cheap"] + ["what shall we eat"] * 9
    narrow, broad = (
        talk(*said).find(question)
        for question in ("What does the battery cost?", "Summarize the talk about the battery.")
    )
    assert broad.duration > narrow.duration


def test_a_draft_of_the_answer_leads_to_its_words():
    said = ["let us begin"] * 9 + ["the battery is cheap"] + ["what shall we eat"] * 9
    stretch = talk(*said).find("Why was it chosen?", ["A battery is cheap."])
    assert stretch.overlap(Segment(270, 300)) > 0


@given(arrays.arrays(np.float64, st.integers(1, 24), elements=st.floats(0.01, 0.99)))
def test_no_run_has_a_greater_expected_f1(probabilities):
    everywhere = min(probabilities.sum(), EVIDENCE)

    def expected(first, last):
        return 2 * probabilities[first:last].sum() / (last - first + everywhere)

    best = max(expected(*run) for run in combinations(range(len(probabilities) + 1), 2))
    assert expected(*expected_best(probabilities)) == pytest.approx(best)


def test_a_stretch_of_a_long_talk_is_no_longer_than_what_it_is_about():
    probabilities = np.full(12 * 60, 0.1)  # three hours
    probabilities[200:212] = 0.6
    assert expected_best(probabilities) == (200, 212)


def test_bm25_prefers_rare_words_and_short_documents():
    documents = [Counter(["dog", "cat"]), Counter(["dog"] * 9 + ["cat"]), Counter(["dog"])]
    scores = bm25("cat", documents)
    assert scores[0] > scores[1] > scores[2] == 0
    assert bm25("cat", documents).max() > bm25("dog", documents).max()
