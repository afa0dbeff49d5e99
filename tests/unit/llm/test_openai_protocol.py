"""What servers say of a call is checked before it is believed."""

from __future__ import annotations

import math

import pytest

from longtake.llm.chat import Card, Price, say
from longtake.llm.openai_protocol import read_reply

CARD = Card("m", price=Price(1.0, 2.0, 1.0, source="a test"))
MESSAGES = [say("user", "hello there, who is it?")]


def usage_of(usage, text="It is the dog."):
    choice = {"message": {"content": text}, "finish_reason": "stop"}
    return read_reply(CARD, {"choices": [choice], "usage": usage}, MESSAGES, 0.1).usage


@pytest.mark.parametrize(
    "usage",
    [
        None,
        [],
        "many",
        {"prompt_tokens": -7, "completion_tokens": 3},
        {"prompt_tokens": "12", "completion_tokens": 3},
        {"prompt_tokens": math.nan, "completion_tokens": 3},
        {"prompt_tokens": 10**12, "completion_tokens": 3},
        {"prompt_tokens": True, "completion_tokens": 3},
        {"prompt_tokens": [5], "completion_tokens": {}},
    ],
)
def test_usage_that_cannot_be_is_estimated(usage):
    used = usage_of(usage)
    assert used.tokens_in > 0
    assert used.tokens_out > 0
    assert used.cost > 0


@pytest.mark.parametrize("completion", [-3, None, "x", 0, [1], math.inf])
def test_a_reply_that_says_something_was_written_in_tokens(completion):
    used = usage_of({"prompt_tokens": 10, "completion_tokens": completion})
    assert used.tokens_in == 10
    assert used.tokens_out > 0


def test_no_more_is_cached_than_was_sent():
    details = {"cached_tokens": 500}
    used = usage_of({"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": details})
    assert used.tokens_cached == 10
    details = {"cached_tokens": -500}
    used = usage_of({"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": details})
    assert used.tokens_cached == 0


@pytest.mark.parametrize(
    ("logprob", "probability"),
    [(math.log(0.25), 0.25), (1e-7, 1.0), (-(10**400), 0.0), (-math.inf, 0.0)],
)
def test_logprobs_become_probabilities(logprob, probability):
    assert odds_with(logprob) == {"A": pytest.approx(probability), "B": 0.5}


@pytest.mark.parametrize("logprob", [math.nan, None, "-1", [0]])
def test_logprobs_that_are_no_numbers_count_as_unknown(logprob):
    assert odds_with(logprob) == {"B": 0.5}


def odds_with(logprob):
    top = [{"token": "A", "logprob": logprob}, {"token": "B", "logprob": math.log(0.5)}]
    choice = {"message": {"content": "A"}, "logprobs": {"content": [{"top_logprobs": top}]}}
    return read_reply(CARD, {"choices": [choice]}, MESSAGES, 0.1, "AB").odds
