"""Asking a model for an answer: slots of its prompt, the model's guess, the claims of an answer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from pydantic import BaseModel

from longtake import prompts
from longtake._util.timecode import clock
from longtake.algorithms import lexical
from longtake.footage.look import Look
from longtake.footage.protocol import Footage
from longtake.llm.chat import Chat, Options
from longtake.llm.openai_protocol import LIKELY
from longtake.llm.structured.ask import ask, compose
from longtake.llm.structured.fit import LinesByDistance
from longtake.llm.structured.schema import Brief, Letter
from longtake.prompts import Plain
from longtake.retrieval.evidence import HELD, contradicts, held
from longtake.retrieval.passages import sentences
from longtake.types import Answer, Evidence, Frame, Line, Question

REPLY_OPTIONS = ("temperature", "max_tokens", "seed", "draft")
"""Keywords of :func:`~longtake.llm.structured.ask.ask` that are no slots of a prompt."""


class Choice(BaseModel):
    """A letter."""

    choice: Letter = None


class Words(BaseModel):
    """An answer in words."""

    answer: str


class ReasonedChoice(BaseModel):
    """A reasoned letter."""

    reason: Brief
    choice: Letter = None


class ReasonedWords(BaseModel):
    """A reasoned answer in words."""

    reason: Brief
    answer: str


@dataclass(frozen=True)
class Guess:
    """A model's answer; with neither choice nor text it is an abstention."""

    choice: str | None = None
    text: str = ""
    reason: str = ""
    odds: Mapping[str, float] = field(default_factory=dict)
    """Probability of each option, if known from log-probabilities."""

    @property
    def abstained(self) -> bool:
        """Whether there is no answer."""
        return self.choice is None and not self.text

    def as_answer(
        self, *, confidence: float | None = None, evidence: Sequence[Evidence] = ()
    ) -> Answer:
        """The guess as a method's answer; its odds are the confidence unless another is given."""
        if confidence is None and self.choice is not None and self.choice in self.odds:
            confidence = round(self.odds[self.choice], 4)
        answer = Answer(self.choice, self.text, self.reason, confidence, tuple(evidence))
        return replace(answer, status="abstained") if self.abstained else answer


def guess(
    chat: Chat, prompt: str, question: Question, *, reasoned: bool = True, **slots: Any
) -> Guess:
    """The model's answer, with or without a reason; an abstention if no reply can be read."""
    if not question.options:
        form: type[BaseModel] = ReasonedWords if reasoned else Words
    else:
        # a letter alone takes one token
        if not reasoned and chat.card.letters and _is_greedy(chat, slots):
            odds = letter_odds(chat, prompt, question, **slots)
            if odds:
                return Guess(max(odds, key=odds.__getitem__), odds=odds)
        form = ReasonedChoice if reasoned else Choice
    reply = ask(chat, prompt, form, question=question, default=None, **slots)
    if reply is None:
        return Guess()
    given = reply.model_dump()
    text = in_own_words(given.get("answer", ""))
    return Guess(given.get("choice"), text, given.get("reason", ""))


# "The lines say that …", and "The statement is not supported by the given moments."
_PREAMBLE = re.compile(
    r"^(?:according to )?(?:the|these) (?:given )?(?:lines?|passages?|captions?|moments?)"
    r"(?:,| (?:say|state|mention|tell|indicate|suggest|show)s?(?: that\b)?[,:]?) +",
    re.IGNORECASE,
)
_ABOUT_PROMPT = re.compile(
    r"\b(?:given|provided) (?:moments?|passages?|captions?|lines?|frames?|images?|information)\b"
    r"|\bthe search ends\b|\b(?:film|video) (?:is|was) not (?:shown|provided)\b",
    re.IGNORECASE,
)


def in_own_words(text: str) -> str:
    """An answer without "The lines say that"; empty if it is about the prompt, not the film."""
    plain = _PREAMBLE.sub("", text.strip(), count=1)
    if _ABOUT_PROMPT.search(plain):
        return ""
    return plain if plain == text.strip() else plain[:1].upper() + plain[1:]


