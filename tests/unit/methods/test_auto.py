"""The cascade: which stages run, when it stops, and what it hands over."""

from __future__ import annotations

import numpy as np
import pytest
from support.footages import TestFootage

from longtake.agents.calibration import StageFacts
from longtake.agents.run import Run, settle
from longtake.config import BudgetSettings
from longtake.errors import BudgetSpent, ConfigError, ModelError
from longtake.llm.backends.scripted import ScriptedChat
from longtake.llm.chat import Card
from longtake.methods.auto.method import Auto, closest_moments, in_turns, shipped
from longtake.methods.auto.plan import (
    NOTHING,
    Needs,
    NextStage,
    Room,
    Situation,
    fitted,
    frames_of,
    plan,
    unaffordable,
)
from longtake.methods.base import FULL, SMALL, configure, name_of
from longtake.methods.lookup.method import Lookup
from longtake.runner.session import Session, solve
from longtake.tracing.events import Stream
from longtake.tracing.sinks import Recorder
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
    return result.answer, noted(recorder), chat


def noted(recorder):
    return [(event.label, event.data) for event in recorder.trace.events if event.kind == "noted"]


def told(notes, label):
    return [data for name, data in notes if name == label]


def test_it_stops_when_the_answer_is_likely_enough():
    answer, notes, _ = cascade("Sure", "Unsure")
    assert (answer.choice, answer.confidence) == ("A", 0.95)
    assert [data["stop"] for data in told(notes, "decided")] == [True]
    assert len(told(notes, "stage")) == 1


def uncertain(footage, budget=None, **more):
    """Two stages under a calibrated rule that was fitted with a simulated model."""
    rule = {
        "methods": {stage("Unsure"): {"bias": -1.0}, stage("Sure"): {"bias": 3.0}},
        "prospects": {stage("Unsure"): {"bias": 1.0}, stage("Sure"): {"bias": 3.0, NOTHING: -5.0}},
        "final": {"bias": 9.0},
        "provenance": {"runs": [{"models": "lab/profile=lab-2"}, "not a run"]},
    }
    method = Auto(stages=(stage("Unsure"), stage("Sure")), rule=rule | more)
    run = Run({"llm": ScriptedChat(lambda *_: "said")}, budget=budget)
    return solve(method, footage, QUESTION, run, check=False).answer


class Captioned(TestFootage):
    """A film of which only captions are known."""

    __test__ = False
    has = frozenset({"captions"})


def test_over_captions_the_first_answer_stands_if_the_rule_does_not_know_the_model():
    assert uncertain(TestFootage(20)).choice == "A"
    assert uncertain(Captioned(20)).choice == "B"
    assert uncertain(Captioned(20), **KNOWN).choice == "A"
    assert uncertain(Captioned(20), provenance={}).choice == "A"
    assert shipped().knows("lab/acuity=0.1")
    assert not shipped().knows("local/qwen2.5-1.5b")


KNOWN = {"provenance": {"runs": [{"models": "other, scripted"}]}}


def test_a_probability_is_stated_only_for_models_that_the_rule_was_fitted_with():
    assert uncertain(TestFootage(20)).confidence is None
    assert uncertain(TestFootage(20), **KNOWN).confidence is not None


def test_the_last_correction_is_for_where_the_rule_stops_and_not_for_where_a_budget_does():
    assert uncertain(TestFootage(20), **KNOWN).confidence == pytest.approx(0.999)
    limited = uncertain(TestFootage(20), budget=BudgetSettings(calls=50), **KNOWN)
    assert limited.confidence is not None
    assert limited.confidence < 0.99


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
    # an abstention of a stage that looked at less does not hide the error
    with pytest.raises(ConfigError, match="out of order"):
        cascade("Silent", "Broken")


def test_a_model_that_is_gone_is_not_asked_again_by_every_stage():
    method = Auto(stages=tuple(map(stage, ("Silent", "Unsure", "Sure"))), stop="stated", rule=RULE)
    chat = ScriptedChat(lambda *_: ModelError("scripted", "unavailable", "nobody answers"))
    recorder = Recorder()
    with Stream(recorder).active(), pytest.raises(ModelError, match="nobody answers"):
        solve(method, TestFootage(20), QUESTION, Run({"llm": chat}), check=False)
    assert len(chat.asked) == 1
    skipped = told(noted(recorder), "stage_skipped")
    assert [data["why"] for data in skipped] == ["scripted is unavailable"]


def test_a_leader_that_a_budget_keeps_from_improving_is_no_answer_cut_short():
    run = Run({"llm": ScriptedChat(lambda *_: "said")})
    run.propose(Answer("A"))
    assert settle(BudgetSpent("calls", "1", run.ledger.best)).status == "budget_spent"
    run.propose(Answer("A"), complete=True)
    complete = BudgetSpent("calls", "1", run.ledger.best, complete=run.ledger.complete)
    assert settle(complete).status == "answered"
    run.propose(Answer("B"))
    assert not run.ledger.complete


