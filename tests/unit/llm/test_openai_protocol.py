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
