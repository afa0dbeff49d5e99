"""Letters by log-probability, and options in rotated order."""

from __future__ import annotations

import math
from typing import Any

import pytest
from support.listening import listening
from support.patience import PATIENCE
from support.server import Request, Send, completion, serve

from longtake.agents.answer import Guess, guess
from longtake.llm.backends.openai import OpenAIChat
from longtake.llm.backends.scripted import ScriptedChat
from longtake.llm.capabilities import Capabilities, KnownCapabilities
from longtake.llm.chat import Card, Options, Reply
from longtake.llm.http import Endpoint
from longtake.llm.middleware import EVERY_OPTION, with_capabilities
from longtake.llm.probe import measure_bias
from longtake.types import Question

QUESTION = Question("Who barks?", ("the man", "the dog", "the cat"))
TOLD: dict[str, Any] = {"manner": ""}


def with_odds(odds: dict[str, float]) -> Send:
    """A completion whose first token had these probabilities, in the protocol's shape."""
    send = completion(max(odds, key=odds.__getitem__))
    top = [{"token": token, "logprob": math.log(value)} for token, value in odds.items()]
    send.body["choices"][0]["logprobs"] = {"content": [{"token": "B", "top_logprobs": top}]}
    return send


def chat_at(url: str, capabilities: Capabilities | None = None) -> OpenAIChat:
    return OpenAIChat(
        Card("there", model="m"), Endpoint("there", url, timeout=PATIENCE), capabilities
    )


def test_the_letter_alone_is_one_token_with_the_odds_of_every_option() -> None:
    odds = {" B": 0.5, "(B": 0.1, "A": 0.2, "a": 0.05, "The": 0.1}
    with serve(lambda _: with_odds(odds)) as served:
        said = guess(chat_at(served.url), "baselines/blind", QUESTION, reasoned=False, **TOLD)
    (request,) = served.requests
    assert (request.body["max_tokens"], request.body["logprobs"]) == (1, True)
    assert "response_format" not in request.body
    assert request.text.endswith("Reply with the letter only.")
    assert said.choice == "B"
    assert said.odds == pytest.approx({"A": 0.25, "B": 0.75, "C": 0.0})
    assert said.as_answer().confidence == pytest.approx(0.75)


def refusing(request: Request) -> Send:
    if "logprobs" in request.body:
        return Send(400, {"error": {"message": "logprobs is not supported by this model"}})
    return completion('{"choice": "B"}')


@pytest.mark.parametrize(
    "server",
    [
        refusing,
        lambda _: completion('{"choice": "B"}'),  # takes the parameter and tells nothing
        lambda r: with_odds({"<think>": 0.99}) if "logprobs" in r.body else completion("B"),
        lambda r: completion("B", logprobs={"content": [None]}),
    ],
)
def test_without_log_probabilities_the_letter_is_read_as_before(server: Any) -> None:
    capabilities = Capabilities()
    with serve(server) as served, listening() as heard:
        for _ in range(2):
            chat = with_capabilities(chat_at(served.url, capabilities))
            said = guess(chat, "baselines/blind", QUESTION, reasoned=False, **TOLD)
            assert (said.choice, said.odds) == ("B", {})
    assert len(heard.notes("letters_not_offered")) == 1, "tried once"
    assert chat.card.letters is False


def test_a_reasoned_answer_is_one_request_as_before() -> None:
    with serve(lambda _: completion('{"reason": "it barks", "choice": "B"}')) as served:
        said = guess(chat_at(served.url), "baselines/blind", QUESTION, **TOLD)
    assert (said.choice, said.reason) == ("B", "it barks")
    assert "logprobs" not in served.requests[0].body
    assert said.as_answer().confidence is None


def test_agents_that_are_to_differ_draw_their_letters() -> None:
    card = Card("warm", letters=True, options=Options(temperature=0.7))
    chat = ScriptedChat(['{"choice": "B"}'], card=card)
    assert guess(chat, "baselines/blind", QUESTION, reasoned=False, **TOLD).choice == "B"
    assert not chat.asked[0][1].letters


