"""Checks an answer against the film, so that only moments which support it are cited.

::

    1  candidates ← what the method cites, and what the index finds for question and answer
    2  the model marks each candidate: it supports the answer, contradicts it, or does neither
    3  cite what supports, the strongest first
    4  nothing supports, something contradicts: ask once more, with the contradicting moments shown
    5  nothing supports: the answer stands, marked ``unsupported``, with half its confidence

The check is one call. It may use :data:`SHARE` of the tokens that the method used, so the most
promising candidates come first and the rest are left out. One more moment is listed that has
nothing to do with the answer (:func:`decoy`): a model that marks it as support cannot judge. With
no model that can, support is the overlap of words (:func:`by_overlap`), and an event says so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from longtake.algorithms import phrases
from longtake.errors import BudgetSpent, ModelError
from longtake.events import note, step
from longtake.footage.protocol import Footage
from longtake.models.chat import Card, Chat, Image
from longtake.models.tokens import estimate, estimate_image
from longtake.prompts import Plain, phrase
from longtake.steps.answer import guess, in_words
from longtake.steps.ask import ask
from longtake.steps.run import Run
from longtake.timecode import clock, parse_time
from longtake.types import GIVEN, Answer, Evidence, Frame, Line, Question, Segment

SHARE = 0.06
"""Share of the method's tokens that the check may use; with its prompt it stays under a tenth."""
LEAST_TOKENS = 300
"""Tokens for candidates that even the cheapest method is granted."""
MOST = 24
"""Candidates in one check, if their tokens allow."""
FROM_LINES, FROM_PICTURES = 8, 12
"""Candidates that the index adds: lines said, shown or described, and pictures."""
APART = 3.0
"""Seconds between two candidates; closer ones show the same moment."""
OVERLAP = 0.8
"""Share of the answer's letters that a line must hold to support it without a model."""


_CLOCK = re.compile(r"\b\d{1,2}:[0-5]\d:[0-5]\d\b")


class Marks(BaseModel):
    """Which moments support an answer, and which contradict it."""

    supports: list[int] = Field(description="numbers of the moments that support the answer")
    contradicts: list[int] = Field(description="numbers of the moments that contradict the answer")


@dataclass(frozen=True)
class Candidate:
    """A moment that may support the answer."""

    evidence: Evidence
    frame: Frame | None = None
    """The picture to judge by; ``None``: the text says it all."""

    def tokens(self, card: Card) -> int:
        """What it adds to the prompt."""
        if self.frame is None:
            return estimate(self.evidence.text)
        return estimate_image(Image(self.frame, card.max_pixels, card.picture_tokens))

    def line(self) -> Line:
        """How the model reads about it."""
        return Line(self.evidence.segment, self.evidence.text or phrase("shared", "picture_below"))


def verify(answer: Answer, footage: Footage, question: Question, run: Run) -> Answer:
    """The answer with verified citations; as it was if there is nothing to check or no budget."""
    if answer.status not in GIVEN or not (answer.choice or answer.text):
        return answer
    with step("verify"):
        try:
            return _checked(answer, footage, question, run)
        except BudgetSpent as spent:
            note("not_verified", why=str(spent))
        except ModelError as error:
            # the answer was paid for: a failing check must not lose it
            note("not_verified", why=str(error))
    return answer


def _checked(answer: Answer, footage: Footage, question: Question, run: Run) -> Answer:
    proposed = in_words(question, answer.choice, answer.text)
    about = f"{question.text} {proposed}"
    chat, sees = verifier(run)
    lines = ranked_lines(footage, about)
    candidates = gather(answer, footage, about, lines, pictures=sees)  # 1
    candidates = affordable(candidates, chat, run)
    if not candidates:
        return unsupported(answer)
    marks = None
    if chat is not None:  # 2
        marks = mark(chat, footage, question, proposed, [*candidates, *decoy(lines, candidates)])
    if marks is not None and len(candidates) + 1 in marks.supports:
        note("marks_rejected", why="a moment without relation was marked as support")
        marks = None
    if marks is None:
        note("verified_by_overlap", candidates=len(candidates))
        marks = by_overlap(answer.text or proposed, candidates)
    supporting = _numbered(candidates, marks.supports)
    against = _numbered(candidates, [n for n in marks.contradicts if n not in marks.supports])
    note("verified", candidates=len(candidates), supports=len(supporting), contradicts=len(against))
    if supporting:  # 3
        return replace(answer, evidence=tuple(each.evidence for each in supporting))
    if against and chat is not None:  # 4
        return reconsider(answer, chat, footage, question, against)
    return unsupported(answer)  # 5


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


