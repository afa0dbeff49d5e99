"""What a question will cost, before it is asked: from the method's own bounds and the models' prices."""

from __future__ import annotations

from dataclasses import dataclass

from longtake.methods.base import Method, bounds_of, found_as, words
from longtake.models import tokens
from longtake.models.chat import Chat
from longtake.prompts import show_question
from longtake.steps.run import Run
from longtake.types import Question

TOKENS_PER_WORD = 1.4
"""English text in the usual vocabularies; an estimate, as the whole is."""
PICTURE_TOKENS = 765
"""Where an endpoint does not say: four tiles of 512 pixels at 170 tokens, plus 85 (OpenAI's vision guide, GPT-4o)."""
FORM_TOKENS = 60
"""What a call holds beside its prompt: the rule about material, and the form of the reply, which is one long word."""
TIME_TOKENS = 6
"""The time that stands before a picture."""


@dataclass(frozen=True)
class Estimate:
    """The most that one question can use; figures are ``None`` if the method has no ``bounds``.

    Not included: replies that have to be asked for again, and replies longer than requested.
    """

    method: str
    calls: int | None
    frames: int | None
    tokens_in: int | None
    tokens_out: int | None
    cost: float | None
    """US dollars; ``None`` if a price or the number of tokens is unknown."""
    steps: int | None
    """Calls that run one after another."""
    paid: bool
    """Whether the question may cost money: some model has a price above zero or no known price."""


def estimate(method: Method, duration: float, question: Question, run: Run) -> Estimate:
    """The upper bound for a method with the models of a run."""
    chats = run.chats
    most = bounds_of(method, duration, question)
    if most is None:
        # models that are free stay free, however often they are called
        free = _cost(chats, 1, 1) == 0
        cost = 0.0 if free else None
        return Estimate(found_as(method), None, None, None, None, cost, None, paid=not free)
    picture = max((chat.card.picture_tokens or PICTURE_TOKENS for chat in chats), default=0)
    written = most.prompt_words * TOKENS_PER_WORD + most.calls * (
        FORM_TOKENS + _beyond_words(question)
    )
    tokens_in = round(written + most.frames * (picture + TIME_TOKENS))
    tokens_out = round(most.reply_words * TOKENS_PER_WORD)
    cost = _cost(chats, tokens_in, tokens_out)
    return Estimate(
        found_as(method),
        most.calls,
        most.frames,
        tokens_in,
        tokens_out,
        cost,
        most.steps,
        paid=cost is None or cost > 0,
    )


def _beyond_words(question: Question) -> float:
    """Tokens of a question that its words do not count: a script without spaces is a word a sentence."""
    counted = words([question.text, *question.options]) * TOKENS_PER_WORD
    return max(0.0, tokens.estimate(show_question(question)) - counted)


def _cost(chats: list[Chat], tokens_in: int, tokens_out: int) -> float | None:
    """The price of all tokens at the dearest of the models: an upper bound."""
    prices = [chat.card.price for chat in chats]
    if any(price is None for price in prices):
        return None
    return max(
        (price.of(tokens_in, 0, tokens_out) for price in prices if price is not None), default=0.0
    )