def place_of(text: str, option: str) -> str:
    """The letter that an option has in a prompt."""
    line = next(line for line in text.splitlines() if line.endswith(f". {option}"))
    return line.partition(".")[0][-1]


def permuting(script: Any, *, letters: bool = False) -> ScriptedChat:
    return ScriptedChat(script, card=Card("there", permutations=3, letters=letters))


def test_a_model_that_always_says_a_is_seen_through_and_one_that_knows_is_not_harmed() -> None:
    biased = permuting(lambda messages, options: '{"reason": "so", "choice": "A"}')
    with listening() as heard:
        said = guess(biased, "baselines/blind", QUESTION, **TOLD)
    assert len(biased.asked) == 3
    assert said.odds == pytest.approx({"A": 1 / 3, "B": 1 / 3, "C": 1 / 3})
    assert heard.notes("options_rotated")

    def knows(messages: Any, options: Options) -> str:
        letter = place_of(messages[-1].text, "the dog")
        return f'{{"reason": "the dog at {letter}", "choice": "{letter}"}}'

    said = guess(permuting(knows), "baselines/blind", QUESTION, **TOLD)
    assert (said.choice, said.odds["B"]) == ("B", 1.0)
    assert said.reason == "the dog at B", "a reason from another order would name other letters"


def test_probabilities_are_averaged_over_the_orders() -> None:
    def tells(messages: Any, options: Options) -> Reply | str:
        if not options.letters:
            return '{"reason": "looks like a cat", "choice": "C"}'
        # half for the first letter, whatever it is, and the rest for the dog
        odds = {"A": 0.5}
        dog = place_of(messages[-1].text, "the dog")
        odds[dog] = odds.get(dog, 0.0) + 0.5
        return Reply("A", odds=odds)

    chat = permuting(tells, letters=True)
    said = guess(chat, "baselines/blind", QUESTION, **TOLD)
    assert said.choice == "B"
    assert said.odds == pytest.approx({"A": 1 / 6, "B": 2 / 3, "C": 1 / 6})
    assert said.reason == "", "the reason that was given is for another option"
    assert [options.max_tokens for _, options in chat.asked[1:]] == [1, 1, 1]


def test_prompts_that_name_letters_elsewhere_are_not_rotated() -> None:
    chat = permuting(['{"reason": "so", "choice": "A"}'])
    assert guess(chat, "baselines/blind", QUESTION, rotated=False, **TOLD).choice == "A"
    assert len(chat.asked) == 1


def test_votes_that_all_fail_are_an_abstention() -> None:
    chat = permuting(lambda messages, options: "Who knows.")
    assert guess(chat, "baselines/blind", QUESTION, **TOLD) == Guess()


@pytest.mark.parametrize("letters", [True, False])
def test_a_measured_bias_turns_permutations_on(letters: bool) -> None:
    def always_a(request: Request) -> Send:
        return with_odds({"A": 0.9, "B": 0.05}) if letters else completion("A")

    capabilities = Capabilities()
    with serve(always_a) as served:
        chat = chat_at(served.url, capabilities)
        assert with_capabilities(chat).card.permutations == 1
        measured = measure_bias(chat)
    assert measured["A"] > 0.9
    assert with_capabilities(chat).card.permutations == EVERY_OPTION
    assert with_capabilities(chat, 2).card.permutations == 2, "the setting wins"


def test_a_model_without_a_preference_is_asked_once() -> None:
    capabilities = Capabilities(KnownCapabilities(bias={"A": 0.3, "B": 0.2, "C": 0.25, "D": 0.25}))
    with serve(lambda _: Send(404, {})) as served:
        assert with_capabilities(chat_at(served.url, capabilities)).card.permutations == 1