def gather(
    answer: Answer, footage: Footage, about: str, lines: Sequence[Evidence], *, pictures: bool
) -> list[Candidate]:
    """Candidates by promise, each moment once.

    Moments that the reason names, cited moments, lines and pictures take turns.
    """
    cited = sorted(answer.evidence, key=lambda each: -_closeness(each, footage, about))
    sources = [
        named_in(answer.reason, footage),
        cited,
        lines[:FROM_LINES],
        close_pictures(footage, about),
    ]
    in_turn = [each for rank in zip_longest(*sources) for each in rank if each is not None]
    chosen: list[Candidate] = []
    for evidence in in_turn:
        moment = evidence.segment.middle
        if any(abs(moment - each.evidence.segment.middle) < APART for each in chosen):
            continue
        candidate = _candidate(evidence, footage, pictures)
        if candidate is not None:
            chosen.append(candidate)
        if len(chosen) == MOST:
            break
    return chosen


def named_in(reason: str, footage: Footage) -> list[Evidence]:
    """The moments that the answer's reason names by the clock."""
    times = [parse_time(text) for text in _CLOCK.findall(reason)]
    inside = [time for time in dict.fromkeys(times) if time < footage.duration]
    if "captions" in footage.has:
        captions = zip(inside, footage.captions(inside), strict=True)
        return [Evidence(Segment(time, time), "caption", text) for time, text in captions]
    return [Evidence(Segment(time, time), "frame") for time in inside]


def ranked_lines(footage: Footage, about: str) -> list[Evidence]:
    """All lines that are known without new work, the closest in meaning to a text first."""
    lines = sourced_lines(footage)
    if not lines:
        return []
    if "captions" in footage.has:
        closeness = footage.embeddings() @ footage.encode([about])[0]
    else:
        rows = footage.meanings([about, *(line.text for _, line in lines)])
        closeness = rows[1:] @ rows[0]
    evidence = []
    for number in np.argsort(-closeness, kind="stable").tolist():
        source, line = lines[number]
        score = round(float(closeness[number]), 4)
        evidence.append(Evidence(line.segment, source, line.text, score))
    return evidence


def close_pictures(footage: Footage, about: str) -> list[Evidence]:
    """The moments whose pictures are closest to a text."""
    if "pictures" not in footage.has:
        return []
    cosines = footage.embeddings() @ footage.encode([about])[0]
    evidence = []
    for row in _peaks(cosines, footage):
        time = float(footage.times[row])
        evidence.append(Evidence(Segment(time, time), "frame", "", round(float(cosines[row]), 4)))
    return evidence


def sourced_lines(footage: Footage) -> list[tuple[str, Line]]:
    """Everything that can be read about the footage without new work, with where it comes from."""
    if "captions" in footage.has:
        times = footage.times.tolist()
        captions = zip(times, footage.captions(times), strict=True)
        return [("caption", Line(Segment(time, time), text)) for time, text in captions]
    speech, onscreen = footage.known_lines()
    return [("speech", line) for line in speech] + [("onscreen", line) for line in onscreen]


def decoy(lines: Sequence[Evidence], candidates: Sequence[Candidate]) -> list[Candidate]:
    """The line farthest from question and answer, if there are lines enough to tell.

    A model that marks it as support marks everything, as small ones do: its marks say nothing.
    """
    if len(lines) <= FROM_LINES:
        return []
    farthest = lines[-1]
    known = {each.evidence.text for each in candidates}
    return [] if farthest.text in known else [Candidate(farthest)]


