"""Symphony beside its supplement, with a scripted planner and agents."""

import json
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.footages import TestFootage
from support.listening import listening
from support.talking import TalkingFootage

from longtake.agents.run import Run
from longtake.config import BudgetSettings
from longtake.llm.backends.scripted import ScriptedChat
from longtake.llm.chat import Card, Reply, ToolCall, Unsupported, images
from longtake.methods.base import configure
from longtake.methods.symphony.grounding import (
    GROUNDING,
    LEAST_REST,
    PERCEPTION,
    Grounding,
    HistoryEntry,
    cut,
    named_stretches,
    uninspected,
)
from longtake.methods.symphony.method import Symphony
from longtake.methods.symphony.perception import pieces
from longtake.prompts import phrase
from longtake.runner.session import solve
from longtake.tracing.events import ToolCalled
from longtake.types import Line, Question, Segment

QUESTION = Question("What is on the sofa?", ("a cat", "a toy", "a hat"))
OPEN = Question("What is on the sofa?")


def plan(agent, instruct="find the sofa", **rest):
    return {"reason": "it is time", "agent": agent, "instruct": instruct, **rest}


def finish(choice="B", reason="seen at 00:00:30"):
    return plan("finish", "", answer=choice) | {"reason": reason}


NO = {"credible": False, "comment": "no"}
LOOKING = [plan("grounding"), plan("visual_perception", "look at 00:05:00 to 00:05:10")]
SOFA_AT_5 = ("frame_inspector", {"start": "00:05:00", "end": "00:05:10"})
TWENTY_TO_FORTY = ("frame_inspector", {"start": "00:00:20", "end": "00:00:40"})


class Script:
    """A planner with given plans and agents with given replies; keeps what each was shown."""

    def __init__(
        self,
        plans,
        *,
        tool="retrieve",
        uses=(),
        score=None,
        verdicts=(),
        native=True,
        subtitles=None,
        context=None,
        finish="C",
    ):
        self.plans, self.uses, self.verdicts = list(plans), list(uses), list(verdicts)
        self.tool, self.score, self.native = tool, score, native
        self.subtitles, self.last = subtitles, finish
        self.shown = {}
        self.chats = {
            "llm": ScriptedChat(self.llm, card=Card("llm", context=context)),
            "vlm": ScriptedChat(self.vlm, card=Card("vlm", vision=True)),
        }

    def keep(self, messages, options):
        name = options.prompt.removeprefix("symphony/")
        self.shown.setdefault(name, []).append(messages)
        return name

    def llm(self, messages, options):
        name = self.keep(messages, options)
        if name == "plan":
            said = self.plans.pop(0) if self.plans else finish()
            return said if isinstance(said, str) else json.dumps(said)
        if name == "ground":
            asked = r"You are asked:\s*(.*?)First turn"
            instruction = re.search(asked, messages[1].text, re.DOTALL)[1]
            return json.dumps({"tool": self.tool, "cue": "a toy", "instruction": instruction})
        if name in ("perceive", "perceive_alone"):
            return self.perceive(messages, options)
        if name == "subtitles":
            said = self.subtitles(messages[-1].text)
            return said if isinstance(said, Reply) else json.dumps(said)
        if name == "reflect":
            said = self.verdicts.pop(0) if self.verdicts else {"credible": True, "comment": None}
            return said if isinstance(said, str) else json.dumps(said)
        assert name == "finish"
        return json.dumps({"reason": "it seems so", "choice": self.last})

    def perceive(self, messages, options):
        if options.tools and not self.native:
            raise Unsupported("llm", "tools")
        may = options.tools or "You may use tools" in messages[0].text
        done = sum("No more tools" in m.text for m in messages)
        if may and self.uses and not done:
            name, arguments = self.uses.pop(0)
            if options.tools:
                return Reply("", tool_calls=(ToolCall("1", name, json.dumps(arguments)),))
            return json.dumps({"tool": name, "arguments": arguments})
        return json.dumps({"findings": "[00:00:30] a toy lies on the sofa"})

    def vlm(self, messages, options):
        name = self.keep(messages, options)
        times = [image.time for image in images(messages)]
        if name == "score":
            said = self.score(times)
            if isinstance(said, str):
                return said
            return json.dumps({"caption": "a room", "score": said, "reason": "why"})
        observation = f"[00:00:30] something at {times[0]:.0f}" if times else "words"
        return json.dumps({"observation": observation})

    def times(self, name, number=0):
        return [image.time for image in images(self.shown[name][number])]

    def history(self, number=-1):
        return self.shown["plan"][number][-1].text


