"""Upper bounds on the cost of a question, from the method's bounds and the models' prices."""

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
"""A rough average for English text."""
PICTURE_TOKENS = 765
"""For endpoints that do not say: four tiles of 512 pixels at 170 tokens each, plus 85 (GPT-4o in
OpenAI's vision guide)."""
PIXELS_PER_TOKEN = 750
"""For larger pictures (Anthropic's page on vision; Qwen's have more)."""
FORM_TOKENS = 60
"""Tokens of each call besides the words of its prompt: the rule about material, and the JSON of the
reply's form, which counts as one word."""
TIME_TOKENS = estimate_tokens("[00:00:00]")
"""The time before each picture."""
CHECK_CALLS = 2
"""Calls of the check of an answer: the marks, and one reconsideration."""
CHECK_WORDS = 150
"""Words of its prompts and of its replies, each, without the material."""


@dataclass(frozen=True)
class Estimate:
    """Upper bounds for one question; figures are ``None`` if the method has no ``bounds``.

    They do not include replies that are requested again or are longer than requested.
    """

    method: str
    calls: int | None
    frames: int | None
    tokens_in: int | None
    tokens_out: int | None
    cost: float | None
    """US dollars; ``None`` if a price or the number of tokens is unknown."""
    paid: bool
    """Whether the question may cost money: a price is unknown or above zero."""


def estimate(
    method: Method, duration: float, question: Question, run: Run, *, check: bool = False
) -> Estimate:
    """The upper bound for a method with the models of a run; ``check`` adds its verification."""
    chats = run.chats
    bounds = bounds_of(method, duration, question)
    if bounds is None:
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
        # asked by log-probabilities, and again in words if there are none
        calls, frames = calls + bounds.letters, frames + bounds.letter_frames
        written *= calls / bounds.calls
        tokens_out += bounds.letters
    # a clip at the film's frame rate has more frames than were chosen
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
    cost, name = _cost(chats, tokens_in, tokens_out), registered_name(method)
    paid = cost is None or cost > 0
    return Estimate(name, calls, frames, tokens_in, tokens_out, cost, paid)


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
    shared = replace(session, assignment=session.assignment.among(methods))
    estimates = []
    for name in methods:
        method = shared.method(name)
        # an estimate sends no request
        run = shared.run(method, footage, discover=False)
        check = session.settings.answers.verify
        estimates.append(estimate(method, footage.duration, question, run, check=check))
    return estimates


def _beyond_words(question: Question) -> float:
    """Tokens that counting words misses, since scripts without spaces have very long words."""
    counted = words([question.text, *question.options]) * TOKENS_PER_WORD
    return max(0.0, estimate_tokens(show_question(question)) - counted)


def _picture(card: Card) -> int:
    """The maximum number of tokens of a picture."""
    if card.picture_tokens is not None:
        return card.picture_tokens
    return max(PICTURE_TOKENS, math.ceil(card.max_pixels / PIXELS_PER_TOKEN))


def _cost(chats: list[Chat], tokens_in: int, tokens_out: int) -> float | None:
    """The cost if the most expensive model used all tokens; ``None`` if a price is unknown."""
    costs = [0.0]
    for chat in chats:
        if chat.card.price is None:
            return None
        costs.append(chat.card.price.of(tokens_in, 0, tokens_out))
    return max(costs)