@pytest.mark.parametrize(("indexed", "first"), [(True, "Sure"), (False, "Unsure")])
def test_where_time_is_short_and_nothing_is_indexed_the_cheapest_stage_begins(indexed, first):
    rule = {"prospects": {stage("Unsure"): {"bias": -3.0}, stage("Sure"): {"bias": 3.0}}}
    method = Auto(stages=(stage("Unsure"), stage("Sure")), rule=rule)
    footage = TestFootage(20)
    footage.indexed = indexed
    run = Run({"llm": ScriptedChat(lambda *_: "said")}, budget=BudgetSettings(seconds=600))
    recorder = Recorder()
    with Stream(recorder).active():
        solve(method, footage, QUESTION, run, check=False)
    assert told(noted(recorder), "stage")[0]["stage"] == stage(first)


def test_a_spent_budget_leaves_the_answer_of_the_stages_before():
    limited = BudgetSettings(calls=1)
    answer, notes, _ = cascade("Unsure", "Sure", budget=limited)
    # not the "D" that the second stage proposed on its way
    assert (answer.choice, answer.status) == ("B", "answered")
    assert told(notes, "stage_cut")


def test_a_stage_that_usually_costs_more_than_is_left_is_not_begun():
    facts = StageFacts(tokens=500, cost=0.5, frames=3, calls=2, seconds=9)
    assert unaffordable(facts, BudgetSettings(), Usage(tokens_in=10**9)) == ""
    assert unaffordable(facts, BudgetSettings(tokens=600), Usage(tokens_in=100)) == ""
    assert unaffordable(facts, BudgetSettings(tokens=600), Usage(tokens_in=101)).startswith("token")
    assert unaffordable(facts, BudgetSettings(cost=0.6), Usage(cost=0.2)).startswith("cost")
    assert unaffordable(facts, BudgetSettings(seconds=10), Usage(seconds=2)).startswith("seconds")
    # two more calls at the pace of this run, whatever the calibration's machine took
    quick, slow = Usage(calls=4, seconds=8.0), Usage(calls=1, seconds=8.0)
    facts = StageFacts(calls=2, seconds=0.1)
    assert unaffordable(facts, BudgetSettings(seconds=15), quick) == ""
    assert unaffordable(facts, BudgetSettings(seconds=15), slow).startswith("seconds: usually 16")


def test_the_plan_keeps_what_models_and_film_allow():
    needs = {"uniform": Needs(("vlm",), 9000), "videoagent": Needs(("llm", "captioner"))}
    stages = ("uniform", "videoagent")
    everything = Situation(frozenset({"llm", "vlm", "captioner"}), context=10_000)
    assert plan(stages, needs, everything).stages == ("uniform", "videoagent")
    small = Situation(everything.roles, context=8000)
    assert "9000 tokens" in plan(stages, needs, small).skipped["uniform"]
    hurried = Situation(everything.roles, waits=True)
    searching = {"search@16": Needs(("vlm",), index=True), **needs}
    found = plan(("search@16", "videoagent"), searching, hurried)
    assert found.stages == ("videoagent",)
    assert found.skipped["search@16"] == "the film is not indexed yet, and the time is limited"
    blind = Situation(everything.roles, sees=False)
    assert "pictures" in plan(stages, needs, blind).skipped["uniform"]
    alone = Situation(frozenset({"llm"}))
    assert plan(stages, needs, alone).stages == ()


def test_a_budget_is_used_where_no_gain_would_be_worth_its_tokens_otherwise():
    rule = {
        "stop_at": 0.9,
        "least_gain": 0.5,
        "methods": {stage("Unsure"): {"bias": 0.0}, stage("Sure"): {"bias": 1.0}},
        "prospects": {stage("Unsure"): {"bias": 0.0}, stage("Sure"): {"bias": 1.0}},
        "stages": {stage("Unsure"): {"tokens": 1.0}, stage("Sure"): {"tokens": 90_000.0}},
    }
    method = Auto(stages=(stage("Unsure"), stage("Sure")), rule=rule)

    def answer(budget):
        run = Run({"llm": ScriptedChat(lambda *_: "said")}, budget=budget)
        return solve(method, TestFootage(20), QUESTION, run, check=False).answer.choice

    assert answer(None) == "B"
    assert answer(BudgetSettings(tokens=100_000)) == "A"
    assert answer(BudgetSettings(tokens=10_000)) == "B"


def test_names_of_stages():
    assert (name_of("uniform@480"), name_of("a4vl")) == ("uniform", "a4vl")
    assert (frames_of("uniform@480"), frames_of("lookup")) == (480, None)


def seeing(**card):
    known = Card("scripted", vision=True, picture_tokens=90, **card)
    return ScriptedChat(lambda *_: '{"reason": "seen", "choice": "B"}', card=known)


def frames_shown(chat, stages, budget=None, check=False):
    """The frames of each stage, under a rule that lets all of them run."""
    method = Auto(stages=stages, stop="stated", stop_at=1.0, rule=RULE)
    recorder = Recorder()
    run = Run({"llm": chat, "vlm": chat}, budget=budget)
    with Stream(recorder).active():
        solve(method, TestFootage(900), QUESTION, run, check=check)
    notes = [event.data for event in recorder.trace.events if event.kind == "noted"]
    return [data["frames"] for data in notes if "frames" in data]


