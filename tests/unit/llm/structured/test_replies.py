import json
import time
from contextlib import suppress
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field
from support.replyfuzz import cases, outcomes

from longtake.llm.chat import Reply, ToolCall
from longtake.llm.structured.reader import UnreadableReply, cut_loop, parse_reply, split_thinking
from longtake.llm.structured.schema import (
    Brief,
    Letter,
    bounded_schema,
    decisive_fields,
    in_words,
    schema_for,
)
from longtake.types import Question

QUESTION = Question("Who?", ("the man", "the dog", "the cat"))


class Guess(BaseModel):
    choice: Letter = None
    reason: str = ""


class Scored(BaseModel):
    choice: Letter = None
    score: int = Field(ge=1, le=10)
    mood: Literal["good", "bad"] = "good"


class Wish(BaseModel):
    segment: int
    what: str


class Wishes(BaseModel):
    frames: list[Wish]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        ('{"choice": "A or B"}', "exactly one letter of A, B, C"),
        ('{"reason": "no idea"}', "exactly one letter"),
        ('{"choice": "B', "cut off inside choice"),
        ('{"choice": "A"} or {"choice": "B"}', "2 different answers"),
        ('{"choice": "A" "reason": {"choice": "B"}}', "two values for 'choice'"),
        ('{"choice": "A", "choice": "B"}', "cannot be read"),
        ('{"tool": "look", "arguments": {"at": 3}}', "none of the fields"),
        ("I would say it is A or B", "exactly one letter"),
    ],
)
def test_an_answer_that_was_not_given_is_not_found(text: str, why: str) -> None:
    with pytest.raises(UnreadableReply, match=why):
        parse_reply(text, Guess, QUESTION)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"choice": "A", "score": "high"}', "score: "),
        ('{"choice": "A", "score": 11}', "less than or equal to 10"),
        ('{"choice": "A", "score": 8', "cut off inside score"),
        ('{"choice": "A", "mood": "go', "cut off inside mood"),
        ("A", "no JSON object"),
    ],
)
def test_wrong_types_say_what_is_wrong(text: str, why: str) -> None:
    with pytest.raises(UnreadableReply, match=why):
        parse_reply(text, Scored, QUESTION)


def test_a_list_that_was_cut_off_keeps_its_whole_items() -> None:
    whole = '{"frames": [{"segment": 1, "what": "a cup"}, {"segment": 2, "what": "a ca'
    assert [wish.what for wish in parse_reply(whole, Wishes).frames] == ["a cup"]
    lacking = '{"frames": [{"segment": 1, "what": "a cup"}, {"segment": 2'
    assert [wish.what for wish in parse_reply(lacking, Wishes).frames] == ["a cup"]
    with pytest.raises(UnreadableReply):
        parse_reply('{"frames": [{"segment": 1', Wishes)


def test_open_ended_questions_have_no_letter() -> None:
    open_ended = Question("Why?")
    assert parse_reply('{"choice": "B", "reason": "so"}', Guess, open_ended).choice is None
    assert "choice" not in schema_for(Guess, open_ended)["properties"]
    assert "choice" not in schema_for(Guess)["properties"]


def test_the_schema_names_the_letters_and_needs_one() -> None:
    schema = schema_for(Guess, QUESTION)
    assert schema["properties"]["choice"] == {"type": "string", "enum": ["A", "B", "C"]}
    assert schema["required"] == ["choice"]

    class Described(BaseModel):
        choice: Letter = Field(None, description="the best option")

    described = schema_for(Described, QUESTION)["properties"]["choice"]
    assert described == {**schema["properties"]["choice"], "description": "the best option"}
    assert schema_for(Guess, Question("?", ("x", "y")))["properties"]["choice"]["enum"] == [
        "A",
        "B",
    ]
    assert schema_for(Wishes)["$defs"]["Wish"]["additionalProperties"] is False
    json.dumps(schema)


@pytest.mark.parametrize(
    ("text", "thinking", "answer"),
    [
        ("<think>A? no</think>B", "A? no", "B"),
        ("A? no</think>B", "A? no", "B"),
        ("<think>A? no", "A? no", ""),
        ("<THINKING>x</THINKING>\n{}", "x", "{}"),
        ("plain", "", "plain"),
        ("<think>a</think>B<think>c</think>", "a\nc", "B"),
    ],
)
def test_thinking_is_never_the_answer(text: str, thinking: str, answer: str) -> None:
    assert split_thinking(text) == (thinking, answer)


def test_a_form_in_words_says_all_that_is_needed():
    class Inner(BaseModel):
        """A part."""

        number: int = Field(ge=1, le=3)
        note: str = Field("", description="why")

    class Outer(BaseModel):
        """The whole."""

        reason: Brief
        parts: list[Inner] = Field(max_length=5)
        names: list[str]
        groups: list[list[int]] = Field(min_length=1)
        mood: Literal["good", "bad"]
        when: str | None = Field(None, description="a clock")
        sure: bool
        share: float = Field(ge=0)
        choice: Letter = None

    assert in_words(schema_for(Outer, QUESTION)).splitlines() == [
        '"reason": text, at most 25 words',
        '"parts": a list of at most 5 objects, each with '
        '"number": a whole number from 1 to 3 and "note": text (why)',
        '"names": a list of texts',
        '"groups": a list of at least 1 lists of whole numbers',
        '"mood": one of "good", "bad"',
        '"when": text or null (a clock)',
        '"sure": true or false',
        '"share": a number, at least 0',
        '"choice": one of "A", "B", "C"',
    ]


