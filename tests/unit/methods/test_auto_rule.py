"""The rule of the cascade: which answer leads, which stage comes next, and when to stop."""

from __future__ import annotations

import pytest

from longtake.agents.calibration import Calibration, StageFacts
from longtake.agents.verify import Checked
from longtake.algorithms.question_kinds import SEARCH_KINDS
from longtake.config import BudgetSettings
from longtake.methods.auto.method import shipped
from longtake.methods.auto.plan import (
    NOTHING,
    NextStage,
    StageVote,
    decide,
    leader_among,
    only_time_is_limited,
)
from longtake.types import Answer, Question

QUESTION = Question("Who leaves?", ("a", "b", "c", "d"))


def voice(choice, chance, supports=0):
    checked = Checked(Answer(choice), done=True, supports=supports)
    return StageVote("stage", checked, chance, {})


def test_two_likely_voices_outweigh_one_and_support_speaks_for_them():
    voices = [voice("A", 0.7), voice("B", 0.6, supports=1), voice("B", 0.65)]
    found = leader_among(voices, QUESTION, {})
    assert found.vote is voices[1]
    assert 0.7 < found.probability < 0.9
    assert found.signals["agreeing"] == 1


def test_answers_in_words_count_as_one_if_one_holds_the_other():
    words = [Answer(text="the green cup"), Answer(text="Green cup."), Answer(text="a lamp")]
    voices = [StageVote("s", Checked(answer), 0.5, {}) for answer in words]
    assert leader_among(voices, Question("What is it?"), {}).signals["agreeing"] == 1


def ahead(*keys):
    return [NextStage(key, key) for key in keys]


def test_it_stops_where_what_lies_ahead_gains_too_little():
    rule = Calibration(
        prospects={"dear": {"bias": 2.0, "counting": -4.0}},
        stages={"dear": StageFacts(tokens=200_000, by_kind={"order": 20_000})},
    )

    def stops(kind, least_gain):
        limits = {"stop_at": 0.95, "least_gain": least_gain}
        return decide(rule, 0.6, {}, kind, ahead("dear"), **limits).next is None

    assert not stops("plain", 0.1)  # 0.88 − 0.6 for two units
    assert stops("plain", 0.2)
    assert not stops("order", 0.2)  # a tenth of the tokens
    assert stops("counting", 0.0)  # would only get worse
    assert decide(rule, 0.96, {}, "order", ahead("dear"), stop_at=0.95, least_gain=0).next is None


def test_the_stage_that_gains_most_per_token_comes_next_and_unknown_ones_last():
    rule = Calibration(
        prospects={"dear": {"bias": 3.0}, "cheap": {"bias": 0.0, "counting": -3.0}},
        stages={"dear": StageFacts(tokens=100_000), "cheap": StageFacts(tokens=5_000)},
    )

    def following(kind, *keys, chance=0.3):
        limits = {"stop_at": 0.99, "least_gain": 0.0}
        chosen = decide(rule, chance, {}, kind, ahead(*keys), **limits).next
        return None if chosen is None else chosen.key

    assert following("plain", "new", "dear", "cheap") == "cheap"
    assert following("counting", "new", "dear", "cheap") == "dear"
    assert following("plain", "new", "cheap", chance=0.6) is None
    assert following("plain", "new") == "new"


def test_where_only_time_is_limited_the_stage_that_gains_most_per_call_comes_next():
    rule = Calibration(
        prospects={"dense": {"bias": 2.0}, "rounds": {"bias": 1.0}},
        stages={
            "dense": StageFacts(tokens=100_000, calls=1),
            "rounds": StageFacts(tokens=8_000, calls=15),
        },
    )
    limits = {"stop_at": 0.99, "least_gain": 0.0}
    both = ahead("rounds", "dense")
    assert decide(rule, 0.3, {}, "plain", both, **limits).next.key == "rounds"
    assert decide(rule, 0.3, {}, "plain", both, by_calls=True, **limits).next.key == "dense"
    assert only_time_is_limited(BudgetSettings(seconds=5))
    assert not only_time_is_limited(BudgetSettings(seconds=5, tokens=10))
    assert not only_time_is_limited(BudgetSettings())


def test_a_signal_can_mean_something_else_for_each_kind_of_question():
    weights = {"odds": 1.0, "plain supported": 2.0, "counting supported": -2.0}
    voices = [voice("A", 0.7, supports=1)]
    counting = Question("How many leave?", QUESTION.options)
    surer = leader_among(voices, QUESTION, weights).probability
    assert leader_among(voices, counting, weights).probability < 0.7 < surer


@pytest.mark.parametrize("asked", [*SEARCH_KINDS, "plain"])
def test_the_shipped_rule_looks_things_up_before_it_looks(asked):
    ahead = [NextStage("videoagent", "videoagent"), NextStage("lookup", "lookup")]
    first = decide(shipped(), 0.0, {NOTHING: 1.0}, asked, ahead, stop_at=1.0, least_gain=0.0)
    assert first.next is not None
    assert first.next.key == "lookup"