def affordable(candidates: Sequence[Candidate], chat: Chat | None, run: Run) -> list[Candidate]:
    """As many candidates as the check may cost, in order; always at least one."""
    if chat is None:
        return list(candidates)
    spent = run.usage.tokens_in + run.usage.tokens_out
    allowance = max(LEAST_TOKENS, SHARE * spent)
    chosen: list[Candidate] = []
    for candidate in candidates:
        allowance -= candidate.tokens(chat.card)
        if chosen and allowance < 0:
            break
        chosen.append(candidate)
    return chosen


def mark(
    chat: Chat, footage: Footage, question: Question, proposed: str, candidates: Sequence[Candidate]
) -> Marks | None:
    """The model's marks; ``None`` if they cannot be read."""
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


def reconsider(
    answer: Answer, chat: Chat, footage: Footage, question: Question, against: Sequence[Candidate]
) -> Answer:
    """The question once more, with what contradicts the answer; an event names the outcome."""
    proposed = in_words(question, answer.choice, answer.text)
    said = guess(
        chat,
        "shared/reconsider",
        question,
        frames=[each.frame for each in against if each.frame is not None],
        length=Plain(clock(footage.duration)),
        proposed=phrase("shared", "answer_so_far", answer=proposed),
        moments=numbered(against),
    )
    again = in_words(question, said.choice, said.text)
    changed = not said.abstained and again != proposed
    note("reconsidered", before=proposed, after=again, changed=changed)
    if not changed:
        return unsupported(answer)
    evidence = tuple(each.evidence for each in against)
    return said.as_answer(evidence=evidence)


def by_overlap(proposed: str, candidates: Sequence[Candidate]) -> Marks:
    """Marks without a model: a line supports an answer whose words it holds."""
    supports = []
    for number, candidate in enumerate(candidates, start=1):
        if phrases.match(proposed, candidate.evidence.text) >= OVERLAP:
            supports.append(number)
    return Marks(supports=supports, contradicts=[])


def unsupported(answer: Answer) -> Answer:
    """The answer without citations: a wrong citation is worse than none."""
    confidence = None if answer.confidence is None else answer.confidence / 2
    return replace(answer, evidence=(), confidence=confidence, status="unsupported")


def numbered(candidates: Sequence[Candidate]) -> list[str]:
    """Candidates as the model reads them: ``2. [00:01:05] ALL RIGHTS RESERVED``."""
    lines = [candidate.line() for candidate in candidates]
    return [
        f"{number}. [{clock(line.segment.start)}] {line.text}"
        for number, line in enumerate(lines, start=1)
    ]


def _numbered(candidates: Sequence[Candidate], numbers: Sequence[int]) -> list[Candidate]:
    """The candidates with these numbers, as ordered by the model; other numbers name nothing."""
    valid = [number for number in dict.fromkeys(numbers) if 1 <= number <= len(candidates)]
    return [candidates[number - 1] for number in valid]


def _candidate(evidence: Evidence, footage: Footage, pictures: bool) -> Candidate | None:
    if evidence.text:
        return Candidate(evidence)
    if not pictures or "pictures" not in footage.has:
        return None  # nothing to judge it by
    (frame,) = footage.at([evidence.segment.middle])
    return Candidate(evidence, frame)


def _closeness(evidence: Evidence, footage: Footage, about: str) -> float:
    """How close a cited moment is to a text, by its picture or caption."""
    row = int(np.abs(footage.times - evidence.segment.middle).argmin())
    return float(footage.embeddings()[row] @ footage.encode([about])[0])


def _peaks(cosines: NDArray[np.float32], footage: Footage) -> list[int]:
    """The rows that stand out most, none within :data:`APART` seconds of a better one."""
    peaks: list[int] = []
    for row in np.argsort(-cosines, kind="stable").tolist():
        if all(abs(footage.times[row] - footage.times[peak]) >= APART for peak in peaks):
            peaks.append(row)
            if len(peaks) == FROM_PICTURES:
                break
    return peaks
