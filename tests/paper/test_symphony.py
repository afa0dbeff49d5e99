"""Symphony beside its supplement: the planner, reflection, and the whole."""

from __future__ import annotations

import numpy as np
from support.footages import TestFootage
from support.orchestra import OPEN, QUESTION, Script, finish, plan, play

from longtake.agents.run import Run
from longtake.footage.plain import CaptionedFootage
from longtake.methods.base import configure
from longtake.methods.symphony.grounding import (
    GROUNDING,
    PERCEPTION,
    Grounding,
    HistoryEntry,
    uninspected,
)
from longtake.methods.symphony.method import Symphony
from longtake.prompts import phrase
from longtake.runner.session import solve

# The planner


def test_the_planner_sees_question_length_and_history_and_sends_agents():
    script = Script(
        [plan("grounding"), plan("visual_perception", "look at 00:05:00 to 00:05:10"), finish()],
        uses=[("frame_inspector", {"start": "00:05:00", "end": "00:05:10"})],
    )
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


def test_each_agent_may_have_a_model_of_its_own():
    script = Script(
        [plan("grounding"), plan("visual_perception", "look at 00:05:00 to 00:05:10"), finish()],
        uses=[("frame_inspector", {"start": "00:05:00", "end": "00:05:10"})],
    )
    names = ("planner", "grounder", "perceiver", "reflector")
    # the language model is not there for whoever should not ask it
    chats = {"vlm": script.chats["vlm"], **dict.fromkeys(names, script.chats["llm"])}
    run = Run(chats)
    result = solve(Symphony(), TestFootage(600, {"a toy": [305, 306, 307]}), QUESTION, run)
    assert result.answer.choice == "B"
    assert set(names) <= set(run.names)


def test_the_planner_never_passes_its_bound_and_may_only_finish_on_the_last_step():
    script = Script([plan("subtitles", f"again {n}") for n in range(99)])
    result, _ = play(script, method=Symphony(max_steps=5))
    assert len(script.shown["plan"]) == 4
    assert len(script.shown["finish"]) == 1
    assert result.answer.choice == "C"
    assert Symphony().max_steps == 17


def test_a_malformed_plan_is_asked_for_again_then_the_agent_alone_and_then_ends_the_search():
    script = Script([plan("subtitles"), "no plan", "still none", "nobody"])
    result, heard = play(script)
    assert len(script.shown["plan"]) == 4
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
    look = [("frame_inspector", {"start": "00:00:20", "end": "00:00:40"})]
    plans = [plan("grounding"), finish("A"), plan("visual_perception"), finish("B")]
    script = Script(plans, uses=look)
    result, heard = play(script)
    assert len(heard.notes("finish_refused")) == 1
    assert phrase("symphony", "look_first") in script.history(2)
    assert result.answer.choice == "B"
    assert len(script.shown["plan"]) == 4  # the refusal cost a step


def test_the_planner_may_be_trusted_with_that():
    script = Script([plan("grounding"), finish("A")])
    result, heard = play(script, method=Symphony(look_before_finish=False))
    assert not heard.notes("finish_refused")
    assert result.answer.choice == "A"


def test_a_turn_without_a_look_is_not_a_look():
    grounding = HistoryEntry(GROUNDING, "where?", ())
    assert uninspected([grounding, HistoryEntry(PERCEPTION, "look", ("a sofa",))])
    assert not uninspected([grounding, HistoryEntry(PERCEPTION, "look", ("a sofa",), looked=(7,))])


def test_a_plan_that_cannot_be_read_ends_the_search_though_nobody_has_looked():
    result, heard = play(Script([plan("grounding"), "no plan", "none again", "nobody"]))
    assert not heard.notes("finish_refused")
    assert result.answer.choice == "C"  # asked for by itself


def test_a_time_that_cannot_be_is_not_cited_and_ends_nothing():
    look = [("frame_inspector", {"start": "00:00:20", "end": "00:00:40"})]
    script = Script(
        [plan("visual_perception"), finish("B", "at 00:72:30, 00:10:75 and 00:00:30")], uses=look
    )
    result, _ = play(script)
    assert result.answer.choice == "B"
    assert 30.0 in [one.segment.start for one in result.answer.evidence]


