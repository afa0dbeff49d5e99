"""Symphony beside its supplement: planner, grounding, visual perception, subtitles, reflection, and their limits."""

from __future__ import annotations

import json
import re
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from support.footages import TestFootage
from support.listening import listening

from longtake.agents.run import Run
from longtake.config import BudgetSettings
from longtake.events import ToolCalled
from longtake.footage.captioned import CaptionedFootage
from longtake.methods.base import configure, solve
from longtake.methods.symphony import Symphony
from longtake.methods.symphony.grounding import Grounding, cut, named_stretches
from longtake.methods.symphony.planning import LOOK_FIRST
from longtake.methods.symphony.subtitles import pieces
from longtake.models.chat import Card, Reply, ToolCall, Unsupported, images
from longtake.models.scripted import ScriptedChat
from longtake.types import Line, Question, Segment

QUESTION = Question("What is on the sofa?", ("a cat", "a toy", "a hat"))
OPEN = Question("What is on the sofa?")


def plan(agent, instruct="find the sofa", **rest):
    return {"reason": "it is time", "agent": agent, "instruct": instruct, **rest}


def finish(choice="B", reason="seen at 00:00:30"):
    return plan("finish", "", answer=choice) | {"reason": reason}


class Script:
    """A planner with its plans, and agents that say what they are told to; keeps what each was shown."""

    def __init__(self, plans, *, tool="retrieve", uses=(), score=None, verdicts=(), native=True, subtitles=None,
                 context=None, finish="C"):  # fmt: skip
        self.plans, self.uses, self.verdicts = list(plans), list(uses), list(verdicts)
        self.tool, self.score, self.native, self.subtitles, self.last = tool, score, native, subtitles, finish
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
            return json.dumps(
                {
                    "tool": self.tool,
                    "cue": "a toy",
                    "instruction": re.search(r"You are asked:\s*(.*?)First turn", messages[1].text, re.DOTALL)[1],
                }
            )
        if name == "perceive":
            return self.perceive(messages, options)
        if name == "subtitles":
            return json.dumps(self.subtitles(messages[-1].text))
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
            return said if isinstance(said, str) else json.dumps({"caption": "a room", "score": said, "reason": "why"})
        return json.dumps({"observation": f"[00:00:30] something at {times[0]:.0f}" if times else "words"})

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


# The planner


def test_the_planner_sees_question_length_and_history_and_sends_agents():
    script = Script([plan("grounding"), plan("visual_perception", "look at 00:05:00 to 00:05:10"), finish()],
                    uses=[("frame_inspector", {"start": "00:05:00", "end": "00:05:10"})])  # fmt: skip
    result, _ = play(script)
    assert (result.answer.choice, result.answer.status) == ("B", "answered")
    assert "What is on the sofa?" in script.history(0)
    assert "00:10:00 long" in script.history(0)
    assert "Nothing yet." in script.history(0)
    assert "1. grounding: find the sofa" in script.history(1)
    assert "00:05:00 to 00:05:10 (score" in script.history(1)
    assert "2. visual_perception: look at 00:05:00 to 00:05:10" in script.history(2)
    assert "a toy lies on the sofa" in script.history(2)
    assert "Looked at 00:05:00 to 00:05:10." in script.history(2)


def test_the_planner_never_passes_its_bound_and_may_only_finish_on_the_last_step():
    script = Script([plan("subtitles", f"again {n}") for n in range(99)])
    result, _ = play(script, method=Symphony(max_steps=5))
    assert len(script.shown["plan"]) == 4
    assert len(script.shown["finish"]) == 1
    assert result.answer.choice == "C"
    assert Symphony().max_steps == 17


def test_a_malformed_plan_is_asked_for_once_more_and_then_ends_the_search():
    script = Script([plan("subtitles"), "no plan", "still none"])
    result, heard = play(script)
    assert len(script.shown["plan"]) == 3
    assert len(heard.notes("asked_again")) == 1
    assert result.answer.choice == "C"  # asked for by itself, from the history
    assert "There are no subtitles" in script.shown["finish"][0][-1].text


def test_a_finish_without_a_letter_is_asked_for_it():
    result, _ = play(Script([plan("finish", "")], finish="A"))
    assert result.answer.choice == "A"


