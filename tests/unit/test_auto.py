"""The cascade: which stages run, when it stops, and what it hands over."""

from __future__ import annotations

import pytest
from support.footages import TestFootage

from longtake.config import BudgetSettings
from longtake.errors import ConfigError
from longtake.events import Stream
from longtake.methods.auto.method import Auto, shipped
from longtake.methods.auto.notes import merged, relevant, split
from longtake.methods.auto.planning import Needs, Situation, plan, unaffordable
from longtake.methods.auto.stopping import decide, keys
from longtake.methods.auto.voices import Voice, standing
from longtake.models.backends.scripted import ScriptedChat
from longtake.session.asking import Session, solve
from longtake.sinks.recorder import Recorder
from longtake.steps.calibration import Calibration, StageFacts
from longtake.steps.run import Run
from longtake.steps.verify import Checked
from longtake.types import Answer, Line, Question, Segment, Usage

QUESTION = Question("Who leaves?", ("a", "b", "c", "d"))
RULE = {"stop_at": 0.9}


def stage(name):
    return f"support.stages:{name}"


def cascade(*names, check=False, budget=None, **fields):
    method = Auto(stages=tuple(map(stage, names)), stop="stated", rule=RULE, **fields)
    chat = ScriptedChat(lambda *_: "said")
    run = Run({"llm": chat}, budget=budget)
    recorder = Recorder()
    with Stream(recorder).active():
        result = solve(method, TestFootage(20), QUESTION, run, check=check)
    notes = [(event.label, event.data) for event in recorder.trace.events if event.kind == "noted"]
    return result.answer, notes, chat


def told(notes, label):
    return [data for name, data in notes if name == label]


def test_it_stops_when_the_answer_is_likely_enough():
    answer, notes, _ = cascade("Sure", "Unsure")
    assert (answer.choice, answer.confidence) == ("A", 0.95)
    assert [data["stop"] for data in told(notes, "decided")] == [True]
    assert len(told(notes, "stage")) == 1


def test_it_goes_on_while_the_answer_is_in_doubt_and_the_likeliest_answer_wins():
    answer, notes, _ = cascade("Unsure", "Silent", "Sure")
    assert answer.choice == "A"
    assert [data["stop"] for data in told(notes, "decided")] == [False, False, True]


def test_stages_that_cannot_run_or_fail_are_passed_over_with_an_event():
    answer, notes, _ = cascade("Crowd", "Broken", "Sure")
    assert answer.choice == "A"
    assert told(notes, "planned")[0]["skipped"] == {stage("Crowd"): "no team was given"}
    assert told(notes, "stage_failed")[0]["why"] == "out of order"


def test_without_any_answer_it_abstains_or_raises_what_went_wrong():
    assert cascade("Broken", "Silent")[0].reason == "cannot tell"
    with pytest.raises(ConfigError, match="out of order"):
        cascade("Broken")


def test_the_same_request_is_not_paid_for_twice():
    _, notes, chat = cascade("Unsure", "Sure", stop_at=1.0)
    assert (len(chat.asked), len(told(notes, "asked_before"))) == (1, 1)
    assert len(cascade("Unsure", "Sure", stop_at=1.0, handover=False)[2].asked) == 2


def test_a_spent_budget_leaves_the_answer_of_the_stages_before():
    limited = BudgetSettings(calls=1)
    answer, notes, _ = cascade("Unsure", "Sure", handover=False, budget=limited)
    # not the "D" that the second stage proposed on its way
    assert (answer.choice, answer.status) == ("B", "answered")
    assert told(notes, "stage_cut")
    answer, _, _ = cascade("Unsure", budget=limited, stage_fields={stage("Unsure"): {"calls": 2}})
    assert answer.status == "answered"


def test_a_stage_that_usually_costs_more_than_is_left_is_not_begun():
    facts = StageFacts(tokens=500, cost=0.5, frames=3, calls=2, seconds=9)
    assert unaffordable(facts, BudgetSettings(), Usage(tokens_in=10**9)) == ""
    assert unaffordable(facts, BudgetSettings(tokens=600), Usage(tokens_in=100)) == ""
    assert unaffordable(facts, BudgetSettings(tokens=600), Usage(tokens_in=101)).startswith("token")
    assert unaffordable(facts, BudgetSettings(cost=0.6), Usage(cost=0.2)).startswith("cost")
    assert unaffordable(facts, BudgetSettings(seconds=10), Usage(seconds=2)).startswith("seconds")