def test_as_many_frames_are_shown_as_fit_the_context_and_the_budget():
    stages = ("uniform@40", "uniform@400")
    assert frames_shown(seeing(context=100_000), stages) == [40, 400]
    # 4,096 tokens for words, 100 for each picture
    assert frames_shown(seeing(context=14_096), stages) == [40, 100]
    limited = frames_shown(seeing(context=100_000), stages, BudgetSettings(tokens=20_000))
    assert limited[0] == 40
    assert 60 < limited[1] < 160
    # what the first look leaves would be too little for a second
    assert frames_shown(seeing(context=100_000), stages, BudgetSettings(frames=95)) == [86]
    assert frames_shown(seeing(context=100_000, small="told"), stages) == [32]


def test_a_stage_is_rated_by_what_it_shows_and_a_small_budget_is_spent_on_one_look():
    sizes = [16, 64, 256]
    assert fitted("search@64", Room(477), sizes) == NextStage("search@64", "search@64", 64)
    assert fitted("search@256", Room(240), sizes) == NextStage("search@256", "search@256", 240)
    assert fitted("search@256", Room(100), sizes) == NextStage("search@256", "search@64", 100)
    assert fitted("search@16", Room(34, limited=True), sizes) == NextStage(
        "search@16", "search@16", 34
    )
    assert fitted("search@16", Room(34), sizes) == NextStage("search@16", "search@16", 16)
    assert isinstance(fitted("search@64", Room(20, shown=16), sizes), str)
    assert isinstance(fitted("uniform@480", Room(20), [480]), str)
    assert fitted("uniform@480", Room(20), []) == NextStage("uniform@480", "uniform@480", 20)


def test_the_search_shows_what_is_closest_to_the_question_and_each_option_in_turns():
    queries = ["Who leaves?", "Who leaves? a", "Who leaves? b"]
    footage = TestFootage(60, {queries[0]: [5], queries[1]: [6, 30], queries[2]: [50]})
    assert closest_moments(footage, queries, 3, apart=4.0) == [5, 30, 50]
    assert len(closest_moments(footage, queries, 60, apart=4.0)) <= 15
    assert in_turns(np.array([[0.9, 0.1, 0.5], [0.2, 0.8, 0.9]]), 2) == [0, 2]
    assert frames_shown(seeing(context=100_000), ("search@16",)) == [16]
    # 900 seconds hold no more than 900 moments, so the third look would repeat the second
    thrice = frames_shown(seeing(context=200_000), ("search@16", "search@800", "search@1600"))
    assert thrice[0] == 16
    assert 400 < thrice[1] <= 800
    assert len(thrice) == 2


def test_the_shipped_calibration_says_where_it_comes_from():
    rule = shipped()
    assert "lab" in rule.provenance["benchmark"]
    assert rule.provenance["questions"] > 100
    assert {"lookup", "videoagent", "symphony"} <= rule.methods.keys()


def test_stages_take_the_settings_of_their_own_sections():
    session = Session().with_fields("symphony", {"max_steps": 3, "grounding": {"scored_frames": 7}})
    session = session.with_fields("auto", {"preset": FULL})
    fields = session.method("auto").stage_fields["symphony"]
    assert (fields["max_steps"], fields["grounding"]["scored_frames"]) == (3, 7)
    assert fields["grounding"]["max_scorings"] == 1  # what auto itself sets


def test_with_a_small_model_it_goes_on_only_where_nothing_was_found():
    small = configure(Auto, {}, small=True)
    assert small.stages == ("lookup", "videoagent")
    fields = {"stop_at": small.stop_at, "least_gain": small.least_gain}
    answer, notes, _ = cascade("Unsure", "Sure", **fields)
    assert (answer.choice, len(told(notes, "stage"))) == ("B", 1)
    answer, notes, _ = cascade("Silent", "Sure", **fields)
    assert (answer.choice, len(told(notes, "stage"))) == ("A", 2)


@pytest.mark.parametrize(("own", "passages"), [({}, 2), ({"passages_for_options": 3}, 3)])
def test_small_models_read_fewer_passages_unless_the_settings_say_otherwise(own, passages):
    session = Session().with_fields("auto", {"preset": SMALL}).with_fields("lookup", own)
    stage = session.method("auto").method("lookup")
    assert stage.most_passages(Question("Who?", ("Ann", "Bob"))) == passages
    assert stage.most_passages(Question("Who?")) == Lookup.max_passages
    full = Session().with_fields("auto", {"preset": FULL}).method("auto").method("lookup")
    assert full.most_passages(Question("Who?", ("Ann", "Bob"))) == Lookup.max_passages


def test_words_are_counted_without_a_model():
    lines = [Line(Segment(3, 5), "Two lanterns."), Line(Segment(8, 9), "A lantern.")]
    run = Run({"llm": ScriptedChat([])})
    question = Question("How often is a lantern mentioned?")
    answer = solve(Auto(), TestFootage(20, lines=lines), question, run).answer
    assert answer.text.startswith("2 times in what is said")
    assert [cited.text for cited in answer.evidence] == ["Two lanterns.", "A lantern."]