def test_open_ended():
    script = Script([plan("finish", "", answer=" a toy ")])
    result, _ = play(script, question=OPEN)
    assert (result.answer.choice, result.answer.text) == (None, "a toy")


def test_what_grounding_claims_is_looked_at_before_the_end():
    script = Script([plan("grounding"), finish("A"), plan("visual_perception"), finish("B")])
    result, heard = play(script)
    assert len(heard.notes("finish_refused")) == 1
    assert LOOK_FIRST in script.history(2)
    assert result.answer.choice == "B"
    assert len(script.shown["plan"]) == 4  # the refusal cost a step


def test_on_the_last_step_nothing_is_refused():
    result, heard = play(Script([plan("grounding"), plan("grounding", "again")]), method=Symphony(max_steps=3))
    assert not heard.notes("finish_refused")
    assert result.answer.choice == "C"


# Reflection


def test_a_refused_proposal_changes_the_course():
    script = Script([finish("A"), plan("subtitles"), finish("B")],
                    verdicts=[{"credible": False, "comment": "nobody looked at the sofa"}])  # fmt: skip
    result, heard = play(script)
    assert "A. a cat was judged not credible. nobody looked at the sofa" in script.history(1)
    assert (result.answer.choice, result.answer.status) == ("B", "answered")
    assert "Proposed answer: A. a cat" in script.shown["reflect"][0][-1].text
    assert len(script.shown["reflect"]) == 1  # a later proposal stands
    assert len(heard.notes("not_reviewed")) == 1


def test_more_reviews_where_they_are_allowed():
    no = {"credible": False, "comment": "no"}
    script = Script([finish("A"), finish("B"), finish("C")], verdicts=[no, no])
    result, _ = play(script, method=Symphony(max_reflections=3))
    assert result.answer.choice == "C"
    assert len(script.shown["reflect"]) == 3


def test_not_credible_only_where_steps_run_out_after_a_refusal():
    no = [{"credible": False, "comment": "no"}]
    method = Symphony(max_steps=2)
    assert play(Script([finish("A")], verdicts=list(no)), method=method)[0].answer.status == "not_credible"
    assert play(Script([plan("subtitles")], verdicts=list(no)), method=method)[0].answer.status == "not_credible"
    assert play(Script([plan("subtitles")]), method=method)[0].answer.status == "answered"


