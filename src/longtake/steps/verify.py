"""Checks an answer against the film, so that only moments which support it are cited.

::

    1  candidates ← what the method cites, and what the index finds for question and answer
    2  the model marks each candidate: it supports the answer, contradicts it, or does neither
    3  cite what supports, the strongest first
    4  nothing supports, something contradicts: ask once more, with the contradicting moments shown
    5  nothing supports: the answer stands, marked ``unsupported``, with half its confidence

The check is one call. It may use a share of the tokens that the method used, so the most promising
candidates come first and the rest are left out. If the only picture left was chosen by nobody,
likelier ones replace it (:func:`~longtake.steps.candidates.likeliest`). One more moment is listed
that has nothing to do with the answer (:func:`~longtake.steps.candidates.decoy`): a model that
marks it as support cannot judge. With no model that can, support is the overlap of words
(:func:`by_overlap`), and an event says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pydantic import BaseModel, Field

from longtake.algorithms import lexical, phrases
from longtake.errors import BudgetSpent, ModelError
from longtake.events import note, step
from longtake.footage.protocol import Footage
from longtake.models.chat import Chat
from longtake.prompts import Plain, phrase
from longtake.steps.answer import guess, in_words, option
from longtake.steps.ask import ask
from longtake.steps.candidates import (
    Candidate,
    Proposal,
    affordable,
    decoy,
    gather,
    is_aimless,
    likeliest,
    numbered,
    ranked_lines,
    redirected,
)
from longtake.steps.extent import with_extent
from longtake.steps.run import Run
from longtake.timecode import clock
from longtake.types import GIVEN, Answer, Question

OVERLAP = 0.8
"""Share of the answer's letters that a line must hold to support it without a model."""


class Marks(BaseModel):
    """Which moments support an answer, and which contradict it."""

    supports: list[int] = Field(description="numbers of the moments that support the answer")
    contradicts: list[int] = Field(description="numbers of the moments that contradict the answer")


@dataclass(frozen=True)
class Checked:
    """An answer after the check, and what the check found."""

    answer: Answer
    done: bool = False
    """Whether it was carried out; if not, the answer is as it was and the rest says nothing."""
    supports: int = 0
    """Moments that support the answer."""
    contradicts: int = 0
    """Moments that contradict it."""
    changed: bool = False
    """Whether the answer was reconsidered and is another one now."""


def verify(answer: Answer, footage: Footage, question: Question, run: Run) -> Answer:
    """The answer with verified citations; as it was if there is nothing to check or no budget."""
    return check(answer, footage, question, run).answer


def check(answer: Answer, footage: Footage, question: Question, run: Run) -> Checked:
    """The same, with what the check found."""
    if answer.status not in GIVEN or not (answer.choice or answer.text):
        return Checked(answer)
    with step("verify"):
        try:
            return _checked(answer, footage, question, run)
        except BudgetSpent as spent:
            note("not_verified", why=str(spent))
        except ModelError as error:
            # the answer was paid for: a failing check must not lose it
            note("not_verified", why=str(error))
    return Checked(answer)


def _checked(answer: Answer, footage: Footage, question: Question, run: Run) -> Checked:
    proposed = in_words(question, answer.choice, answer.text)
    proposal = Proposal(question.text, option(question, answer.choice) or answer.text)
    chat, sees = verifier(run)
    lines = ranked_lines(footage, proposal.text)
    candidates = gather(answer, footage, proposal, lines, pictures=sees)  # 1
    candidates = affordable(candidates, chat, run)
    if chat is not None and is_aimless(candidates, answer, footage):
        candidates = redirected(candidates, likeliest(footage, proposal, lines), chat.card, run)
    if not candidates:
        return Checked(unsupported(answer), done=True)
    listed = [*candidates, *decoy(lines, candidates)]
    marks = None if chat is None else mark(chat, footage, question, proposed, listed)  # 2
    if marks is not None and len(candidates) + 1 in marks.supports:
        note("marks_rejected", why="a moment without relation was marked as support")
        marks = None
    if marks is None:
        note("verified_by_overlap", candidates=len(candidates))
        marks = by_overlap(answer.text or proposed, candidates)
    elif not (marks.supports or marks.contradicts):
        marks = Marks(supports=stating(proposal, candidates), contradicts=[])
    supporting = _numbered(candidates, marks.supports)
    against = _numbered(candidates, [n for n in marks.contradicts if n not in marks.supports])
    note("verified", candidates=len(candidates), supports=len(supporting), contradicts=len(against))
    checked = Checked(answer, True, len(supporting), len(against))
    if supporting:  # 3
        cited = [with_extent(each.evidence, footage) for each in supporting]
        return replace(checked, answer=replace(answer, evidence=tuple(cited)))
    if against and chat is not None:  # 4
        again = reconsider(answer, chat, footage, question, against)
        return replace(checked, answer=again, changed=again.status != "unsupported")
    return replace(checked, answer=unsupported(answer))  # 5