def play(script, footage=None, method=None, question=QUESTION, **limits):
    footage = footage or TestFootage(600, {"a toy": [305, 306, 307]})
    run = Run(script.chats, budget=BudgetSettings(**limits))
    with listening() as heard:
        result = solve(method or Symphony(), footage, question, run)
    return result, heard


# ==== planner, reflection, and the whole


def test_the_planner_sees_question_length_and_history_and_sends_agents():
    script = Script([*LOOKING, finish()], uses=[SOFA_AT_5])
    result, _ = play(script)
    assert (result.answer.choice, result.answer.status) == ("B", "answered")
    for number, told in enumerate(
        [
            ("What is on the sofa?", "00:10:00 long", "Nothing yet."),
            ("1. grounding: find the sofa", "00:05:00 to 00:05:10 (score"),
            (
                "2. visual_perception: look at 00:05:00 to 00:05:10",
                "a toy lies on the sofa",
                "Looked at 00:05:00 to 00:05:10.",
            ),
        ]
    ):
        assert all(words in script.history(number) for words in told)


def test_each_agent_may_have_a_model_of_its_own():
    script = Script([*LOOKING, finish()], uses=[SOFA_AT_5])
    names = ("planner", "grounder", "perceiver", "reflector")
    # the language model is not there for whoever should not ask it
    run = Run({"vlm": script.chats["vlm"], **dict.fromkeys(names, script.chats["llm"])})
    result = solve(Symphony(), TestFootage(600, {"a toy": [305, 306, 307]}), QUESTION, run)
    assert result.answer.choice == "B"
    assert set(names) <= set(run.names)


def test_the_planner_never_passes_its_bound_and_may_only_finish_on_the_last_step():
    script = Script([plan("grounding", f"again {n}") for n in range(99)])
    result, heard = play(script, method=Symphony(max_steps=5))
    assert len(script.shown["plan"]) == 4
    assert len(script.shown["finish"]) == 1
    assert result.answer.choice == "C"
    assert not heard.notes("finish_refused")  # though nobody has looked


def test_a_malformed_plan_is_asked_for_again_and_then_ends_the_search():
    script = Script([plan("grounding"), "no plan", "still none"])
    result, heard = play(script)
    assert len(script.shown["plan"]) == 3
    assert len(heard.notes("asked_again")) == 1
    assert not heard.notes("finish_refused")  # though nobody has looked
    assert result.answer.choice == "C"  # asked for by itself, from the history
    assert "1. grounding: find the sofa" in script.shown["finish"][0][-1].text


def test_a_finish_without_a_letter_is_asked_for_it_and_words_are_an_answer():
    assert play(Script([plan("finish", "")], finish="A"))[0].answer.choice == "A"
    result, _ = play(Script([plan("finish", "", answer=" a toy ")]), question=OPEN)
    assert (result.answer.choice, result.answer.text) == (None, "a toy")


def test_what_grounding_claims_is_looked_at_before_the_end():
    plans = [plan("grounding"), finish("A"), plan("visual_perception"), finish("B")]
    script = Script(plans, uses=[TWENTY_TO_FORTY])
    result, heard = play(script)
    assert len(heard.notes("finish_refused")) == 1
    assert phrase("symphony", "look_first") in script.history(2)
    assert result.answer.choice == "B"
    assert len(script.shown["plan"]) == 4  # the refusal cost a step
    # the planner may be trusted with that
    trusted = Script([plan("grounding"), finish("A")])
    result, heard = play(trusted, method=Symphony(look_before_finish=False))
    assert not heard.notes("finish_refused")
    assert result.answer.choice == "A"


def test_a_turn_without_a_look_is_not_a_look():
    grounding = HistoryEntry(GROUNDING, "where?", ())
    assert uninspected([grounding, HistoryEntry(PERCEPTION, "look", ("a sofa",))])
    assert not uninspected([grounding, HistoryEntry(PERCEPTION, "look", ("a sofa",), looked=(7,))])