def _is_greedy(chat: Chat, slots: Mapping[str, Any]) -> bool:
    """Whether the likeliest letter is wanted, rather than one drawn at random."""
    temperature = slots.get("temperature")
    # up to this temperature, the likeliest letter is drawn nearly always
    return (chat.card.options.temperature if temperature is None else temperature) <= 0.1


def letter_odds(
    chat: Chat, prompt: str, question: Question, *, frames: Sequence[Frame] = (), **slots: Any
) -> dict[str, float]:
    """The probability of each option, from one token; empty if the endpoint does not report it."""
    instruction = prompts.load("shared/one_letter").render().user[0]
    prompt_slots = {name: value for name, value in slots.items() if name not in REPLY_OPTIONS}
    prompt_slots["question"] = question
    messages = compose(chat, prompt, prompt_slots, frames, instruction, 1)
    # the default temperature, since only the distribution is used
    options = Options(max_tokens=1, letters=tuple(question.letters), prompt=prompt)
    raw = chat.complete(messages, options).odds
    total = sum(raw.values())
    if total < LIKELY:
        return {}
    return {letter: raw.get(letter, 0.0) / total for letter in question.letters}


def in_words(question: Question, choice: str | None, text: str) -> str:
    """An answer as the next prompt shows it."""
    if choice is None:
        return text
    return f"{choice}. {option(question, choice)}"


def option(question: Question, choice: str | None) -> str:
    """The text of the chosen option; empty if none is chosen."""
    return question.options[question.letters.index(choice)] if choice else ""


SPOKEN = 5
"""Upper bound on speech rate, in words per second; used by estimates."""


def length(footage: Footage) -> Plain:
    """How long the film is."""
    return Plain(clock(footage.duration))


def shown_to(footage: Footage, look: Look) -> dict[str, Any]:
    """The slots of a look: pictures, or captions where the footage has no pictures."""
    return {"length": length(footage), "seen": captions_of(look), "frames": look.frames}


def captions_of(look: Look) -> Any:
    """The captions of a look as a slot; empty if there are pictures instead."""
    return list(look.captions) or Plain("")


def spoken_around(footage: Footage, rows: Sequence[int], max_words: int) -> LinesByDistance | Plain:
    """The speech of the film, up to ``max_words`` words, preferring lines near the given moments.

    Only lines that are already known are used. If the model's context is too small, more lines are
    dropped, the farthest first.
    """
    lines = footage.known_lines()[0]
    if not lines or max_words <= 0:
        return Plain("")
    return LinesByDistance(lines, [float(footage.times[row]) for row in rows]).within(max_words)


def most_spoken(duration: float, max_words: int) -> int:
    """The most words of subtitles in a prompt about a film of this length."""
    return min(max_words, round(SPOKEN * duration))


@dataclass(frozen=True)
class Claim:
    """A sentence of an answer."""

    text: str
    citations: tuple[int, ...]
    """Indices into the answer's evidence; may be empty."""


def claims(answer: Answer) -> tuple[Claim, ...]:
    """The claims of an open answer; none if it makes only one, which all citations support."""
    if answer.choice is not None:
        return ()
    parts = sentences(answer.text)
    if len(parts) < 2:
        return ()
    found = []
    for part in parts:
        wanted = lexical.lemmas([part])
        shares = [held(part, wanted, cited.text) for cited in answer.evidence]
        places = tuple(place for place, share in enumerate(shares) if share >= HELD)
        found.append(Claim(part, places))
    return tuple(found)


def supported(account: str, question: str, shown: Sequence[Line]) -> dict[str, Line]:
    """The sentences of an account that the lines support, each with the line that does so best.

    Sentences that only repeat the question or an earlier sentence are left out.
    """
    in_question = lexical.lemmas([question])
    everything = " ".join(line.text for line in shown)
    kept: dict[str, Line] = {}
    known: frozenset[str] = frozenset()
    for sentence in sentences(account):
        wanted = lexical.lemmas([sentence]) - in_question
        # half of the words is enough, since an account adds some, such as "suggests"
        if wanted <= known or held(sentence, wanted, everything) < 0.5:
            continue
        shares = [held("", wanted, line.text) for line in shown]
        holder = shown[int(np.argmax(shares))]
        if contradicts(sentence, holder.text, question) is None:
            kept[sentence] = holder
            known |= wanted
    return kept
