"""Answers of several sentences carry footnotes; one sentence needs none."""

import pytest

from longtake.agents.answer import claims, sentences
from longtake.runner.rendering import with_footnotes
from longtake.types import Answer, Evidence, Segment

COMPASS = Evidence(Segment(1, 2), "speech", "the golden compass weighs twelve stones")
LEO = Evidence(Segment(8, 9), "speech", "it was sold to Leo in the harbour")
ANSWER = Answer(
    text="The compass weighs twelve stones. It was sold to Leo. Nobody liked xylophones.",
    evidence=(LEO, COMPASS),
)


def test_each_claim_cites_what_holds_its_words():
    assert [claim.citations for claim in claims(ANSWER)] == [(1,), (0,), ()]


def test_footnotes_are_the_numbers_of_the_listed_evidence():
    assert with_footnotes(ANSWER) == (
        "The compass weighs twelve stones. [2] It was sold to Leo. [1] Nobody liked xylophones."
    )


@pytest.mark.parametrize(
    "answer",
    [Answer(text="It was sold to Leo.", evidence=(LEO,)), Answer("A", "One. Two."), Answer()],
)
def test_one_sentence_or_a_chosen_option_is_no_list_of_claims(answer):
    assert claims(answer) == ()


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("It costs 2.5 coins. Dr. Smith paid.", ["It costs 2.5 coins.", "Dr. Smith paid."]),
        ("Who? The John D. MacArthur fund!", ["Who?", "The John D. MacArthur fund!"]),
        ("no end", ["no end"]),
        ("  ", []),
    ],
)
def test_sentences(text, parts):
    assert sentences(text) == parts