def test_an_unreadable_review_accepts_and_says_so():
    result, heard = play(Script([finish("A")], verdicts=["well", "well"]))
    assert (result.answer.choice, result.answer.status) == ("A", "answered")
    assert [event.data["prompt"] for event in heard.notes("default_taken")] == ["symphony/reflect"]


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
    script = Script([plan("grounding"), plan("visual_perception"), finish()], tool="vlm_score",
                    score=lambda times: {0: 2, 5: 4}.get(int(times[0] // 60), 1))  # fmt: skip
    play(script)
    assert len(script.shown["score"]) == 10
    shown = sorted(tuple(script.times("score", n)) for n in range(10))
    assert {len(times) for times in shown} == {30}
    assert all(60 * n <= min(times) <= max(times) < 60 * (n + 1) for n, times in enumerate(shown))
    report = script.history(1)
    assert report.index("00:05:00 to 00:06:00 (score 4): a room why") < report.index("00:00:00 to 00:01:00 (score 2)")
    assert "00:02:00 to 00:03:00" not in report


def test_a_clip_whose_score_cannot_be_read_is_left_out():
    script = Script([plan("grounding"), finish()], tool="vlm_score",
                    score=lambda times: "hm" if times[0] < 60 else 3)  # fmt: skip
    _, heard = play(script, TestFootage(120))
    assert [event.data["start"] for event in heard.notes("clip_not_scored")] == [0.0]


def test_an_unreadable_choice_of_tool_scores():
    script = Script([plan("grounding"), plan("visual_perception"), finish()], tool="a friend", score=lambda _: 1)
    play(script, TestFootage(120))
    assert len(script.shown["score"]) == 2
    assert "nothing in the film seems to bear on this" in script.history(1)


def test_the_film_is_not_scored_twice_by_one_instruction_nor_more_often_than_allowed():
    same = [plan("grounding", "find the sofa")] * 2
    script = Script([*same, *(plan("grounding", f"find sofa {n}") for n in range(4)), finish()], tool="vlm_score",
                    score=lambda _: 1)  # fmt: skip
    _, heard = play(script, TestFootage(120))
    assert len(script.shown["score"]) == 2 * Grounding().max_scorings
    assert [event.data["why"] for event in heard.notes("not_scored_again")] == [
        "by the same instruction", "as often as it may be", "as often as it may be",
    ]  # fmt: skip


def test_coarse_to_fine_keeps_to_its_calls_and_refines_the_best():
    method = Symphony(grounding=Grounding(scoring="coarse_to_fine", score_calls=20, coarse_clips=4))
    script = Script([plan("grounding"), plan("visual_perception"), finish()], tool="vlm_score",
                    score=lambda times: 4 if times[0] <= 1500 <= times[-1] else 1)  # fmt: skip
    play(script, TestFootage(3600), method)
    assert len(script.shown["score"]) == 19  # 15 stretches of four minutes, and the four clips of the best
    assert "00:25:00 to 00:26:00 (score 4)" in script.history(1)
    assert "00:24:00 to 00:28:00" not in script.history(1)  # its clips stand for it


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


@given(st.floats(0.5, 20_000), st.sampled_from([10.0, 30.0, 60.0]))
def test_clips_cover_the_film_once(duration, seconds):
    clips = cut(duration, seconds)
    assert clips[0].start == 0
    assert clips[-1].end == duration
    assert all(a.end == b.start for a, b in pairwise(clips))
    assert all(clip.duration <= 1.5 * seconds for clip in clips)
    assert len(clips) <= Grounding(scored_seconds=seconds).calls(duration)


def test_a_report_leaves_the_planner_room_on_four_hours_of_film():
    script = Script([plan("grounding"), plan("visual_perception"), finish()], tool="vlm_score", context=8000,
                    score=lambda times: json.dumps({"caption": "a long story " * 40, "reason": "x",
                                                    "score": 3 if int(times[0]) != 7200 else 4}))  # fmt: skip
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


def test_the_inspector_takes_forty_frames_and_ten_more_by_cue_where_it_is_longer_than_thirty_seconds():
    short, _ = looks([("frame_inspector", {"start": "00:01:00", "end": "00:01:30"})])
    assert len(short.times("look")) == 30  # every second there is
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
    script, _ = looks([("multi_segment", {"intervals": [{"start": "00:01:00", "end": "00:01:30"},
                                                        {"start": "00:10:00", "end": "00:11:30"}]})])  # fmt: skip
    times = np.array(script.times("look"))
    assert len(times) == 40
    assert ((times >= 60) & (times < 90)).sum() == 10
    many = [{"start": 10 * n, "end": 10 * n + 1} for n in range(20)] + [{"start": 1000, "end": 3000}]
    script, _ = looks([("multi_segment", {"intervals": many})])
    assert len(script.times("look")) == 40
    assert {10.0 * n for n in range(20)} <= set(script.times("look"))  # none is passed over
    _, (call,) = looks([("multi_segment", {"intervals": []})])
    assert "at least one" in call.error


def test_after_five_tools_it_is_told_to_answer():
    script, calls = looks([("frame_inspector", {"start": n, "end": n + 10}) for n in range(0, 90, 10)])
    assert len(calls) == 5
    assert "No more tools" in script.shown["perceive"][-1][-1].text


def test_native_calls_and_words_leave_the_same_trace():
    uses = [("frame_inspector", {"start": "3:21", "end": "3:31"}), ("global_summary", {}), ("nonsense", {"a": 1})]
    natively, in_words = looks(list(uses))[1], looks(list(uses), native=False)[1]
    assert [(c.name, c.arguments, c.result, c.error) for c in natively] == [
        (c.name, c.arguments, c.result, c.error) for c in in_words
    ]
    assert len(natively) == 3


def test_findings_that_cannot_be_read_leave_what_was_seen():
    script = Script([plan("visual_perception"), finish()], uses=[("global_summary", {})])
    act = script.perceive
    script.perceive = lambda messages, options: act(messages, options) if script.uses else "..."
    play(script)
    assert "something at 0" in script.history(1)


# Subtitles


def said(*texts):
    return [Line(Segment(10.0 * n, 10.0 * n + 3), text) for n, text in enumerate(texts)]


def test_the_subtitle_agent_passes_on_lines_that_the_film_has():
    script = Script([plan("subtitles"), finish()], subtitles=lambda _: {
        "lines": [{"start": "00:00:10", "end": "00:00:13", "text": "The toy is on the sofa"},
                  {"start": "00:00:20", "end": "00:00:23", "text": "wholly invented words"}],
        "entities": ["toy"], "sentiment": "fond", "topic": "a toy"})  # fmt: skip
    footage = TestFootage(600, lines=said("Good morning.", "The toy is on the sofa.", "Good night."))
    result, heard = play(script, footage)
    assert "[00:00:10] The toy is on the sofa." in script.history(1)
    assert "invented" not in script.history(1)
    assert "Spoken of: toy (fond)" in script.history(1)
    assert "About: a toy" in script.history(1)
    assert [event.data["text"] for event in heard.notes("line_not_in_film")] == ["wholly invented words"]
    (cited,) = [e for e in result.answer.evidence if e.source == "speech"]
    assert (cited.segment.start, cited.text) == (10.0, "The toy is on the sofa.")


def test_long_subtitles_are_read_in_pieces_and_merged():
    lines = said(*(f"line number {n} of many" for n in range(60)))
    script = Script([plan("subtitles"), finish()], context=4000, subtitles=lambda text: {
        "lines": [{"start": time, "end": time, "text": line}
                  for time, line in re.findall(r"\[([\d:]+)\] (.* [05] of many)", text)],
        "entities": ["many"], "sentiment": "", "topic": "counting"})  # fmt: skip
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


# The whole


def test_citations_are_moments_that_were_looked_at_those_the_reason_names_first():
    script = Script([plan("visual_perception"), finish(reason="At 00:00:07 the toy is seen")],
                    uses=[("frame_inspector", {"start": 0, "end": 20})])  # fmt: skip
    result, _ = play(script, TestFootage(600))
    cited = [e.segment.start for e in result.answer.evidence]
    assert 7.0 in cited
    assert set(cited) <= set(script.times("look"))


def test_captions_alone():
    script = Script([plan("grounding"), plan("visual_perception"), finish()], tool="vlm_score", score=lambda _: 2,
                    uses=[("global_summary", {})])  # fmt: skip

    class Bags:
        name = "bags"

        def texts(self, texts):
            rows = np.array([[t.count(c) for c in "abcdefghij"] + [1] for t in texts], np.float32)
            return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    script.score = lambda _: 3
    result, _ = play(script, CaptionedFootage("film", [f"caption {n}" for n in range(120)], Bags()))
    assert result.answer.choice == "B"
    assert any("caption 0" in messages[-1].text for messages in script.shown["score"])
    assert all(e.source == "caption" and e.text.startswith("caption") for e in result.answer.evidence)


def test_bounds_hold_for_the_most_that_is_asked():
    method = Symphony(max_steps=6, grounding=Grounding(max_scorings=2))
    uses = [("frame_inspector", {"start": n, "end": n + 60, "cue": "a toy"}) for n in range(0, 600, 20)]
    script = Script([plan("grounding", "one"), plan("visual_perception"), plan("grounding", "two"),
                     plan("visual_perception"), finish()], uses=uses, tool="vlm_score", score=lambda _: 4,
                    verdicts=[{"credible": False, "comment": "no"}])  # fmt: skip
    footage = TestFootage(1800)
    result, _ = play(script, footage, method)
    bounds = method.bounds(footage.duration, QUESTION)
    assert result.usage.calls <= bounds.calls
    assert result.usage.frames <= bounds.frames
    assert result.answer.status == "not_credible"


def test_a_spent_budget_gives_the_refused_answer_rather_than_none():
    script = Script(
        [finish("A"), plan("subtitles"), plan("subtitles")], verdicts=[{"credible": False, "comment": "no"}]
    )
    result, _ = play(script, calls=3)
    assert (result.answer.choice, result.answer.status) == ("A", "budget_spent")


def test_presets():
    paper, released = configure(Symphony, {"preset": "paper"}), configure(Symphony, {"preset": "released"})
    assert paper.grounding.scoring == "full"
    assert paper.grounding.max_scorings > paper.max_steps
    assert (released.grounding.scored_seconds, released.grounding.scored_frames) == (30, 15)
    assert (released.perception.inspector_frames, released.perception.cue_frames) == (70, 20)
    assert released.perception.summary_frames == 30
