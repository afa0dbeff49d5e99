"""Two hundred typed questions to a server that fails at 30 %: none lost, none guessed."""

import json
import random
import re
import threading
from collections import Counter

import pytest
from pydantic import BaseModel, Field
from support.clocks import TurnedClock
from support.listening import listening
from support.server import Request, Send, completion, serve

from longtake import prompts
from longtake.agents.run import Run
from longtake.agents.team import fanout
from longtake.llm.backends.openai import OpenAIChat
from longtake.llm.chat import Card
from longtake.llm.http import Endpoint
from longtake.llm.middleware import Gate, Limited, Retrying
from longtake.llm.structured.ask import ask
from longtake.llm.structured.schema import Letter
from longtake.types import Question

ASKS = 200
SILENCE = 3.0
"""Seconds that a request waits for a server that says nothing; busy cores make others wait, too."""
RATE = 0.30


class Guess(BaseModel):
    choice: Letter = None
    score: int = Field(ge=1, le=10)


ABSTAIN = Guess.model_construct(choice=None, score=1)


def truth(number: int) -> Guess:
    """The only right reply to question ``number``."""
    return Guess.model_construct(choice="ABCD"[number % 4], score=number % 10 + 1)


class Faults:
    """Answers rightly, or breaks in a way picked by chance.

    Chance depends on the question and on how often it was asked, so that the order in which threads
    come does not change what happens.
    """

    kinds = (
        "429", "429 with Retry-After", "500", "hang", "reset", "truncated body", "truncated JSON",
        "prose around JSON", "wrong types", "wrong letters", "two letters", "empty",
        "thinking only", "thinking", "two answers",
    )  # fmt: skip

    def __init__(self) -> None:
        self.times: Counter[int] = Counter()
        self.lock = threading.Lock()
        self.made: Counter[str] = Counter()

    def __call__(self, request: Request) -> Send:
        found = re.search(r"Question number (\d+)\.", request.text)
        assert found
        number = int(found.group(1))
        right = truth(number)
        good = json.dumps({"choice": right.choice, "score": right.score})
        with self.lock:
            self.times[number] += 1
            chance = random.Random(f"{number}, {self.times[number]}")
            turn = (number + self.times[number]) % len(
                self.kinds
            )  # so that every kind has its turns
            kind = self.kinds[turn] if chance.random() < RATE else "none"
            if kind == "hang" and number > ASKS / 4:  # each waits by itself once the gate is narrow
                kind = "reset"
            self.made[kind] += 1
        match kind:
            case "429":
                return Send(429, {"error": "slow down"})
            case "429 with Retry-After":
                return Send(429, {"error": "slow down"}, {"Retry-After": "3"})
            case "500":
                return Send(500, b"<h1>oops</h1>")
            case "hang":
                return Send(breaks="hang")
            case "reset":
                send = completion(good)
                send.breaks = "reset"
                return send
            case "truncated body":
                return Send(200, json.dumps(completion(good).body)[:40].encode())
            case "truncated JSON":
                return completion(good[: len(good) - 3], finish="length")
            case "prose around JSON":
                return completion(
                    f"Sure! Let me see {{frames}}.\n```json\n{good}\n```\nHope this helps."
                )
            case "wrong types":
                return completion('{"choice": "B", "score": "very high"}')
            case "wrong letters":
                return completion('{"choice": "Z", "score": 3}')
            case "two letters":
                return completion('{"choice": "A or B", "score": 3}')
            case "empty":
                return completion("")
            case "thinking only":
                return completion('<think>Perhaps {"choice": "A", "score": 9}', finish="length")
            case "thinking":
                return completion(f'<think>{{"choice": "A", "score": 9}}?</think>{good}')
            case "two answers":
                return completion('{"choice": "A", "score": 3}\n{"choice": "B", "score": 3}')
        return completion(good)


def test_200_asks_at_a_fault_rate_of_30_percent(tmp_path: object) -> None:
    """Slow: where the server says nothing, each request waits for its timeout."""
    faults = Faults()
    with serve(faults) as served, listening() as heard:
        backend = OpenAIChat(
            Card("faulty", model="m"), Endpoint("faulty", served.url, timeout=SILENCE)
        )
        clock = TurnedClock()
        run = Run({"llm": Retrying(Limited(backend, Gate(16)), clock=clock)})

        def one(number: int) -> Guess:
            question = Question(f"Question number {number}.", ("one", "two", "three", "four"))
            return ask(run["llm"], "shared/probe_faults", Guess, question=question, default=ABSTAIN)

        results = fanout(one, range(ASKS), limit=16)
    defaults = [number for number, guess in enumerate(results) if guess is ABSTAIN]
    assert len(results) == ASKS
    for number, guess in enumerate(results):
        if number not in defaults:
            assert guess == truth(number)
    assert len(heard.notes("default_taken")) == len(defaults)
    assert len(defaults) < ASKS * 0.1
    assert set(faults.kinds) <= faults.made.keys(), "every kind of fault was met"
    assert len(heard.notes("asked_again")) > 0
    assert len(heard.notes("retry")) > 0
    print(
        f"values {ASKS - len(defaults)}, defaults {len(defaults)}, "
        f"requests {len(served.requests)}, "
        f"retries {len(heard.notes('retry'))}, asked again {len(heard.notes('asked_again'))}"
    )


@pytest.fixture(autouse=True)
def prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    """A prompt of the test's own, so that none is shipped for it."""
    shipped = prompts.load
    own = prompts.Prompt("shared/probe_faults", "$question")
    monkeypatch.setattr(prompts, "load", lambda name: own if name == own.name else shipped(name))