def test_decisive_fields_are_those_without_which_a_reply_says_nothing():
    class Reasoned(BaseModel):
        reason: Brief
        choice: Letter = None

    class Reason(BaseModel):
        reason: str

    assert decisive_fields(Reasoned, QUESTION) == ["choice"]
    assert decisive_fields(Reason) == ["reason"]
    assert decisive_fields(Scored, QUESTION) == ["choice", "score"]


def test_a_schema_that_closes_bounds_its_texts_and_nothing_else():
    class Said(BaseModel):
        choice: Letter = None
        reason: str
        comment: str = Field("", max_length=7)
        notes: list[Wish] = []

    schema = schema_for(Said, QUESTION)
    bounded = bounded_schema(schema, 500)
    assert (
        bounded["properties"]["reason"]["maxLength"] == 500
    )  # two texts of unknown length share 1,000 characters
    assert bounded["$defs"]["Wish"]["properties"]["what"]["maxLength"] == 500
    assert bounded["properties"]["comment"]["maxLength"] == 7
    assert bounded["properties"]["choice"] == schema["properties"]["choice"]
    assert "maxLength" not in schema["properties"]["reason"]
    assert bounded_schema(schema, 8)["properties"]["reason"]["maxLength"] == 60


@pytest.mark.parametrize(
    "piece",
    ['{"choice": "A" ', "{/*", "choice: A\n", "| choice |", "<choice>", "The answer is ", "A. ",
     '"choice": ', "[", "(", "* ", "\\boxed{", "a", " ", "\n", "-", "A or "],
)  # fmt: skip
def test_reading_takes_time_linear_in_the_text(piece: str) -> None:
    text = piece * (60_000 // len(piece))
    began = time.process_time()
    for kind in (Guess, Scored, Wishes):
        for cut in (False, True):
            with suppress(UnreadableReply):
                parse_reply(text, kind, QUESTION, cut=cut)
    assert time.process_time() - began < 3


def test_deep_json_is_unreadable_and_never_exhausts_the_stack() -> None:
    for depth in (70, 400, 990, 50_000):
        for left, right in (('{"choice":', "}"), ("[", "]"), ('{"frames":[', "]}")):
            for kind in (Guess, Wishes):
                # a letter in brackets is a letter
                with pytest.raises(UnreadableReply) if left != "[" else suppress(UnreadableReply):
                    parse_reply(left * depth + '"A"' + right * depth, kind, QUESTION)


def test_a_reply_is_clean_whoever_makes_it() -> None:
    half = json.loads('"\\ud83d"')
    reply = Reply(f"B {half}", thinking=half, tool_calls=(ToolCall("1", "look", half),))
    for text in (reply.text, reply.thinking, reply.tool_calls[0].arguments):
        text.encode()
        assert "�" in text


NUMBER = 2_000
"""``benchmarks/replies.py --fuzz`` tries more."""


def test_nothing_is_misread() -> None:
    read = list(outcomes(1, NUMBER))
    wrong = [one for one in read if one.misread]
    assert not wrong, "\n".join(
        f"{one.case.text!r} of {one.case.question} was read as {one.read}" for one in wrong[:5]
    )
    # lines are not read, and must not be misread
    whole = [
        one
        for one in read
        if one.case.truth is not None and not one.case.cut and not one.case.how.endswith("as_lines")
    ]
    share = sum(one.abstained for one in whole) / len(whole)
    print(f"{share:.1%} of the replies in JSON or in a word, whole, could not be read")
    assert share < 0.12


def test_cases_repeat() -> None:
    assert list(cases(7, 50)) == list(cases(7, 50)) != list(cases(8, 50))


def test_a_loop_is_cut_after_its_first_round() -> None:
    looped = '{"reason": "The man walks: ' + "He looks at the dog. " * 20 + "He looks at"
    assert cut_loop(looped) == '{"reason": "The man walks: He looks at the dog.'
    assert cut_loop("B\n" * 100) == "B\n"
    assert cut_loop('{"choice": "B"}\n' * 30) == '{"choice": "B"}\n'


@pytest.mark.parametrize(
    "text",
    [
        "",
        "B",
        "A dog barks at a man, and the man laughs at the dog.",
        "no, no, no, no",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|",
        "-" * 500,
        "Wait for it" + "." * 300,
        '{"reason": "' + "on and on and " * 40 + '", "choice": "B"}',
        " ".join(f"frame {number} shows a dog." for number in range(40)),
        '{"a": [' + ", ".join('{"segment": 1}' for _ in range(3)) + "]}",
    ],
)
def test_what_ends_otherwise_is_no_loop(text: str) -> None:
    assert cut_loop(text) is None


@given(
    st.text("abc \n", max_size=60), st.text("abc ", min_size=1, max_size=40), st.integers(30, 60)
)
def test_what_is_kept_is_the_beginning_and_the_rest_is_the_loop(before, phrase, times) -> None:
    text = before + phrase * times
    kept = cut_loop(text)
    if not phrase.strip() or len((phrase * times).rstrip()) < 120:
        return
    assert kept is not None
    assert text.startswith(kept)
    assert len(kept) <= len(before) + 2 * len(phrase) + 1


def test_long_texts_take_little_time() -> None:
    began = time.process_time()
    for text in ("a" * 400_000, "ab" * 200_000, "a" * 200_000 + "b" * 200_000):
        cut_loop(text)
    assert time.process_time() - began < 2