def test_citations_are_moments_that_were_looked_at_those_the_reason_names_first():
    # two of the times cannot be
    proposal = finish("B", "at 00:72:30, 00:10:75 and 00:00:37 the toy is seen")
    script = Script([plan("visual_perception"), proposal], uses=[TWENTY_TO_FORTY])
    result, _ = play(script, TestFootage(600))
    cited = [one.segment.start for one in result.answer.evidence]
    assert 37.0 in cited
    assert set(cited) <= set(script.times("look"))


# Reflection


def test_a_refused_proposal_changes_the_course():
    script = Script(
        [finish("A"), plan("subtitles"), finish("B")],
        verdicts=[{"credible": False, "comment": "nobody looked at the sofa"}],
    )
    result, heard = play(script)
    assert "A. a cat was judged not credible. nobody looked at the sofa" in script.history(1)
    assert (result.answer.choice, result.answer.status) == ("B", "answered")
    assert "Proposed answer: A. a cat" in script.shown["reflect"][0][-1].text
    assert len(script.shown["reflect"]) == 1  # a later proposal stands
    assert len(heard.notes("not_reviewed")) == 1


def test_more_reviews_where_they_are_allowed():
    script = Script([finish("A"), finish("B"), finish("C")], verdicts=[NO, NO])
    result, _ = play(script, method=Symphony(max_reflections=3))
    assert result.answer.choice == "C"
    assert len(script.shown["reflect"]) == 3


@pytest.mark.parametrize(
    ("first", "verdicts", "status"),
    [
        (finish("A"), [NO], "not_credible"),
        (plan("subtitles"), [NO], "not_credible"),
        (plan("subtitles"), [], "answered"),
    ],
)
def test_not_credible_only_where_steps_run_out_after_a_refusal(first, verdicts, status):
    result, _ = play(Script([first], verdicts=verdicts), method=Symphony(max_steps=2))
    assert result.answer.status == status


def test_an_unreadable_review_accepts_and_says_so():
    result, heard = play(Script([finish("A")], verdicts=["well"] * 3))
    assert (result.answer.choice, result.answer.status) == ("A", "answered")
    assert [event.data["prompt"] for event in heard.notes("default_taken")] == ["symphony/reflect"]


# The whole


def test_captions_alone():
    script = Script(
        [plan("grounding"), plan("visual_perception"), finish()],
        tool="vlm_score",
        score=lambda _: 3,
        uses=[("global_summary", {})],
    )
    result, _ = play(script, TalkingFootage([("cat", 60), ("dog", 60)]))
    assert result.answer.choice == "B"
    assert any("a cat at 0" in messages[-1].text for messages in script.shown["score"])
    assert {(e.source, e.text[:2]) for e in result.answer.evidence} == {("caption", "a ")}


def test_many_uses_end_without_a_credible_answer():
    method = Symphony(max_steps=6, grounding=Grounding(max_scorings=2))
    plans = [plan("grounding", "one"), plan("visual_perception")]
    plans += [plan("grounding", "two"), plan("visual_perception"), finish()]
    uses = [("frame_inspector", {"start": n, "end": n + 60}) for n in range(0, 600, 20)]
    script = Script(plans, uses=uses, tool="vlm_score", score=lambda _: 4, verdicts=[NO])
    footage = TestFootage(1800)
    result, _ = play(script, footage, method)
    assert result.answer.status == "not_credible"


def test_a_spent_budget_gives_the_refused_answer_rather_than_none():
    script = Script([finish("A"), plan("subtitles"), plan("subtitles")], verdicts=[NO])
    result, _ = play(script, calls=3)
    assert (result.answer.choice, result.answer.status) == ("A", "budget_spent")


def test_the_paper_sets_no_limits():
    paper = configure(Symphony, {"preset": "paper"})
    assert paper.grounding.max_scorings >= paper.max_steps > Symphony().max_steps


# ==== grounding, visual perception, and their limits


