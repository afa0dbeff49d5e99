"""A check that pays for one picture shows the moment that tells most."""

import json

import pytest
from support.footages import TestFootage

from longtake.agents.run import Run
from longtake.agents.verify import (
    MOST,
    Candidate,
    Proposal,
    check,
    gather,
    likeliest,
    numbered,
    redirected,
)
from longtake.llm.backends.scripted import ScriptedChat
from longtake.llm.chat import Card, Reply, images
from longtake.types import Answer, Evidence, Question, Segment, Usage

QUESTION = Question("What does the blue sign say?", ("NORTH GATE", "SOUTH GATE"))
PROPOSAL = Proposal(QUESTION.text, "NORTH GATE")
CARD = Card("scripted", vision=True, picture_tokens=256)
ONE_PICTURE = Usage(calls=1, tokens_in=8400)
"""What 32 such pictures in one call use: a check of it pays for one."""


def film(together=(), alone=()):
    """A film whose pictures at some seconds resemble the proposal, or the question alone."""
    return TestFootage(200, {PROPOSAL.text: list(together), PROPOSAL.question: list(alone)})


def frames(count):
    return tuple(Evidence(Segment(t, t), "frame") for t in range(0, 5 * count, 5))


def shown_in_check(answer, footage, usage=ONE_PICTURE):
    """The times of the pictures that the check of an answer shows."""
    nothing = json.dumps({"supports": [], "contradicts": []})
    chat = ScriptedChat([Reply("", usage=usage), nothing], card=CARD)
    run = Run({"vlm": chat})
    run["vlm"].complete([], CARD.options)
    check(answer, footage, QUESTION, run)
    return [image.time for image in images(chat.asked[-1][0])]


@pytest.mark.parametrize(
    ("cited", "reason", "together", "alone", "tokens", "shown"),
    [
        (32, "a guess", [171], [], 8400, [171.0]),
        # without the answer, the question still finds its moment
        (32, "a guess", [], [183], 8400, [183.0]),
        (MOST, "a guess", [171], [], 8400, [0.0]),  # a method that cites few moments is followed
        (
            32,
            "[00:00:45] it stands there",
            [171],
            [],
            8400,
            [45.0],
        ),  # and so is a reason that names one
        # of two moments that the index cannot tell apart both, as far as the tokens go
        (32, "a guess", [40, 171], [], 8400, [40.0, 171.0]),
        (32, "a guess", [40, 171], [], 7000, [40.0]),
        # the same moment twice tells nothing more
        (32, "a guess", [171, 172], [], 8400, [171.0]),
    ],
)
def test_a_method_that_cites_everything_does_not_choose_the_only_picture(
    cited, reason, together, alone, tokens, shown
):
    answer = Answer("A", "NORTH GATE", reason, evidence=frames(cited))
    usage = Usage(calls=1, tokens_in=tokens)
    assert shown_in_check(answer, film(together, alone), usage) == shown


def test_a_check_that_pays_for_more_pictures_stays_as_it_is():
    answer = Answer("A", "NORTH GATE", "a guess", evidence=frames(32))
    usage = Usage(calls=1, tokens_in=13_000)
    assert shown_in_check(answer, film([171]), usage)[:2] == [0.0, 171.0]


def test_the_answer_on_the_screen_is_shown_beside_the_closest_moment():
    sign = Evidence(Segment(20, 30), "onscreen", "North Gate")
    quoted, closest = likeliest(film([171]), PROPOSAL, [sign])
    # the model can match a picture to its number only if both have the same time
    assert (quoted.line().segment, quoted.frame.time) == (Segment(25, 25), 25.0)
    assert quoted.evidence.segment == sign.segment  # what is cited lasts as long as the sign
    listed = gather(Answer("A", evidence=(sign,)), film(), PROPOSAL, [sign], pictures=True)
    assert numbered(listed)[0] == "1. [00:00:25] North Gate"
    assert (quoted.evidence.text, closest.frame.time) == ("North Gate", 171.0)
    (once,) = likeliest(film([22]), PROPOSAL, [sign])
    assert once.frame.time == 25.0


def test_what_is_said_does_not_need_a_picture():
    said = Evidence(Segment(20, 30), "speech", "the north gate")
    assert [each.frame.time for each in likeliest(film([171]), PROPOSAL, [said])] == [171.0]


def test_only_the_named_part_of_the_film_is_searched():
    question = "What does the sign say at the end of the film?"
    footage = TestFootage(200, {f"{question} GATE": [10], question: [12, 190]})
    (closest,) = likeliest(footage, Proposal(question, "GATE"), [])
    assert closest.frame.time == 190.0


@pytest.mark.parametrize(("spent", "pictures"), [(8400, 2), (7000, 1)])
def test_a_second_picture_is_shown_only_if_a_tenth_pays_for_it(spent, pictures):
    footage = film()
    first, second, cited = [
        Candidate(Evidence(Segment(t, t), "frame"), frame)
        for t, frame in zip((1, 2, 3), footage.at([1, 2, 3]), strict=True)
    ]
    line = Candidate(Evidence(Segment(4, 5), "speech", "a line"))
    run = Run({"vlm": ScriptedChat([Reply("", usage=Usage(calls=1, tokens_in=spent))])})
    run["vlm"].complete([], CARD.options)
    kept = redirected([cited, line], [first, second], CARD, run)
    assert kept == [first, line, second][: pictures + 1]
    assert redirected([cited, line], [], CARD, run) == [cited, line]
