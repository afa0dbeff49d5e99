"""Letters by log-probability."""

import math
from typing import Any

import pytest
from support.listening import listening
from support.patience import PATIENCE
from support.server import Request, Send, completion, serve

from longtake.agents.answer import claims, guess
from longtake.llm.backends.openai import OpenAIChat
from longtake.llm.backends.scripted import ScriptedChat
from longtake.llm.capabilities import Capabilities
from longtake.llm.chat import Card, Options
from longtake.llm.http import Endpoint
from longtake.llm.middleware import with_capabilities
from longtake.retrieval.passages import sentences
from longtake.runner.rendering import with_footnotes
from longtake.types import Answer, Evidence, Question, Segment

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


# ---- claims and their footnotes

COMPASS = Evidence(Segment(1, 2), "speech", "the golden compass weighs twelve stones")
LEO = Evidence(Segment(8, 9), "speech", "it was sold to Leo in the harbour")
ANSWER = Answer(
    text="The compass weighs twelve stones. It was sold to Leo. Nobody liked xylophones.",
    evidence=(LEO, COMPASS),
)


def test_each_claim_cites_what_holds_its_words():
    assert [claim.citations for claim in claims(ANSWER)] == [(1,), (0,), ()]


def test_footnotes_are_the_numbers_of_the_listed_evidence():
    assert with_footnotes(ANSWER) == (
        "The compass weighs twelve stones. [2] It was sold to Leo. [1] Nobody liked xylophones."
    )


@pytest.mark.parametrize(
    "answer",
    [Answer(text="It was sold to Leo.", evidence=(LEO,)), Answer("A", "One. Two."), Answer()],
)
def test_one_sentence_or_a_chosen_option_is_no_list_of_claims(answer):
    assert claims(answer) == ()


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("It costs 2.5 coins. Dr. Smith paid.", ["It costs 2.5 coins.", "Dr. Smith paid."]),
        ("Who? The John D. MacArthur fund!", ["Who?", "The John D. MacArthur fund!"]),
        ("no end", ["no end"]),
        ("  ", []),
    ],
)
def test_sentences(text, parts):
    assert sentences(text) == parts
