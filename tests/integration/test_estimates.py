"""A question never uses more than its estimate, whatever the method, question and options."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import pytest

from longtake.agents.run import Agent, Run
from longtake.config import BudgetSettings
from longtake.llm.chat import HERE, Price
from longtake.llm.middleware import Carded
from longtake.methods.base import configure
from longtake.registry import methods
from longtake.runner.estimate import estimate
from longtake.runner.session import solve
from longtake.types import Answer, Question
from longtake_bench.benchmarks.lab import lab
from longtake_bench.lab.model import LabChat
from longtake_bench.lab.profile import parse

AT_LENGTH = (
    " and this is told at length, with many further words about where, when, how and why "
    "it came to be so"
)
KINDS = ("needle", "order", "open")
SETTINGS = {"uniform": {"subtitles": True}}
"""Fields that make a method use more than it does by default."""


@pytest.fixture(scope="module")
def world():
    return lab([3], 6, 10)


def at_length(question: Question) -> Question:
    """The same with long texts, and eight options where there were four."""
    options = (
        [*question.options, *(f"something else, number {n}" for n in range(4))]
        if question.options
        else []
    )
    return Question(question.text + AT_LENGTH, tuple(option + AT_LENGTH for option in options))


@pytest.mark.parametrize(
    "worded", [lambda question: question, at_length], ids=["as it is", "at length"]
)
@pytest.mark.parametrize("name", methods.names())
def test_no_method_uses_more_than_its_estimate(name, worded, world):
    """Some seconds each: a method answers one question of each kind."""
    chat = LabChat(parse("acuity=1"))
    of_kind = {item.tags["type"]: item for item in world.items}
    for item in [of_kind[kind] for kind in KINDS]:
        method = configure(methods.get(name), SETTINGS.get(name, {}))
        footage, question = world.source.footage(item.asked.video), worded(item.asked.question)
        team = [Agent(f"agent {number}", chat) for number in (1, 2, 3)]
        run = Run({"llm": chat, "captioner": chat, "vlm": chat}, team=team)
        most = estimate(method, footage.duration, question, run, check=True)
        used = solve(method, footage, question, run, check=True).usage
        for figure in ("calls", "frames", "tokens_in", "tokens_out", "cost"):
            assert getattr(used, figure) <= getattr(most, figure), (figure, item.tags["type"])


@pytest.mark.parametrize("name", methods.names())
def test_two_calls_end_every_method_in_words(name, world):
    chat = LabChat(parse("acuity=1"))
    item = world.items[0].asked
    team = [Agent(f"agent {number}", chat) for number in (1, 2, 3)]
    roles = dict.fromkeys(("llm", "captioner", "vlm"), chat)
    run = Run(roles, team=team, budget=BudgetSettings(calls=2))
    result = solve(methods.get(name)(), world.source.footage(item.video), item.question, run)
    assert result.usage.calls <= 2
    assert result.answer.status in ("answered", "abstained", "budget_spent")
    if name == "symphony":
        assert result.answer.status == "budget_spent"


@dataclass(frozen=True)
class Unbounded:
    """A method that does not say what it can use."""

    name: ClassVar[str] = "unbounded"
    paper: ClassVar[str] = "none"
    roles: ClassVar[tuple[str, ...]] = ("llm",)
    presets: ClassVar[dict] = {}

    def answer(self, footage, question, run):
        return Answer("A")


@pytest.mark.parametrize(
    ("price", "cost", "paid"),
    [
        (HERE, 0.0, False),  # free, however often it is called
        (Price(1.0, 2.0, 1.0, source="a test"), None, True),
        (None, None, True),
    ],
)
def test_without_bounds_an_estimate_is_unknown(price, cost, paid):
    chat = LabChat(parse("acuity=1"))
    run = Run({"llm": Carded(chat, replace(chat.card, price=price))})
    most = estimate(Unbounded(), 60.0, Question("Which?"), run)
    assert (most.calls, most.frames, most.tokens_in, most.tokens_out) == (None,) * 4
    assert (most.cost, most.paid) == (cost, paid)


def test_a_question_without_spaces_is_counted_by_its_letters():
    run = Run({"llm": LabChat(parse("acuity=1"))})
    short, long = (
        estimate(methods.get("blind")(), 60.0, Question("猫" * n), run).tokens_in for n in (1, 300)
    )
    assert long > short + 300


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("lvagent", {"frames_per_chunk": 4}),
        ("a4vl", {"reason_first": False}),
        ("uniform", {"reason": False}),
    ],
)
def test_letters_that_a_model_does_not_tell_are_in_the_estimate(name, fields, world):
    """They are asked for by log-probability, and then once more in words."""
    chat = LabChat(parse("acuity=0.2"))
    hopeful = Carded(chat, replace(chat.card, letters=True))
    item = next(item for item in world.items if item.asked.question.options)
    method = configure(methods.get(name), fields)
    footage, question = world.source.footage(item.asked.video), item.asked.question
    calls = []
    for model in (chat, hopeful):
        run = Run({"vlm": model}, team=[Agent(f"agent {number}", model) for number in (1, 2, 3)])
        most = estimate(method, footage.duration, question, run)
        used = solve(method, footage, question, run).usage
        calls.append(used.calls)
        for figure in ("calls", "frames", "tokens_in", "tokens_out"):
            assert getattr(used, figure) <= getattr(most, figure), figure
    assert calls[1] > calls[0], "asked twice"
    without = estimate(method, footage.duration, question, Run({"vlm": chat}))
    assert most.calls > without.calls


def test_a_clip_at_the_films_own_rate_is_in_the_estimate():
    chat = LabChat(parse("acuity=1"))
    filmed = Carded(chat, replace(chat.card, show="video", clip_frames=100))
    question, uniform = Question("Which?"), methods.get("uniform")()
    least, most = (estimate(uniform, 60.0, question, Run({"vlm": each})) for each in (chat, filmed))
    assert most.frames == least.frames + 100
    assert most.tokens_in > least.tokens_in
