"""Asking for an answer: a letter, or words for an open-ended question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel

from longtake.models.chat import Chat
from longtake.models.replies.forms import Brief, Letter
from longtake.steps.ask import ask
from longtake.types import Answer, Evidence, Frame, Question


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

    @property
    def abstained(self) -> bool:
        """Whether there is no answer."""
        return self.choice is None and not self.text

    def as_answer(
        self, *, confidence: float | None = None, evidence: Sequence[Evidence] = ()
    ) -> Answer:
        """The guess as a method's answer."""
        answer = Answer(self.choice, self.text, self.reason, confidence, tuple(evidence))
        return replace(answer, status="abstained") if self.abstained else answer


def guess(
    chat: Chat,
    prompt: str,
    question: Question,
    *,
    reasoned: bool = True,
    frames: Sequence[Frame] = (),
    **slots: Any,
) -> Guess:
    """The model's answer, with or without a reason; an abstention if no reply can be read."""
    if question.options:
        choose = ReasonedChoice if reasoned else Choice
        choice = ask(chat, prompt, choose, frames=frames, question=question, default=None, **slots)
        if choice is None:
            return Guess()
        return Guess(choice.choice, "", getattr(choice, "reason", ""))
    tell = ReasonedWords if reasoned else Words
    said = ask(chat, prompt, tell, frames=frames, question=question, default=None, **slots)
    if said is None:
        return Guess()
    return Guess(None, said.answer.strip(), getattr(said, "reason", ""))


def in_words(question: Question, choice: str | None, text: str) -> str:
    """An answer as it is put to the next step."""
    if choice is None:
        return text
    return f"{choice}. {question.options[question.letters.index(choice)]}"