def verifier(run: Run) -> tuple[Chat | None, bool]:
    """The model that checks, and whether it can be shown pictures.

    A model in the role ``vlm`` sees by definition; others only if their card says so.
    """
    if "vlm" in run:
        return run["vlm"], True
    if "llm" in run:
        return run["llm"], run["llm"].card.vision is True
    if run.team:
        return run.team[0].chat, run.team[0].chat.card.vision is not False
    return None, False


def mark(
    chat: Chat, footage: Footage, question: Question, proposed: str, candidates: Sequence[Candidate]
) -> Marks | None:
    """The model's marks; ``None`` if it fails or they cannot be read."""
    try:
        return ask(
            chat,
            "shared/verify",
            Marks,
            default=None,
            frames=[each.frame for each in candidates if each.frame is not None],
            question=question,
            length=Plain(clock(footage.duration)),
            proposed=phrase("shared", "proposed_answer", answer=proposed),
            moments=numbered(candidates),
        )
    except ModelError as error:
        # what nobody judged is not cited: the overlap of words decides instead
        note("not_judged", why=str(error))
        return None


def reconsider(
    answer: Answer, chat: Chat, footage: Footage, question: Question, against: Sequence[Candidate]
) -> Answer:
    """The question once more, with what contradicts the answer; an event names the outcome."""
    proposed = in_words(question, answer.choice, answer.text)
    try:
        said = guess(
            chat,
            "shared/reconsider",
            question,
            frames=[each.frame for each in against if each.frame is not None],
            length=Plain(clock(footage.duration)),
            proposed=phrase("shared", "answer_so_far", answer=proposed),
            moments=numbered(against),
        )
    except ModelError as error:
        note("not_judged", why=str(error))
        return unsupported(answer)
    again = in_words(question, said.choice, said.text)
    changed = not said.abstained and again != proposed
    note("reconsidered", before=proposed, after=again, changed=changed)
    if not changed:
        return unsupported(answer)
    evidence = [with_extent(each.evidence, footage) for each in against]
    return said.as_answer(evidence=evidence)


def by_overlap(proposed: str, candidates: Sequence[Candidate]) -> Marks:
    """Marks without a model: a line supports an answer whose words it holds."""
    supports = []
    for number, candidate in enumerate(candidates, start=1):
        if phrases.match(proposed, candidate.evidence.text) >= OVERLAP:
            supports.append(number)
    return Marks(supports=supports, contradicts=[])


def stating(proposal: Proposal, candidates: Sequence[Candidate]) -> list[int]:
    """The candidates whose text plainly states the answer to the question.

    A model that is shown many moments overlooks some. A line needs no judgement if it holds the
    whole answer and every word of the question that any of the candidates holds.
    """
    texts = [lexical.lemmas([candidate.evidence.text]) for candidate in candidates]
    answer = lexical.lemmas([proposal.answer])
    asked = lexical.lemmas([proposal.question]) - answer
    asked &= frozenset().union(*texts)
    if not answer or not asked:
        return []  # a line that only holds the answer may be about something else
    return [number for number, text in enumerate(texts, start=1) if answer | asked <= text]


def unsupported(answer: Answer) -> Answer:
    """The answer without citations: a wrong citation is worse than none."""
    confidence = None if answer.confidence is None else answer.confidence / 2
    return replace(answer, evidence=(), confidence=confidence, status="unsupported")


def _numbered(candidates: Sequence[Candidate], numbers: Sequence[int]) -> list[Candidate]:
    """The candidates with these numbers, as ordered by the model; other numbers name nothing."""
    valid = [number for number in dict.fromkeys(numbers) if 1 <= number <= len(candidates)]
    return [candidates[number - 1] for number in valid]