def test_on_the_last_step_nothing_is_refused():
    result, heard = play(
        Script([plan("grounding"), plan("grounding", "again")]), method=Symphony(max_steps=3)
    )
    assert not heard.notes("finish_refused")
    assert result.answer.choice == "C"


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
    no = {"credible": False, "comment": "no"}
    script = Script([finish("A"), finish("B"), finish("C")], verdicts=[no, no])
    result, _ = play(script, method=Symphony(max_reflections=3))
    assert result.answer.choice == "C"
    assert len(script.shown["reflect"]) == 3


def test_not_credible_only_where_steps_run_out_after_a_refusal():
    no = [{"credible": False, "comment": "no"}]
    method = Symphony(max_steps=2)
    assert (
        play(Script([finish("A")], verdicts=list(no)), method=method)[0].answer.status
        == "not_credible"
    )
    assert (
        play(Script([plan("subtitles")], verdicts=list(no)), method=method)[0].answer.status
        == "not_credible"
    )
    assert play(Script([plan("subtitles")]), method=method)[0].answer.status == "answered"


def test_an_unreadable_review_accepts_and_says_so():
    result, heard = play(Script([finish("A")], verdicts=["well"] * 3))
    assert (result.answer.choice, result.answer.status) == ("A", "answered")
    assert [event.data["prompt"] for event in heard.notes("default_taken")] == ["symphony/reflect"]


# The whole


def test_citations_are_moments_that_were_looked_at_those_the_reason_names_first():
    script = Script(
        [plan("visual_perception"), finish(reason="At 00:00:07 the toy is seen")],
        uses=[("frame_inspector", {"start": 0, "end": 20})],
    )
    result, _ = play(script, TestFootage(600))
    cited = [e.segment.start for e in result.answer.evidence]
    assert 7.0 in cited
    assert set(cited) <= set(script.times("look"))


def test_captions_alone():
    script = Script(
        [plan("grounding"), plan("visual_perception"), finish()],
        tool="vlm_score",
        score=lambda _: 2,
        uses=[("global_summary", {})],
    )

    class Bags:
        name = "bags"

        def texts(self, texts):
            rows = np.array([[t.count(c) for c in "abcdefghij"] + [1] for t in texts], np.float32)
            return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    script.score = lambda _: 3
    result, _ = play(script, CaptionedFootage("film", [f"caption {n}" for n in range(120)], Bags()))
    assert result.answer.choice == "B"
    assert any("caption 0" in messages[-1].text for messages in script.shown["score"])
    assert all(
        e.source == "caption" and e.text.startswith("caption") for e in result.answer.evidence
    )


def test_bounds_hold_for_the_most_that_is_asked():
    method = Symphony(max_steps=6, grounding=Grounding(max_scorings=2))
    uses = [
        ("frame_inspector", {"start": n, "end": n + 60, "cue": "a toy"}) for n in range(0, 600, 20)
    ]
    script = Script(
        [
            plan("grounding", "one"),
            plan("visual_perception"),
            plan("grounding", "two"),
            plan("visual_perception"),
            finish(),
        ],
        uses=uses,
        tool="vlm_score",
        score=lambda _: 4,
        verdicts=[{"credible": False, "comment": "no"}],
    )
    footage = TestFootage(1800)
    result, _ = play(script, footage, method)
    bounds = method.bounds(footage.duration, QUESTION)
    assert result.usage.calls <= bounds.calls
    assert result.usage.frames <= bounds.frames
    assert result.answer.status == "not_credible"


def test_a_spent_budget_gives_the_refused_answer_rather_than_none():
    script = Script(
        [finish("A"), plan("subtitles"), plan("subtitles")],
        verdicts=[{"credible": False, "comment": "no"}],
    )
    result, _ = play(script, calls=3)
    assert (result.answer.choice, result.answer.status) == ("A", "budget_spent")


def test_presets():
    paper, released = (
        configure(Symphony, {"preset": "paper"}),
        configure(Symphony, {"preset": "released"}),
    )
    assert (paper.max_reflections, paper.perception.max_tool_calls) == (50, 50)
    assert paper.grounding.max_scorings >= paper.max_steps > Symphony().max_steps
    assert not paper.look_before_finish
    assert not paper.grounding.named_times
    assert (released.grounding.scored_seconds, released.grounding.scored_frames) == (30, 15)
    assert (released.perception.inspector_frames, released.perception.cue_frames) == (70, 20)
    assert released.perception.summary_frames == 30
