"""Lines ranked by words and meaning, and grouped with their neighbours."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtake.algorithms import lexical
from longtake.algorithms.passages import (
    QUOTED,
    SHORTEST,
    K,
    by_moment,
    by_words,
    find,
    match,
    occurrences,
    reciprocal_rank,
    said_at,
    squeeze,
    with_neighbours,
)
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


def test_the_language_of_a_long_text_is_known_from_its_beginning(monkeypatch):
    asked = []
    monkeypatch.setattr("wordfreq.zipf_frequency", lambda *word: asked.append(word) or 1.0)
    lexical.language_of("el perro corre por la calle " * 10_000)
    assert 0 < len(asked) < 10_000


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


@pytest.mark.parametrize(
    ("rankings", "fused"),
    [
        (
            [["a", "b", "c"], ["b", "d"]],
            {"b": 1 / 62 + 1 / 61, "a": 1 / 61, "d": 1 / 62, "c": 1 / 63},
        ),
        ([["a", "a", "b"]], {"a": 1 / 61, "b": 1 / 62}),  # an item counts once per ranking
        ([], {}),
    ],
)
def test_reciprocal_rank_by_hand(rankings, fused):
    ranked = reciprocal_rank(rankings)
    assert [item for item, _ in ranked] == list(fused)
    assert dict(ranked) == pytest.approx(fused)


@given(st.lists(st.lists(st.integers(0, 9), unique=True), min_size=1, max_size=4))
def test_no_score_exceeds_a_first_place_in_every_ranking(rankings):
    fused = reciprocal_rank(rankings)
    assert {item for item, _ in fused} == {item for ranking in rankings for item in ranking}
    assert all(0 < score <= len(rankings) / (K + 1) + 1e-12 for _, score in fused)


def test_sources_that_agree_on_a_moment_raise_its_score_each_once():
    times = {"frame": [10.0, 50.0, 51.5], "speech": [51.0, 90.0], "onscreen": [10.5]}
    fused = by_moment(times, apart=2)
    assert [moment[0] for moment in fused] == [10.0, 51.0, 90.0]
    assert fused[0][2] == {"frame": 10.0, "onscreen": 10.5}
    assert fused[1][1:] == (pytest.approx(1 / 62 + 1 / 61), {"speech": 51.0, "frame": 50.0})


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
