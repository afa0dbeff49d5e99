"""Lookup: what is said and written is searched before anything is looked at."""

from __future__ import annotations

import json

import pytest
from support.footages import TestFootage

from longtake.methods.lookup.method import NOT_FOUND, Lookup, everything
from longtake.models.backends.scripted import ScriptedChat
from longtake.session.asking import solve
from longtake.steps.run import Run
from longtake.types import Line, Question, Segment

SAID = [
    Line(Segment(10, 12), "welcome to the harbour"),
    Line(Segment(12, 15), "the golden compass weighs twelve stones"),
    Line(Segment(15, 18), "and nobody could lift it"),
    Line(Segment(80, 84), "the compass was sold to Leo at the end"),
]
QUESTION = Question("How heavy is the golden compass?", ("ten stones", "twelve stones"))


@pytest.fixture
def footage():
    return TestFootage(100, lines=SAID)


def asked(reply, question, footage, **fields):
    prompts = []

    def script(messages, options):
        prompts.append(messages[-1].text)
        return reply if isinstance(reply, str) else json.dumps(reply)

    run = Run({"llm": ScriptedChat(script)})
    return solve(Lookup(**fields), footage, question, run), prompts


def test_the_answer_quotes_the_passage_it_rests_on(footage):
    result, prompts = asked({"passages": [1], "choice": "B"}, QUESTION, footage, neighbours=0)
    assert result.answer.choice == "B"
    (cited,) = result.answer.evidence
    assert (cited.segment, cited.source) == (Segment(12, 15), "speech")
    assert cited.text == "the golden compass weighs twelve stones"
    assert len(prompts) == 1
    assert "[00:00:12] speech: the golden compass" in prompts[0]


def test_neighbours_come_along(footage):
    _, prompts = asked({"passages": [1], "choice": "B"}, QUESTION, footage, max_lines=1)
    assert "welcome to the harbour the golden compass weighs twelve stones and nobody" in prompts[0]


def test_nothing_that_bears_on_the_question_is_an_abstention_without_a_call(footage):
    question = Question("Which xylophone does Ruprecht polish?")
    result, prompts = asked({"passages": [1], "answer": "his own"}, question, footage)
    assert (result.answer.status, result.answer.reason) == ("abstained", NOT_FOUND)
    assert prompts == []


@pytest.mark.parametrize(
    "reply",
    [
        {"passages": [], "choice": "B"},
        {"passages": [9], "choice": "B"},
        {"passages": [1], "choice": None},
        "I do not know.",
    ],
)
def test_an_answer_that_names_no_passage_is_not_given(reply, footage):
    result, _ = asked(reply, QUESTION, footage)
    assert result.answer.status == "abstained"
    assert result.answer.evidence == ()


def test_temporal_words_select_a_stretch(footage):
    question = Question("At the end of the film, what happens to the compass?")
    _, prompts = asked({"passages": [1], "answer": "sold"}, question, footage)
    assert "sold to Leo" in prompts[0]
    assert "twelve stones" not in prompts[0]


def test_rephrasings_are_searched_too(footage):
    replies = iter([{"queries": ["nobody lift"]}, {"passages": [1], "answer": "too heavy"}])
    run = Run({"llm": ScriptedChat(lambda *_: json.dumps(next(replies)))})
    method = Lookup(rephrasings=1, neighbours=0, max_lines=1)
    answer = solve(method, footage, Question("Why did it stay where it was?"), run).answer
    assert answer.evidence[0].text == "and nobody could lift it"


def test_speech_and_text_never_share_a_passage(footage):
    sources = {source for source, _ in everything(footage, None)}
    assert sources <= {"speech", "onscreen"}