def test_the_plan_keeps_what_models_and_film_allow():
    needs = {"uniform": Needs(("vlm",), 9000), "videoagent": Needs(("llm", "captioner"))}
    stages = ("notes", "uniform", "videoagent", "notes")
    everything = Situation(frozenset({"llm", "vlm", "captioner"}), context=10_000)
    assert plan(stages, needs, everything).stages == ("uniform", "videoagent", "notes")
    small = Situation(everything.roles, context=8000)
    assert "9000 tokens" in plan(stages, needs, small).skipped["uniform"]
    blind = Situation(everything.roles, sees=False)
    assert "pictures" in plan(stages, needs, blind).skipped["uniform"]
    sparse = Situation(everything.roles, dense=False)
    assert "too long" in plan(stages, needs, sparse).skipped["uniform"]
    alone = Situation(frozenset({"llm"}))
    assert plan(stages, needs, alone).stages == ()


def voice(choice, chance, supports=0):
    checked = Checked(Answer(choice), done=True, supports=supports)
    return Voice("stage", checked, chance, {})


def test_two_likely_voices_outweigh_one_and_support_speaks_for_them():
    voices = [voice("A", 0.7), voice("B", 0.6, supports=1), voice("B", 0.65)]
    found = standing(voices, QUESTION, {})
    assert found.voice is voices[1]
    assert 0.7 < found.probability < 0.9
    assert found.agreeing == 2


def test_answers_in_words_count_as_one_if_one_holds_the_other():
    words = [Answer(text="the green cup"), Answer(text="Green cup."), Answer(text="a lamp")]
    voices = [Voice("s", Checked(answer), 0.5, {}) for answer in words]
    assert standing(voices, Question("What is it?"), {}).agreeing == 2


def test_it_stops_where_what_lies_ahead_gains_too_little():
    assert keys(("notes", "lookup", "notes")) == ["notes", "lookup", "notes#2"]
    rule = Calibration(
        prospects={"dear": {"bias": 2.0, "counting": -4.0}},
        stages={"dear": StageFacts(tokens=200_000, by_kind={"order": 20_000})},
    )

    def stops(kind, least_gain):
        limits = {"stop_at": 0.95, "least_gain": least_gain}
        return decide(rule, 0.6, {}, kind, ["dear"], **limits).stop

    assert not stops("plain", 0.1)  # 0.88 − 0.6 for two units
    assert stops("plain", 0.2)
    assert not stops("order", 0.2)  # a tenth of the tokens
    assert stops("counting", 0.0)  # would only get worse
    assert decide(rule, 0.96, {}, "order", ["dear"], stop_at=0.95, least_gain=0).stop


def test_notes_are_split_at_their_times_merged_and_chosen_by_relevance():
    told = Line(Segment(0, 60), "[00:00:05] A cat sits. It sleeps. [00:00:30] A dog runs.")
    lines = split(told)
    assert [(line.segment.start, line.text) for line in lines] == [
        (5, "A cat sits."),
        (5, "It sleeps."),
        (30, "A dog runs."),
    ]
    again = [Line(Segment(8, 8), "A cat sits."), Line(Segment(50, 50), "A cat sits.")]
    assert [line.segment.start for line in merged([*lines, *again])] == [5, 5, 30, 50]
    footage = TestFootage(60, {line.text: [0] for line in lines})
    assert len(relevant(footage, Question("A dog runs."), lines, 2)) == 2


def test_the_shipped_calibration_says_where_it_comes_from():
    rule = shipped()
    assert "lab" in rule.provenance["benchmark"]
    assert rule.provenance["questions"] > 100
    assert {"lookup", "videoagent", "symphony"} <= rule.methods.keys()


def test_stages_take_the_settings_of_their_own_sections():
    session = Session().with_fields("symphony", {"max_steps": 3, "grounding": {"scored_frames": 7}})
    fields = session.method("auto").stage_fields["symphony"]
    assert (fields["max_steps"], fields["grounding"]["scored_frames"]) == (3, 7)
    assert fields["grounding"]["max_scorings"] == 1  # what auto itself sets
