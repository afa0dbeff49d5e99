"""Questions about a world, each with a proof of its answer.

Every draft (:mod:`longtake.lab.drafts`) is solved twice: over the whole script and over its
evidence alone. It is kept only if both give the same answer and no other option is right. Wrong
options are true of other moments.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from longtake.lab.chance import generator
from longtake.lab.drafts import MAKERS, OPTIONS, Draft
from longtake.lab.facts import Sighting
from longtake.lab.profile import CURRENT
from longtake.lab.script import Script, dump
from longtake.lab.solving import option_of, solve
from longtake.types import LETTERS, Question, Segment

KINDS = tuple(MAKERS)
"""Kinds of questions, in the order in which they take turns."""


@dataclass(frozen=True)
class LabQuestion:
    """A question with its answer and the segments in which the answer is seen, read or heard."""

    id: str
    kind: str
    text: str
    options: tuple[str, ...]
    answer: str | None
    """The letter; ``None`` for open-ended questions."""
    answer_text: str
    evidence: tuple[Segment, ...]
    """All of these are needed."""

    @property
    def question(self) -> Question:
        """What a method is asked, without answer and evidence."""
        return Question(self.text, self.options)

    def as_data(self) -> dict[str, Any]:
        """The question as in ``questions.json``."""
        return {
            "id": self.id,
            "kind": self.kind,
            "question": self.text,
            "options": list(self.options),
            "answer": self.answer,
            "answer_text": self.answer_text,
            "evidence": [[s.start, s.end] for s in self.evidence],
        }


def make_questions(script: Script, count: int = 60) -> tuple[LabQuestion, ...]:
    """Up to ``count`` questions; kinds take turns, so any prefix of the list is a fair mixture."""
    rng = generator("questions", CURRENT.name, script.seed, script.minutes)
    # drafts are generated lazily: most of a film is never asked about
    makers = {kind: make(script, rng) for kind, make in MAKERS.items()}
    questions: list[LabQuestion] = []
    asked: set[str] = set()
    while makers and len(questions) < count:
        for kind in list(makers):
            question = _next_question(script, kind, makers[kind], rng, asked)
            if question is None:
                del makers[kind]
            elif len(questions) < count:
                questions.append(question)
    return tuple(questions)


def questions_json(questions: Sequence[LabQuestion]) -> str:
    """The text of ``questions.json``."""
    return dump({"schema": 1, "questions": [question.as_data() for question in questions]})


def everything(script: Script) -> list[Sighting]:
    """All deeds, signs and statements of a script, each seen once."""
    happenings = (*script.deeds, *script.signs, *script.sayings)
    return [Sighting(h.fact, (h.start + h.end) / 2) for h in happenings]


def within(script: Script, evidence: Sequence[Segment]) -> list[Sighting]:
    """What happens inside the given segments."""
    inside = []
    for sighting in everything(script):
        time = sighting.time
        if time is not None and any(time in segment for segment in evidence):
            inside.append(sighting)
    return inside


def _next_question(
    script: Script, kind: str, drafts: Iterator[Draft], rng: random.Random, asked: set[str]
) -> LabQuestion | None:
    """The question of the next valid draft; ``None`` if there is none left."""
    for draft in drafts:
        question = _finish(script, kind, draft, rng, asked)
        if question is not None:
            return question
    return None


def _finish(
    script: Script, kind: str, draft: Draft, rng: random.Random, asked: set[str]
) -> LabQuestion | None:
    """The question of a draft, or ``None`` if it is a repeat, lacks options or fails the proof."""
    is_open = kind == "open"
    text = draft.query.text
    key = text + str(is_open)
    if key in asked:
        return None
    wrong = [option for option in draft.wrong if option != draft.answer]
    wrong = list(dict.fromkeys(wrong))[: OPTIONS - 1]
    if len(wrong) < OPTIONS - 1:
        return None
    options = () if is_open else tuple(rng.sample([draft.answer, *wrong], OPTIONS))
    happenings = sorted(draft.evidence, key=lambda happening: happening.start)
    evidence = tuple(Segment(float(h.start), float(h.end)) for h in happenings)
    if not _is_proved(script, draft, options, evidence):
        return None
    asked.add(key)
    letter = LETTERS[options.index(draft.answer)] if options else None
    name = f"{script.name}-{kind}-{len(asked):03d}"
    return LabQuestion(name, kind, text, options, letter, draft.answer, evidence)


def _is_proved(
    script: Script, draft: Draft, options: tuple[str, ...], evidence: Sequence[Segment]
) -> bool:
    """Whether the answer follows from the whole script and from the evidence alone."""
    duration = script.duration
    whole = solve(draft.query, everything(script), options=options, duration=duration)
    shown = solve(draft.query, within(script, evidence), options=options, duration=duration)
    if whole.value != draft.answer or shown.value != draft.answer:
        return False
    return not options or option_of(whole, options) == options.index(draft.answer)
