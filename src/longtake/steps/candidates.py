"""Moments that may support an answer, the most promising first."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from longtake.algorithms import phrases
from longtake.algorithms.phrases import SURE
from longtake.algorithms.scope import scope
from longtake.footage.protocol import Footage
from longtake.models.chat import Card, Chat, Image
from longtake.models.tokens import estimate, estimate_image
from longtake.prompts import phrase
from longtake.steps.run import Run
from longtake.timecode import CLOCK, clock, parse_time
from longtake.types import Answer, Evidence, Frame, Line, Segment

SHARE = 0.06
"""Share of the method's tokens that the check may use; with its prompt it stays under a tenth."""
LEAST_TOKENS = 300
"""Tokens for candidates that even the cheapest method is granted."""
WHOLE, PROMPT = 0.1, 300
"""Share of the method's tokens that the whole check stays under, and tokens of its own prompt."""
MOST = 24
"""Candidates in one check, if their tokens allow."""
FROM_LINES, FROM_PICTURES = 8, 12
"""Candidates that the index adds: lines said, shown or described, and pictures."""
APART = 3.0
"""Seconds between two candidates; closer ones show the same moment."""
ALIKE = 0.02
"""Moments whose cosines differ by no more are equally close, as far as the index can tell."""
_CLOCK = re.compile(rf"\b{CLOCK}\b")


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

    def repeats(self, other: Candidate) -> bool:
        """Whether both show the same moment; a picture does not tell what is said meanwhile."""
        gap = abs(self.evidence.segment.middle - other.evidence.segment.middle)
        return gap < APART and (self.frame is None) == (other.frame is None)

    def line(self) -> Line:
        """How the model reads about it."""
        return Line(self.evidence.segment, self.evidence.text or phrase("shared", "picture_below"))


@dataclass(frozen=True)
class Proposal:
    """A question with the answer to be checked."""

    question: str
    answer: str

    @property
    def text(self) -> str:
        """Both in a row."""
        return f"{self.question} {self.answer}"


def gather(
    answer: Answer,
    footage: Footage,
    proposal: Proposal,
    lines: Sequence[Evidence],
    *,
    pictures: bool,
) -> list[Candidate]:
    """Candidates by promise, each line and each picture of a moment once.

    Moments that the reason names, cited moments, lines and pictures take turns.
    """
    cited = sorted(answer.evidence, key=lambda each: -_closeness(each, footage, proposal.text))
    sources = [
        named_in(answer.reason, footage),
        cited,
        lines[:FROM_LINES],
        close_pictures(footage, proposal),
    ]
    in_turn = [each for rank in zip_longest(*sources) for each in rank if each is not None]
    chosen: list[Candidate] = []
    for evidence in in_turn:
        candidate = _candidate(evidence, footage, pictures, proposal)
        if candidate is not None and not any(candidate.repeats(each) for each in chosen):
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


def close_pictures(footage: Footage, proposal: Proposal) -> list[Evidence]:
    """The moments whose pictures are closest to question and answer, together and each alone.

    A question about two events is answered at two moments, of which each resembles one half. Where
    the question names a part of the film, only that part is searched.
    """
    if "pictures" not in footage.has:
        return []
    texts = [proposal.text, proposal.question, proposal.answer]
    cosines = footage.encode(texts) @ footage.embeddings().T
    stretch = scope(proposal.question, footage.duration)
    ranked = [_peaks(row, footage, stretch) for row in cosines]
    return [each for rank in zip_longest(*ranked) for each in rank if each is not None]


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
    allowance = max(LEAST_TOKENS, SHARE * _spent(run))
    chosen: list[Candidate] = []
    for candidate in candidates:
        allowance -= candidate.tokens(chat.card)
        if chosen and allowance < 0:
            break
        chosen.append(candidate)
    return chosen


def is_aimless(chosen: Sequence[Candidate], answer: Answer, footage: Footage) -> bool:
    """Whether the check shows one picture, and neither the method nor the index chose its moment.

    A method that cites more moments than a check can list did not choose among them. The closest of
    them seldom shows what is asked about, unless the reason names it.
    """
    shown = [each.evidence for each in chosen if each.frame is not None]
    if len(shown) != 1 or len(answer.evidence) <= MOST:
        return False
    return shown[0] in answer.evidence and shown[0] not in named_in(answer.reason, footage)