def test_retrieve_returns_the_fifteen_ten_second_clips_closest_to_the_cue():
    _, heard = play(Script([plan("grounding"), finish()]))
    (call,) = [event for event in heard.of(ToolCalled) if event.name == "retrieve"]
    lines = call.result.splitlines()
    assert len(lines) == Grounding().retrieved_clips == 15
    assert lines[0].startswith("00:05:00 to 00:05:10")
    assert call.arguments == {"cue": "a toy"}
    assert "vlm" not in {event.name for event in heard.of(ToolCalled)}


def test_every_minute_is_scored_on_thirty_frames_and_all_above_one_are_kept():
    score = lambda times: {0: 2, 5: 4}.get(int(times[0] // 60), 1)  # noqa: E731
    script = Script([plan("grounding"), finish()], tool="vlm_score", score=score)
    play(script)
    shown = sorted(tuple(script.times("score", n)) for n in range(len(script.shown["score"])))
    assert [len(times) for times in shown] == [30] * 10
    assert all(60 * n <= min(times) <= max(times) < 60 * (n + 1) for n, times in enumerate(shown))
    best = script.history(1).index("00:05:00 to 00:06:00 (score 4): a room why")
    assert best < script.history(1).index("00:00:00 to 00:01:00 (score 2)")
    assert "00:02:00 to 00:03:00" not in script.history(1)
    told = script.shown["score"][0][-1].text
    assert "for 4 also give the answer" in told
    assert "for the first time" in told


def test_a_clip_whose_score_cannot_be_read_is_left_out():
    score = lambda times: "hm" if times[0] < 60 else 3  # noqa: E731
    script = Script([plan("grounding"), finish()], tool="vlm_score", score=score)
    _, heard = play(script, TestFootage(120))
    assert [event.data["start"] for event in heard.notes("clip_not_scored")] == [0.0]


def test_an_unreadable_choice_of_tool_scores():
    script = Script([plan("grounding"), finish()], tool="a friend", score=lambda _: 1)
    play(script, TestFootage(120))
    assert len(script.shown["score"]) == 2
    assert "nothing in the film seems relevant" in script.history(1)


def test_the_film_is_not_scored_twice_by_one_instruction_nor_more_often_than_allowed():
    plans = [plan("grounding", f"find sofa {n}") for n in (0, 0, 1, 2, 3, 4)]
    script = Script([*plans, finish()], tool="vlm_score", score=lambda _: 1)
    _, heard = play(script, TestFootage(120))
    assert len(script.shown["score"]) == 2 * Grounding().max_scorings
    why = [event.data["why"] for event in heard.notes("not_scored_again")]
    assert why == ["same instruction", "limit reached", "limit reached"]


@pytest.mark.parametrize("named", [True, False])
def test_a_question_that_names_its_time_needs_no_grounding_unless_so_set(named):
    script = Script([plan("grounding"), plan("visual_perception"), finish()])
    question = Question("What happens between 00:03:20 and 00:04:00?", QUESTION.options)
    method = Symphony(grounding=Grounding(named_times=named))
    _, heard = play(script, question=question, method=method)
    assert len(heard.notes("question_names_its_time")) == named
    assert ("ground" in script.shown) is not named
    assert ("00:03:20 to 00:04:00 (score 1)" in script.history(1)) is named


@pytest.mark.parametrize(
    ("text", "stretches"),
    [
        ("from 1:00 to 2:30", [Segment(60, 150)]),
        ("at 00:05:00?", [Segment(270, 330)]),
        ("What happens until about 2:00?", [Segment(90, 150)]),
        ("at 59:00?", []),  # not in this film
        ("What is it?", []),
        # other numbers with a colon
        ("a ratio of 4:3, or 12:99", []),
        ("a ratio of 6:09?", []),
        ("Who quotes John 3:16?", []),
        ("The clock shows 8:30. Who enters?", []),
        ("8:15 to 9", []),
    ],
)
def test_times_in_questions(text, stretches):
    assert named_stretches(text, 600) == stretches


@given(st.floats(0.5, 20_000), st.sampled_from([10.0, 30.0, 60.0]))
def test_clips_cover_the_film_once(duration, seconds):
    clips = cut(duration, seconds)
    assert clips[0].start == 0
    assert clips[-1].end == duration
    assert all(a.end == b.start for a, b in pairwise(clips))
    assert all(clip.duration == seconds for clip in clips[:-1])
    assert clips[-1].duration < seconds + LEAST_REST
    assert len(clips) <= Grounding(scored_seconds=seconds).calls(duration)


def test_a_rest_is_a_clip_of_its_own_unless_it_is_a_frame_or_two():
    assert [clip.duration for clip in cut(149.0, 60.0)] == [60, 60, 29]
    assert [clip.end for clip in cut(120.04, 60.0)] == [60, 120.04]


@pytest.mark.parametrize(("preset", "told"), [("full", True), ("paper", False)])
def test_perception_is_told_the_question_besides_its_instruction(preset, told):
    script = Script([plan("visual_perception"), finish()], uses=[SOFA_AT_5])
    play(script, method=configure(Symphony, {"preset": preset}))
    names = ("perceive", "look") if told else ("perceive_alone", "look_alone")
    for name in names:
        text = "\n".join(message.text for message in script.shown[name][0])
        assert ("What is on the sofa?" in text) is told
        assert "find the sofa" in text


def test_a_report_leaves_the_planner_room_on_four_hours_of_film():
    def score(times):
        grade = 4 if int(times[0]) == 7200 else 3
        return json.dumps({"caption": "a long story " * 40, "reason": "x", "score": grade})

    script = Script([plan("grounding"), finish()], tool="vlm_score", context=8000, score=score)
    _, heard = play(script, TestFootage(14_400))
    assert len(script.shown["score"]) == 240
    (left,) = heard.notes("claims_left_out")
    assert left.data["kept"] < left.data["of"] == 240
    assert "02:00:00 to 02:01:00 (score 4)" in script.history(1)  # the best stays


# Visual perception


def looks(uses, *, seconds=3600, native=True):
    script = Script([plan("visual_perception"), finish()], uses=uses, native=native)
    _, heard = play(script, TestFootage(seconds, {"a toy": [100, 105, 110]}))
    return script, heard.of(ToolCalled)


def test_the_inspector_takes_forty_frames_and_ten_more_by_cue_beyond_thirty_seconds():
    def inspected(start, end):
        use = ("frame_inspector", {"start": start, "end": end, "cue": "a toy"})
        return looks([use])[0].times("look")

    # more than the grid holds
    assert inspected("00:01:00", "00:01:10") == [60 + number / 4 for number in range(40)]
    between = inspected(90, 125)
    assert len(between) == 50
    assert 100.0 in between  # by the cue: the forty come at 99.625 and 100.5
    cued = inspected(70, 130)
    assert len(cued) == 50
    assert {100.0, 105.0, 110.0} <= set(cued)


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
    def compared(*stretches):
        parts = [{"start": start, "end": end} for start, end in stretches]
        script, (call,) = looks([("multi_segment", {"intervals": parts})])
        return (script.times("look") if "look" in script.shown else []), call

    times, _ = compared(("00:01:00", "00:01:30"), ("00:10:00", "00:11:30"))
    assert (len(times), sum(60 <= time < 90 for time in times)) == (40, 10)
    times, _ = compared(*((10 * n, 10 * n + 1) for n in range(20)), (1000, 3000))
    assert len(times) == 40
    assert {10.0 * n for n in range(20)} <= set(times)  # none is passed over
    times, call = compared()
    assert "at least one" in call.error


def test_after_five_tools_it_is_told_to_answer():
    uses = [("frame_inspector", {"start": n, "end": n + 10}) for n in range(0, 90, 10)]
    script, calls = looks(uses)
    assert len(calls) == 5
    assert "No more tools" in script.shown["perceive"][-1][-1].text


def test_native_calls_and_words_leave_the_same_trace():
    uses = [("frame_inspector", {"start": "3:21", "end": "3:31"}), ("global_summary", {})]
    uses += [("nonsense", {"a": 1})]
    natively, in_words = (
        [(c.name, c.arguments, c.result, c.error) for c in looks(list(uses), native=way)[1]]
        for way in (True, False)
    )
    assert natively == in_words
    assert len(natively) == 3


def test_findings_of_an_agent_that_looked_at_nothing_are_not_passed_on():
    script, calls = looks([("frame_inspector", {"start": "00:01:00", "end": "00:30:00"})])
    assert [call.error is None for call in calls] == [False]
    assert "a toy lies on the sofa" not in script.history(1)
    assert "No part of the film was looked at." in script.history(1)
    _, heard = play(Script([plan("visual_perception"), finish()]))
    (told,) = heard.notes("findings_without_a_look")
    assert told.data["findings"] == "[00:00:30] a toy lies on the sofa"


CUT = '{"findings": "[00:00:30] a toy lies on the sofa. ' + "It is red. It is red. " * 20


@pytest.mark.parametrize(
    ("reply", "told", "times"),
    [
        # a report that was cut off, or that repeats itself, says what it says up to there
        (Reply(CUT, finish="length"), "It is red", 1),
        (Reply(CUT, finish="stop"), "It is red", 1),
        # of one that cannot be read, what was seen is left
        ("...", "something at 0", 1),
    ],
)
def test_findings_are_read_as_far_as_they_go(reply, told, times):
    script = Script([plan("visual_perception"), finish()], uses=[("global_summary", {})])
    act = script.perceive
    script.perceive = lambda messages, options: act(messages, options) if script.uses else reply
    play(script)
    assert script.history(1).count(told) == times


# ==== subtitle agent


def said(*texts):
    return [Line(Segment(10.0 * n, 10.0 * n + 3), text) for n, text in enumerate(texts)]


TALK = TestFootage(600, lines=said("Good morning.", "The toy is on the sofa.", "Good night."))


def test_the_subtitle_agent_passes_on_lines_that_the_film_has():
    told = {"entities": ["toy"], "sentiment": "fond", "topic": "a toy"}
    lines = [
        {"start": "00:00:10", "end": "00:00:13", "text": "The toy is on the sofa"},
        {"start": "00:00:20", "end": "00:00:23", "text": "wholly invented words"},
    ]
    script = Script([plan("subtitles"), finish()], subtitles=lambda _: {"lines": lines, **told})
    result, heard = play(script, TALK)
    for words in ("[00:00:10] The toy is on the sofa.", "Mentioned: toy (fond)", "About: a toy"):
        assert words in script.history(1)
    assert "invented" not in script.history(1)
    (dropped,) = heard.notes("line_not_in_film")
    assert dropped.data["text"] == "wholly invented words"
    (cited,) = [e for e in result.answer.evidence if e.source == "speech"]
    assert (cited.segment.start, cited.text) == (10.0, "The toy is on the sofa.")


def test_long_subtitles_are_read_in_pieces_and_merged():
    def subtitles(text):
        found = re.findall(r"\[([\d:]+)\] (.* [05] of many)", text)
        lines = [{"start": time, "end": time, "text": line} for time, line in found]
        return {"lines": lines, "entities": ["many"], "sentiment": "", "topic": "counting"}

    lines = said(*(f"line number {n} of many" for n in range(60)))
    script = Script([plan("subtitles"), finish()], context=4000, subtitles=subtitles)
    play(script, TestFootage(600, lines=lines), Symphony(subtitle_tokens=300))
    assert len(script.shown["subtitles"]) > 1
    told = [messages[-1].text for messages in script.shown["subtitles"]]
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
        # cut off among the lines, in the first of them, after them, and in a text
        (f'{{"lines": [{SOFA}, {NIGHT}, {{"start": "00:00:3', [10.0, 20.0]),
        (f'{{"lines": [{SOFA}, {{"start": "00:00:20", "end": "00:00:23", "text": "Good', [10.0]),
        (f'{{"lines": [{SOFA[:-10]}', []),
        (f'{{"lines": [{SOFA}], "entities": ["toy", "so', [10.0]),
        (f'{{"lines": [{SOFA}], "entities": ["toy"], "topic": "what is on the', [10.0]),
        # the same names again and again
        (f'{{"lines": [{SOFA}], "entities": ["toy", ' + '"sofa", ' * 60, [10.0]),
    ],
)
def test_lines_that_were_quoted_whole_are_kept(text, quoted):
    script = Script([plan("subtitles"), finish()], subtitles=lambda _: Reply(text, finish="length"))
    result, _ = play(script, TALK)
    if quoted:
        assert len(script.shown["subtitles"]) == 1  # read at once
    cited = [e.segment.start for e in result.answer.evidence if e.source == "speech"]
    assert cited == quoted
