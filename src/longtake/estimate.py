"""What a question will cost, before it is asked: from the method's own bounds and the models' prices."""

from __future__ import annotations

from dataclasses import dataclass

from longtake.methods.base import Method, found_as, words
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
    """The most that one question can use.

    Replies that must be asked for again come on top, and so does what a model writes beyond what it is asked for.
    """

    method: str
    calls: int
    frames: int
    tokens_in: int
    tokens_out: int
    cost: float | None
    """US dollars; ``None``: a price is unknown."""
    steps: int
    """Calls that must wait for one another."""
    paid: bool
    """Whether any model has a price above zero, or none that is known."""


def estimate(method: Method, duration: float, question: Question, run: Run) -> Estimate:
    """The upper bound for a method with the models of a run."""
    most = method.bounds(duration, question)
    chats = run.chats
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
        cost is None or cost > 0,
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
