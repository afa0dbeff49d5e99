"""A lying server gets no key, no time beyond the deadline and no internal error out of a client."""

import math
import resource
import threading
import time

import pytest
from attack.liar import FLOODS, LIES, STALLS, deaf, lying, random_reply
from support.clocks import TurnedClock
from support.patience import FOREVER, PATIENCE

from longtake._util.cancellation import Cancelled, Stop
from longtake.config import BudgetSettings
from longtake.errors import BudgetSpent, ModelError
from longtake.llm.backends.openai import OpenAIChat
from longtake.llm.budget import Ledger
from longtake.llm.chat import Card, Options, Unavailable, say
from longtake.llm.http import Endpoint
from longtake.llm.middleware import Budgeted, Retrying

KEY = "sk-MARKED-0123456789abcdef"
DEADLINE = 0.4
LATE = PATIENCE
"""Seconds after the deadline by which a call must have ended; without one, a stall never ends."""
MUTATIONS = 150
"""Mutated responses in ``make test``; ``make attack`` goes on with fresh seeds."""


@pytest.fixture(scope="module")
def liar():
    with lying(KEY) as server:
        yield server


@pytest.fixture
def chat(liar):
    endpoint = Endpoint("m", liar.url, key=KEY, timeout=FOREVER)
    return OpenAIChat(Card("m", model="x"), endpoint)


def asked(chat, deadline=PATIENCE):
    """The reply or the error of one call, after checking what holds for every one of them."""
    began = time.monotonic()
    try:
        reply = chat.complete([say("user", "hello")], Options(deadline=deadline))
    except ModelError as error:
        reply = error
    else:
        usage = reply.usage
        assert usage.tokens_in >= 0
        assert usage.tokens_out >= 0
        assert 0 <= usage.tokens_cached <= usage.tokens_in
        assert math.isfinite(usage.tokens_in + usage.tokens_out)
        assert reply.text.encode()  # raises for half a character
    assert time.monotonic() - began < deadline + LATE
    assert KEY.lower() not in f"{reply} {reply!r}".lower()
    assert (getattr(reply, "retry_after", None) or 0.0) >= 0
    return reply


@pytest.mark.parametrize("mode", LIES)
def test_a_lie_is_a_reply_or_an_error_in_our_own_words(liar, chat, mode):
    liar.mode = LIES[mode]
    reply = asked(chat)
    assert mode.startswith("sound") <= (getattr(reply, "text", "") == '{"answer": "A"}')


@pytest.mark.parametrize("mode", STALLS)
def test_a_deadline_ends_a_server_that_does_not(liar, chat, mode):
    liar.mode = STALLS[mode]
    reply = asked(chat, DEADLINE)
    assert isinstance(reply, Unavailable)
    assert reply.out_of_time


@pytest.mark.parametrize("mode", FLOODS)
def test_a_flood_is_dammed(liar, chat, mode):
    liar.mode = FLOODS[mode]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert isinstance(asked(chat, 1.0), ModelError)
    # in kilobytes; 200 MB is room for a reply of the largest size, twice
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


def test_a_server_that_reads_nothing(liar):
    with deaf() as url:
        endpoint = Endpoint("m", url, timeout=FOREVER)
        began = time.monotonic()
        with pytest.raises(Unavailable):
            endpoint.post("x", {"words": "a" * 20_000_000}, DEADLINE)
        assert time.monotonic() - began < DEADLINE + LATE


def test_mutated_responses(liar, chat):
    for seed in range(MUTATIONS):
        liar.mode = random_reply(seed)
        try:
            asked(chat, 5.0)
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error


@pytest.mark.parametrize("mode", ["no reply", "slow headers", "body without a length"])
def test_cancelling_ends_a_call_in_flight(liar, chat, mode):
    liar.mode = STALLS[mode]
    stop = Stop()
    threading.Timer(0.2, stop.set).start()
    began = time.monotonic()
    with stop.in_force(), pytest.raises(Cancelled):
        chat.complete([say("user", "hello")], Options())
    assert time.monotonic() - began < 0.2 + LATE


def test_a_connection_is_used_again_after_all_that(liar, chat):
    liar.mode = LIES["sound"]
    assert asked(chat).text == '{"answer": "A"}'


@pytest.mark.parametrize("mode", ["empty", "a page", "closed", "no choices", "error with 200"])
@pytest.mark.parametrize("most", [1, 3])
def test_every_try_counts_as_a_call(liar, chat, mode, most):
    liar.mode, liar.posts = LIES[mode], 0
    ledger = Ledger(BudgetSettings(calls=most))
    budgeted = Budgeted(Retrying(chat, clock=TurnedClock()), ledger)
    with pytest.raises(BudgetSpent, match=rf"calls \({most} of {most}; the last failed: "):
        budgeted.complete([say("user", "hello")], Options())
    assert (liar.posts, ledger.spent.calls) == (most, most)


def test_a_reply_that_cannot_be_read_was_not_free(liar, chat):
    liar.mode = LIES["no choices"]
    ledger = Ledger()
    budgeted = Budgeted(Retrying(chat, tries=2, clock=TurnedClock()), ledger)
    with pytest.raises(Unavailable, match="tried 2 of 2"):
        budgeted.complete([say("user", "hello")], Options())
    assert ledger.spent.calls == 2
    assert ledger.spent.tokens_in > 0
    assert ledger.spent.tokens_out > 0
