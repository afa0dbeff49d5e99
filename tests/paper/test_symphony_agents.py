"""Symphony beside its supplement: grounding, visual perception, and their limits."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.footages import TestFootage
from support.orchestra import QUESTION, Script, finish, plan, play

from longtake.llm.chat import Reply
from longtake.methods.symphony.grounding import Grounding, cut, named_stretches
from longtake.methods.symphony.method import Symphony
from longtake.tracing.events import ToolCalled
from longtake.types import Question, Segment

# Grounding


def test_retrieve_returns_the_fifteen_ten_second_clips_closest_to_the_cue():
    script = Script([plan("grounding"), plan("visual_perception"), finish()])
    _, heard = play(script)
    (call,) = [event for event in heard.of(ToolCalled) if event.name == "retrieve"]
    lines = call.result.splitlines()
    assert len(lines) == Grounding().retrieved_clips == 15
    assert lines[0].startswith("00:05:00 to 00:05:10")
    assert call.arguments == {"cue": "a toy"}
    assert "vlm" not in {event.name for event in heard.of(ToolCalled)}


def test_every_minute_is_scored_on_thirty_frames_and_all_above_one_are_kept():
    script = Script(
        [plan("grounding"), plan("visual_perception"), finish()],
        tool="vlm_score",
        score=lambda times: {0: 2, 5: 4}.get(int(times[0] // 60), 1),
    )
    play(script)
    assert len(script.shown["score"]) == 10
    shown = sorted(tuple(script.times("score", n)) for n in range(10))
    assert {len(times) for times in shown} == {30}
    assert all(60 * n <= min(times) <= max(times) < 60 * (n + 1) for n, times in enumerate(shown))
    report = script.history(1)
    assert report.index("00:05:00 to 00:06:00 (score 4): a room why") < report.index(
        "00:00:00 to 00:01:00 (score 2)"
    )
    assert "00:02:00 to 00:03:00" not in report


def test_a_clip_whose_score_cannot_be_read_is_left_out():
    script = Script(
        [plan("grounding"), finish()],
        tool="vlm_score",
        score=lambda times: "hm" if times[0] < 60 else 3,
    )
    _, heard = play(script, TestFootage(120))
    assert [event.data["start"] for event in heard.notes("clip_not_scored")] == [0.0]


def test_an_unreadable_choice_of_tool_scores():
    script = Script(
        [plan("grounding"), plan("visual_perception"), finish()], tool="a friend", score=lambda _: 1
    )
    play(script, TestFootage(120))
    assert len(script.shown["score"]) == 2
    assert "nothing in the film seems relevant" in script.history(1)


def test_the_film_is_not_scored_twice_by_one_instruction_nor_more_often_than_allowed():
    same = [plan("grounding", "find the sofa")] * 2
    script = Script(
        [*same, *(plan("grounding", f"find sofa {n}") for n in range(4)), finish()],
        tool="vlm_score",
        score=lambda _: 1,
    )
    _, heard = play(script, TestFootage(120))
    assert len(script.shown["score"]) == 2 * Grounding().max_scorings
    assert [event.data["why"] for event in heard.notes("not_scored_again")] == [
        "same instruction",
        "limit reached",
        "limit reached",
    ]


def test_a_question_that_names_its_time_needs_no_grounding():
    script = Script([plan("grounding"), plan("visual_perception"), finish()])
    question = Question("What happens between 00:03:20 and 00:04:00?", QUESTION.options)
    _, heard = play(script, question=question)
    assert "ground" not in script.shown
    assert len(heard.notes("question_names_its_time")) == 1
    assert "00:03:20 to 00:04:00" in script.history(1)


def test_times_in_questions():
    assert named_stretches("from 1:00 to 2:30", 600) == [Segment(60, 150)]
    assert named_stretches("at 00:05:00?", 600) == [Segment(270, 330)]
    assert named_stretches("at 59:00?", 600) == []  # not in this film
    assert named_stretches("a ratio of 4:3, or 12:99", 6000) == []
    assert named_stretches("What is it?", 600) == []
    assert named_stretches("What happens until about 2:00?", 600) == [Segment(90, 150)]


@pytest.mark.parametrize(
    "text",
    [
        "a ratio of 16:09?",
        "Who quotes John 3:16?",
        "The clock shows 10:30. Who enters?",
        "8:15 to 9",
    ],
)
def test_other_numbers_with_a_colon_are_not_times_of_the_film(text):
    assert named_stretches(text, 6000) == []


def test_the_shortcut_by_named_times_can_be_switched_off():
    script = Script([plan("grounding"), plan("visual_perception"), finish()])
    question = Question("What happens between 00:03:20 and 00:04:00?", QUESTION.options)
    method = Symphony(grounding=Grounding(named_times=False))
    _, heard = play(script, question=question, method=method)
    assert len(script.shown["ground"]) == 1
    assert not heard.notes("question_names_its_time")


def test_a_clip_that_settles_the_question_is_asked_for_the_answer():
    plans = [plan("grounding"), plan("visual_perception"), finish()]
    script = Script(plans, tool="vlm_score", score=lambda _: 4)
    play(script)
    told = script.shown["score"][0][-1].text
    assert "for 4 also give the answer" in told
    assert "for the first time" in told


@given(st.floats(0.5, 20_000), st.sampled_from([10.0, 30.0, 60.0]))
def test_clips_cover_the_film_once(duration, seconds):
    clips = cut(duration, seconds)
    assert clips[0].start == 0
    assert clips[-1].end == duration
    assert all(a.end == b.start for a, b in pairwise(clips))
    assert all(clip.duration <= 1.5 * seconds for clip in clips)
    assert len(clips) <= Grounding(scored_seconds=seconds).calls(duration)


def test_a_report_leaves_the_planner_room_on_four_hours_of_film():
    script = Script(
        [plan("grounding"), plan("visual_perception"), finish()],
        tool="vlm_score",
        uses=[("frame_inspector", {"start": "02:00:00", "end": "02:01:00"})],
        context=8000,
        score=lambda times: json.dumps(
            {
                "caption": "a long story " * 40,
                "reason": "x",
                "score": 3 if int(times[0]) != 7200 else 4,
            }
        ),
    )
    result, heard = play(script, TestFootage(14_400))
    assert len(script.shown["score"]) == 240
    (left,) = heard.notes("claims_left_out")
    assert left.data["kept"] < left.data["of"] == 240
    assert "02:00:00 to 02:01:00 (score 4)" in script.history(1)  # the best stays
    assert result.answer.choice == "B"


# Visual perception


def looks(uses, *, seconds=3600, native=True):
    script = Script([plan("visual_perception"), finish()], uses=uses, native=native)
    _, heard = play(script, TestFootage(seconds, {"a toy": [100, 105, 110]}))
    return script, heard.of(ToolCalled)


def test_the_inspector_takes_forty_frames_and_ten_more_by_cue_beyond_thirty_seconds():
    short, _ = looks(
        [("frame_inspector", {"start": "00:01:00", "end": "00:01:10", "cue": "a toy"})]
    )
    assert short.times("look") == [
        60 + number / 4 for number in range(40)
    ]  # more than the grid holds
    between, _ = looks([("frame_inspector", {"start": 90, "end": 125, "cue": "a toy"})])
    assert len(between.times("look")) == 50
    assert 100.0 in between.times("look")  # by the cue: the forty come at 99.625 and 100.5
    cued, _ = looks([("frame_inspector", {"start": 70, "end": 130, "cue": "a toy"})])
    assert len(cued.times("look")) == 50
    assert {100.0, 105.0, 110.0} <= set(cued.times("look"))


def test_the_inspector_widens_what_is_too_short_and_cuts_what_is_too_long():
    _, (call,) = looks([("frame_inspector", {"start": "00:01:00", "end": "00:01:02"})])
    assert call.result.startswith("00:00:56 to 00:01:06")
    script, (call,) = looks([("frame_inspector", {"start": "00:01:00", "end": "00:03:00"})])
    assert call.result.startswith("00:01:00 to 00:02:00 (only the first 60 seconds were looked at)")
    assert max(script.times("look")) < 120
    script, (call,) = looks([("frame_inspector", {"start": "00:01:00", "end": "00:30:00"})])
    assert "too long" in call.error
    assert "look" not in script.shown


def test_the_summary_takes_forty_frames_of_the_film_or_of_a_stretch_over_three_minutes():
    script, _ = looks([("global_summary", {})])
    assert len(script.times("look")) == 40
    assert (script.times("look")[0], script.times("look")[-1]) == (0, 3599)
    script, _ = looks([("global_summary", {"start": "00:10:00", "end": "00:20:00"})])
    assert 600 <= min(script.times("look")) <= max(script.times("look")) < 1200
    _, (call,) = looks([("global_summary", {"start": "00:10:00", "end": "00:11:00"})])
    assert "use frame_inspector" in call.error
    script, _ = looks([("global_summary", {})], seconds=120)  # all of a short film is a whole film
    assert len(script.times("look")) == 40


def test_several_segments_share_forty_frames_by_their_length():
    script, _ = looks(
        [
            (
                "multi_segment",
                {
                    "intervals": [
                        {"start": "00:01:00", "end": "00:01:30"},
                        {"start": "00:10:00", "end": "00:11:30"},
                    ]
                },
            )
        ]
    )
    times = np.array(script.times("look"))
    assert len(times) == 40
    assert ((times >= 60) & (times < 90)).sum() == 10
    many = [{"start": 10 * n, "end": 10 * n + 1} for n in range(20)] + [
        {"start": 1000, "end": 3000}
    ]
    script, _ = looks([("multi_segment", {"intervals": many})])
    assert len(script.times("look")) == 40
    assert {10.0 * n for n in range(20)} <= set(script.times("look"))  # none is passed over
    _, (call,) = looks([("multi_segment", {"intervals": []})])
    assert "at least one" in call.error


def test_after_five_tools_it_is_told_to_answer():
    script, calls = looks(
        [("frame_inspector", {"start": n, "end": n + 10}) for n in range(0, 90, 10)]
    )
    assert len(calls) == 5
    assert "No more tools" in script.shown["perceive"][-1][-1].text


def test_native_calls_and_words_leave_the_same_trace():
    uses = [
        ("frame_inspector", {"start": "3:21", "end": "3:31"}),
        ("global_summary", {}),
        ("nonsense", {"a": 1}),
    ]
    natively, in_words = looks(list(uses))[1], looks(list(uses), native=False)[1]
    assert [(c.name, c.arguments, c.result, c.error) for c in natively] == [
        (c.name, c.arguments, c.result, c.error) for c in in_words
    ]
    assert len(natively) == 3


def test_findings_of_an_agent_that_looked_at_nothing_are_not_passed_on():
    script, calls = looks([("frame_inspector", {"start": "00:01:00", "end": "00:30:00"})])
    assert [call.error is None for call in calls] == [False]
    assert "a toy lies on the sofa" not in script.history(1)
    assert "No part of the film was looked at." in script.history(1)
    _, heard = play(Script([plan("visual_perception"), finish()]))
    (told,) = heard.notes("findings_without_a_look")
    assert told.data["findings"] == "[00:00:30] a toy lies on the sofa"


@pytest.mark.parametrize("finish_reason", ["length", "stop"])
def test_findings_are_read_as_far_as_they_go(finish_reason):
    """A report that was cut off, or that repeats itself, says what it says up to there."""
    text = '{"findings": "[00:00:30] a toy lies on the sofa. ' + "It is red. It is red. " * 20
    script = Script([plan("visual_perception"), finish()], uses=[("global_summary", {})])
    act = script.perceive
    script.perceive = lambda messages, options: (
        act(messages, options) if script.uses else Reply(text, finish=finish_reason)
    )
    play(script)
    assert "a toy lies on the sofa. It is red" in script.history(1)
    assert script.history(1).count("It is red") == 1


def test_findings_that_cannot_be_read_leave_what_was_seen():
    script = Script([plan("visual_perception"), finish()], uses=[("global_summary", {})])
    act = script.perceive
    script.perceive = lambda messages, options: act(messages, options) if script.uses else "..."
    play(script)
    assert "something at 0" in script.history(1)
