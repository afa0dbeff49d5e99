"""The most a question can cost, from the method's own bounds and the models' prices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from longtake.agents.run import Run
from longtake.agents.verify import LEAST_TOKENS, MOST, SHARE
from longtake.footage.protocol import Footage
from longtake.llm.chat import Card, Chat
from longtake.llm.chat import estimate as estimate_tokens
from longtake.methods.base import Method, bounds_of, words
from longtake.prompts import show_question
from longtake.runner.session import Session, registered_name
from longtake.types import Question

TOKENS_PER_WORD = 1.4
"""Typical of English text; a rough figure, like the whole estimate."""
PICTURE_TOKENS = 765
"""For endpoints that do not say: four tiles of 512 pixels at 170 tokens each, plus 85 (GPT-4o in
OpenAI's vision guide)."""
PIXELS_PER_TOKEN = 750
"""Of larger pictures (Anthropic's page on vision; Qwen's have more)."""
FORM_TOKENS = 60
"""Tokens of each call beyond the words of its prompt: the rule about material, and the JSON of the
reply's form, which counts as one word."""
TIME_TOKENS = estimate_tokens("[00:00:00]")
"""The time written before each picture."""


CHECK_CALLS = 2
"""Calls of the check of an answer: the marks, and one reconsideration."""
CHECK_WORDS = 150
"""Words of each of its prompts, and of each of its replies, besides what it shows."""


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
    paid: bool
    """Whether the question may cost money: some model has a price above zero or no known price."""


def estimate(
    method: Method, duration: float, question: Question, run: Run, *, check: bool = False
) -> Estimate:
    """The upper bound for a method with the models of a run; ``check`` adds its verification."""
    chats = run.chats
    bounds = bounds_of(method, duration, question)
    if bounds is None:
        # models that are free stay free, however often they are called
        free = _cost(chats, 1, 1) == 0
        cost = 0.0 if free else None
        return Estimate(registered_name(method), None, None, None, None, cost, paid=not free)
    picture = max((_picture(chat.card) for chat in chats), default=0)
    # each call repeats the question and the form of the reply
    per_call = FORM_TOKENS + _beyond_words(question)
    written = bounds.prompt_words * TOKENS_PER_WORD + bounds.calls * per_call
    calls, frames = bounds.calls, bounds.frames
    tokens_out = round(bounds.reply_words * TOKENS_PER_WORD)
    if bounds.letters and any(chat.card.letters for chat in chats):
        # asked for by log-probability and then, where there is none, in words
        calls, frames = calls + bounds.letters, frames + bounds.letter_frames
        written *= calls / bounds.calls
        tokens_out += bounds.letters
    # a clip at the film's own rate has more frames than were chosen
    clips = [chat.card.clip_frames for chat in chats if chat.card.show == "video"]
    frames += calls * max(clips, default=0) if frames else 0
    tokens_in = round(written + frames * (picture + TIME_TOKENS))
    if check:
        shown = max(LEAST_TOKENS, SHARE * (tokens_in + tokens_out)) + picture
        prompt = CHECK_WORDS * TOKENS_PER_WORD + words([show_question(question)]) * TOKENS_PER_WORD
        calls += CHECK_CALLS
        frames += CHECK_CALLS * min(MOST, math.ceil(shown / max(1, picture)))
        tokens_in += CHECK_CALLS * round(shown + prompt + per_call + MOST * TIME_TOKENS)
        tokens_out += CHECK_CALLS * round(CHECK_WORDS * TOKENS_PER_WORD)
    cost = _cost(chats, tokens_in, tokens_out)
    return Estimate(
        registered_name(method),
        calls,
        frames,
        tokens_in,
        tokens_out,
        cost,
        paid=cost is None or cost > 0,
    )


def total(name: str, estimates: Sequence[Estimate]) -> Estimate:
    """Add up several questions; a figure is unknown if it is unknown for one of them."""
    sums: dict[str, Any] = {}
    for name_of_figure in ("calls", "frames", "tokens_in", "tokens_out", "cost"):
        figures = [getattr(each, name_of_figure) for each in estimates]
        sums[name_of_figure] = None if None in figures else sum(figures)
    return Estimate(name, **sums, paid=any(each.paid for each in estimates))


def estimate_all(
    session: Session, footage: Footage, question: Question, methods: Sequence[str]
) -> list[Estimate]:
    """Estimate one question for several methods that share one set of models."""
    # a role that only one of the methods has may be named for all
    shared = replace(session, assignment=session.assignment.among(methods))
    estimates = []
    for name in methods:
        method = shared.method(name)
        # an estimate contacts nobody
        run = shared.run(method, footage, discover=False)
        check = session.settings.answers.verify
        estimates.append(estimate(method, footage.duration, question, run, check=check))
    return estimates


def _beyond_words(question: Question) -> float:
    """Tokens that a word count misses: in scripts without spaces, a sentence is one word."""
    counted = words([question.text, *question.options]) * TOKENS_PER_WORD
    return max(0.0, estimate_tokens(show_question(question)) - counted)


def _picture(card: Card) -> int:
    """The most tokens of one picture."""
    if card.picture_tokens is not None:
        return card.picture_tokens
    return max(PICTURE_TOKENS, math.ceil(card.max_pixels / PIXELS_PER_TOKEN))


def _cost(chats: list[Chat], tokens_in: int, tokens_out: int) -> float | None:
    """All tokens at the price of the most expensive model: an upper bound."""
    costs = [0.0]
    for chat in chats:
        if chat.card.price is None:
            return None
        costs.append(chat.card.price.of(tokens_in, 0, tokens_out))
    return max(costs)