def likeliest(footage: Footage, proposal: Proposal, lines: Sequence[Evidence]) -> list[Candidate]:
    """At most three pictures: where the answer stands on the screen, and of the closest moments.

    These are searched with the answer, which finds what supports it, and without, which finds what
    contradicts a wrong one; there are two where the index finds both alike.
    """
    quoted = [line for line in lines[:FROM_LINES] if _is_quoted(proposal, line)][:1]
    # listed at the time of its picture, or the model could not match the two
    moments = [replace(line, segment=_middle(line.segment)) for line in quoted]
    cosines = footage.encode([proposal.text, proposal.question]) @ footage.embeddings().T
    stretch = scope(proposal.question, footage.duration)
    peaks = _peaks(cosines.max(axis=0), footage, stretch)[:2]
    for close in (peak for peak in peaks if _alike(peak, peaks[0])):
        if not any(close.segment.start in line.segment for line in quoted):
            moments.append(close)
    frames = footage.at([moment.segment.middle for moment in moments])
    return [Candidate(*each) for each in zip(moments, frames, strict=True)]


def redirected(
    chosen: Sequence[Candidate], likely: Sequence[Candidate], card: Card, run: Run
) -> list[Candidate]:
    """The candidates with likelier pictures instead of theirs: the first, and what else is paid."""
    if not likely:
        return list(chosen)
    kept = [likely[0], *(each for each in chosen if each.frame is None)]
    left = WHOLE * _spent(run) - PROMPT - sum(each.tokens(card) for each in kept)
    for candidate in likely[1:]:
        left -= candidate.tokens(card)
        if left >= 0:
            kept.append(candidate)
    return kept


def numbered(candidates: Sequence[Candidate]) -> list[str]:
    """Candidates as the model reads them: ``2. [00:01:05] ALL RIGHTS RESERVED``."""
    lines = [candidate.line() for candidate in candidates]
    return [
        f"{number}. [{clock(line.segment.start)}] {line.text}"
        for number, line in enumerate(lines, start=1)
    ]


def _candidate(
    evidence: Evidence, footage: Footage, pictures: bool, proposal: Proposal
) -> Candidate | None:
    sees = pictures and "pictures" in footage.has
    # what a sign says is told by its text; on what it stands, only by the picture
    if evidence.text and not (sees and _is_quoted(proposal, evidence)):
        return Candidate(evidence)
    if not sees:
        return None  # nothing to judge it by
    (frame,) = footage.at([evidence.segment.middle])
    return Candidate(evidence, frame)


def _is_quoted(proposal: Proposal, evidence: Evidence) -> bool:
    """Whether the answer stands on the screen at that moment."""
    on_screen = evidence.source == "onscreen"
    return on_screen and phrases.match(proposal.answer, evidence.text) >= SURE


def _alike(one: Evidence, other: Evidence) -> bool:
    """Whether two moments are equally close to what was searched."""
    return abs((one.score or 0.0) - (other.score or 0.0)) <= ALIKE


def _middle(segment: Segment) -> Segment:
    return Segment(segment.middle, segment.middle)


def _spent(run: Run) -> int:
    """Tokens that the method used."""
    return run.usage.tokens_in + run.usage.tokens_out


def _closeness(evidence: Evidence, footage: Footage, about: str) -> float:
    """How close a cited moment is to a text, by its picture or caption."""
    row = int(np.abs(footage.times - evidence.segment.middle).argmin())
    return float(footage.embeddings()[row] @ footage.encode([about])[0])


def _peaks(
    cosines: NDArray[np.float32], footage: Footage, stretch: Segment | None
) -> list[Evidence]:
    """The moments that stand out most, none within :data:`APART` seconds of a better one."""
    peaks: list[Evidence] = []
    for row in np.argsort(-cosines, kind="stable").tolist():
        time = float(footage.times[row])
        inside = stretch is None or stretch.start <= time <= stretch.end
        if inside and all(abs(time - peak.segment.start) >= APART for peak in peaks):
            score = round(float(cosines[row]), 4)
            peaks.append(Evidence(Segment(time, time), "frame", "", score))
            if len(peaks) == FROM_PICTURES:
                break
    return peaks
