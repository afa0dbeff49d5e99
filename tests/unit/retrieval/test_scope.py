import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtake.retrieval.scope import clipped, scope
from longtake.types import Segment

HOUR = 3600.0


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("What does the baby do at the end?", 2700, 3600),
        ("How does she react in the end of the video?", 2700, 3600),
        ("What is shown at the very end of this short film?", 2700, 3600),
        ("What is he holding at the beginning of the video?", 0, 900),
        ("Who speaks near the start?", 0, 900),
        ("What happens in the middle of the video?", 1200, 2400),
        ("What does the dog do in the middle?", 1200, 2400),
        ("Why does she stop halfway through", 1200, 2400),
        ("What does she do halfway through the film?", 1200, 2400),
        ("What does the dog do nearing the end?", 2700, 3600),
        ("In the first half, who scores?", 0, 1800),
        ("Who is injured in the second half of the video?", 1800, 3600),
        ("What happens in the second third of the film?", 1200, 2400),
        ("Which song plays in the final quarter?", 2700, 3600),
        ("What happens in the first 10 minutes?", 0, 600),
        ("What is said in the last two minutes of the video?", 3480, 3600),
        ("What is seen in the opening 30 seconds?", 0, 30),
        ("Who enters after minute 20?", 1200, 3600),
        ("Who leaves before minute 20?", 0, 1200),
        ("What does he cook after 12:30?", 750, 3600),
        ("What does he cook before the 00:12:30 mark?", 0, 750),
        ("What happens between 10:00 and 12:00?", 600, 720),
        ("What happens from minute 3 to minute 5?", 180, 300),
        ("What is on the table at 10:00?", 570, 630),
        ("What is on the table in minute 7?", 390, 510),
        ("Who comes after the first 5 minutes?", 300, 3600),
        ("What happens before the last quarter?", 0, 2700),
        ("Who appears after minute 5 in the first half?", 300, 1800),
    ],
)
def test_questions_that_name_a_part_of_the_film(text, start, end):
    assert scope(text, HOUR) == Segment(start, end)


@pytest.mark.parametrize(
    "text",
    [
        "What is the man doing?", "What is tied at the end of the rope?",
        "Who wins at the end of the race?", "What is the ending like?",
        "Who scores in the first half of the match?", "What did he do for the first time?",
        "What happens in the first half hour of the party?", "Who is in the middle of the road?",
        "Why does the man in the middle laugh?", "Who comes after minute 90?",  # outside the film
        "What happens at the beginning and at the end?",  # no overlap
        "He runs from beginning to end; why?", "Which end does she hold?",
    ],
)  # fmt: skip
def test_questions_that_name_no_part_of_the_film(text):
    assert scope(text, HOUR) is None


@given(st.text(max_size=60), st.floats(0.1, 20_000))
def test_a_scope_lies_inside_the_film(text, duration):
    for phrase in (text, f"{text} in the last 5 minutes", f"after minute 2 {text}"):
        found = scope(phrase, duration)
        assert found is None or (0 <= found.start < found.end <= duration)


def test_blocks_are_cut_to_the_scope():
    blocks = [Segment(0, 10), Segment(10, 30), Segment(30, 50)]
    assert clipped(blocks, Segment(20, 40)) == [Segment(20, 30), Segment(30, 40)]
    assert clipped(blocks, Segment(10, 30)) == [Segment(10, 30)]
