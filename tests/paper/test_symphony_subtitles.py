"""Symphony beside its supplement: the subtitle agent."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.footages import TestFootage
from support.orchestra import Script, finish, plan, play

from longtake.llm.chat import Reply
from longtake.methods.symphony.method import Symphony
from longtake.methods.symphony.perception import pieces
from longtake.types import Line, Segment


def said(*texts):
    return [Line(Segment(10.0 * n, 10.0 * n + 3), text) for n, text in enumerate(texts)]


def test_the_subtitle_agent_passes_on_lines_that_the_film_has():
    script = Script(
        [plan("subtitles"), finish()],
        subtitles=lambda _: {
            "lines": [
                {"start": "00:00:10", "end": "00:00:13", "text": "The toy is on the sofa"},
                {"start": "00:00:20", "end": "00:00:23", "text": "wholly invented words"},
            ],
            "entities": ["toy"],
            "sentiment": "fond",
            "topic": "a toy",
        },
    )
    footage = TestFootage(
        600, lines=said("Good morning.", "The toy is on the sofa.", "Good night.")
    )
    result, heard = play(script, footage)
    assert "[00:00:10] The toy is on the sofa." in script.history(1)
    assert "invented" not in script.history(1)
    assert "Mentioned: toy (fond)" in script.history(1)
    assert "About: a toy" in script.history(1)
    assert [event.data["text"] for event in heard.notes("line_not_in_film")] == [
        "wholly invented words"
    ]
    (cited,) = [e for e in result.answer.evidence if e.source == "speech"]
    assert (cited.segment.start, cited.text) == (10.0, "The toy is on the sofa.")


def test_long_subtitles_are_read_in_pieces_and_merged():
    lines = said(*(f"line number {n} of many" for n in range(60)))
    script = Script(
        [plan("subtitles"), finish()],
        context=4000,
        subtitles=lambda text: {
            "lines": [
                {"start": time, "end": time, "text": line}
                for time, line in re.findall(r"\[([\d:]+)\] (.* [05] of many)", text)
            ],
            "entities": ["many"],
            "sentiment": "",
            "topic": "counting",
        },
    )
    play(script, TestFootage(600, lines=lines), Symphony(subtitle_tokens=300))
    assert len(script.shown["subtitles"]) > 1
    told = [m.text for messages in script.shown["subtitles"] for m in messages[-1:]]
    assert all(sum(f"number {n} of" in text for text in told) == 1 for n in range(60))
    assert "line number 0 of many" in script.history(1)
    assert script.history(1).count("About: counting") == 1


@given(st.lists(st.text("ab ", min_size=1, max_size=300), max_size=30), st.integers(1, 200))
def test_pieces_are_all_lines_in_order(texts, most):
    lines = said(*texts)
    assert [line for piece in pieces(lines, most) for line in piece] == lines


def test_without_subtitles_it_says_so():
    script = Script([plan("subtitles"), finish()])
    play(script)
    assert "There are no subtitles" in script.history(1)


SOFA = '{"start": "00:00:10", "end": "00:00:13", "text": "The toy is on the sofa."}'
NIGHT = '{"start": "00:00:20", "end": "00:00:23", "text": "Good night."}'


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        # cut off among the lines, after them, and in a text
        (f'{{"lines": [{SOFA}, {NIGHT}, {{"start": "00:00:3', [10.0, 20.0]),
        (f'{{"lines": [{SOFA}, {{"start": "00:00:20", "end": "00:00:23", "text": "Good', [10.0]),
        (f'{{"lines": [{SOFA}], "entities": ["toy", "so', [10.0]),
        (f'{{"lines": [{SOFA}], "entities": ["toy"], "topic": "what is on the', [10.0]),
        # the same names again and again
        (f'{{"lines": [{SOFA}], "entities": ["toy", ' + '"sofa", ' * 60, [10.0]),
    ],
)
def test_lines_that_were_quoted_whole_are_kept(text, quoted):
    script = Script([plan("subtitles"), finish()], subtitles=lambda _: Reply(text, finish="length"))
    lines = said("Good morning.", "The toy is on the sofa.", "Good night.")
    result, _ = play(script, TestFootage(600, lines=lines))
    assert len(script.shown["subtitles"]) == 1  # read at once
    cited = [e.segment.start for e in result.answer.evidence if e.source == "speech"]
    assert cited == quoted


def test_a_first_line_that_was_cut_off_is_not_a_line():
    text = '{"lines": [{"start": "00:00:10", "end": "00:00:13", "text": "The toy'
    script = Script([plan("subtitles"), finish()], subtitles=lambda _: Reply(text, finish="length"))
    play(script, TestFootage(600, lines=said("Good morning.", "The toy is on the sofa.")))
    assert "sofa." not in script.history(1)
