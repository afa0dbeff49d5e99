"""Checks an answer against the film with one more call, and cites what supports it.

::

    1  candidates ← cited moments, moments named in the reason, and the lines and pictures closest
       to question and answer, as far as a tenth of the method's tokens allows; if the question
       names a part of the film ("at the end"), only candidates in it, if there are any
    2  the reranker judges what is said and written; a model marks pictures and captions that
       support and that contradict the answer; numbers, names and negations override both
    3  if some support the answer, cite them
    4  else if some contradict it, ask the question once more with these
    5  else remove the citations and halve the confidence
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from longtake._util.timecode import CLOCK, clock, parse_time
from longtake.agents.answer import guess, in_words, option
from longtake.agents.run import Run
from longtake.algorithms import lexical, passages
from longtake.algorithms.passages import SURE
from longtake.errors import BudgetSpent, ModelError
from longtake.footage.look import captioned, likeness
from longtake.footage.protocol import Footage
from longtake.llm.chat import Card, Chat, Image, estimate, estimate_image
from longtake.llm.structured.ask import ask
from longtake.prompts import Plain, phrase
from longtake.retrieval.evidence import contradicts, is_instruction
from longtake.retrieval.question_kinds import in_full, is_question, may_be_visible
from longtake.retrieval.relevance import Reader, conflicting
from longtake.retrieval.scope import scope
from longtake.tracing.events import note, step
from longtake.types import GIVEN, Answer, Evidence, Frame, Line, Question, Segment, Unchecked

SHARE = 0.06
"""Candidates may take this share of the method's tokens; with the prompt, less than a tenth."""
LEAST_TOKENS = 300
"""Candidates may take this many tokens however cheap the method was."""
WHOLE, PROMPT = 0.1, 300
"""Limit of the whole check as a share of the method's tokens, and the tokens of its prompt."""
MOST = 24
"""Candidates in one check, if their tokens allow."""
FROM_LINES, FROM_PICTURES = 8, 12
"""Candidates from the index: lines said, shown or described, and pictures."""
WORDS = ("speech", "subtitle", "onscreen")
"""Sources whose text is the film's own."""
NEAREST = 3
"""Frames that are shown instead of an answer."""
APART = 3.0
"""Minimum seconds between two candidates; closer ones show the same moment."""
EXTENT = 2.0
"""Minimum duration of a cited moment in seconds."""
REACH = 30
"""Moments on either side that are searched for the extent of a caption."""
_CLOCK = re.compile(rf"\b{CLOCK}\b")


class Marks(BaseModel):
    """Which moments support an answer, and which contradict it."""

    supports: list[int] = Field(description="numbers of the moments that support the answer")
    contradicts: list[int] = Field(description="numbers of the moments that contradict the answer")


@dataclass(frozen=True)
class Checked:
    """An answer after the check, and what the check found."""

    answer: Answer
    supports: int = 0
    """Moments that support the answer."""
    contradicts: int = 0
    """Moments that contradict it."""
    changed: bool = False
    """Whether the answer was reconsidered and is another one now."""


def check(answer: Answer, footage: Footage, question: Question, run: Run) -> Checked:
    """The answer with verified citations; unchanged if there is nothing to check or no budget."""
    if not answer.is_given:
        return Checked(answer)
    with step("verify"):
        try:
            return _checked(answer, footage, question, run)
        # a failing check must not lose the answer, which says that it was not checked
        except BudgetSpent as error:
            return unchecked(answer, "budget", str(error))
        except ModelError as error:
            return unchecked(answer, "model", str(error))


def unchecked(answer: Answer, why: Unchecked, detail: str) -> Checked:
    """The answer as it is, with the reason why it was not checked."""
    note("not_verified", why=detail)
    return Checked(replace(answer, unchecked=why))


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
        return Checked(unsupported(answer))
    reader = Reader(footage, question)
    read_out = [candidate for candidate in candidates if reader and candidate.is_line]
    shown = [candidate for candidate in candidates if candidate not in read_out]
    only_lines = all(candidate.is_line for candidate in shown)
    if shown and (chat is None or (only_lines and chat.card.small)):
        return unchecked(answer, "reranker", "no reranker is there, and the model is small")
    marks = Marks(supports=[], contradicts=[])
    if shown and chat is not None:
        listed = [*shown, *decoy(lines, shown)]
        judged = mark(chat, footage, question, proposed, listed)  # 2
        if judged is None and not read_out:
            return unchecked(answer, "unreadable", "the check's reply cannot be read")
        if judged is not None and len(shown) + 1 not in judged.supports:
            marks = judged
    # lines come first, since they are quoted
    candidates = [*read_out, *shown]
    marks = Marks(
        supports=[*stated_by(reader, proposal, read_out), *_moved(marks.supports, len(read_out))],
        contradicts=_moved(marks.contradicts, len(read_out)),
    )
    marks = by_rule(marks, proposal, candidates)
    supporting = _numbered(candidates, marks.supports)
    against = _numbered(candidates, [n for n in marks.contradicts if n not in marks.supports])
    note("verified", candidates=len(candidates), supports=len(supporting), contradicts=len(against))
    checked = Checked(answer, len(supporting), len(against))
    if supporting:  # 3
        cited = [with_extent(candidate.evidence, footage) for candidate in supporting]
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
    """The model's marks; ``None`` if they cannot be read."""
    return ask(
        chat,
        "shared/verify",
        Marks,
        default=None,
        frames=pictures_of(candidates),
        question=question,
        length=Plain(clock(footage.duration)),
        proposed=phrase("shared", "proposed_answer", answer=proposed),
        moments=numbered(candidates),
    )


def stated_by(reader: Reader, proposal: Proposal, lines: Sequence[Candidate]) -> list[int]:
    """The numbers of the lines that support the answer."""
    texts = [candidate.evidence.text for candidate in lines]
    relevance = float(reader.relevance(texts).max(initial=-np.inf))
    if relevance < reader.threshold("question"):
        return []
    scores = reader.support(proposal.answer, texts, relevance)
    return [number for number, score in enumerate(scores, start=1) if score >= 0]


def _moved(numbers: Sequence[int], by: int) -> list[int]:
    return [number + by for number in numbers]


def reconsider(
    answer: Answer, chat: Chat, footage: Footage, question: Question, against: Sequence[Candidate]
) -> Answer:
    """Ask the question once more with what contradicts the answer."""
    proposed = in_words(question, answer.choice, answer.text)
    guessed = guess(
        chat,
        "shared/reconsider",
        question,
        frames=pictures_of(against),
        length=Plain(clock(footage.duration)),
        proposed=phrase("shared", "answer_so_far", answer=proposed),
        moments=numbered(against),
    )
    again = in_words(question, guessed.choice, guessed.text)
    changed = not guessed.abstained and again != proposed
    note("reconsidered", before=proposed, after=again, changed=changed)
    if not changed:
        return unsupported(answer)
    evidence = [with_extent(candidate.evidence, footage) for candidate in against]
    return guessed.as_answer(evidence=evidence)


def by_rule(marks: Marks, proposal: Proposal, candidates: Sequence[Candidate]) -> Marks:
    """The marks, except where numbers, names or negations decide.

    A line that contradicts the answer does not support it. If there is one, other lines support the
    answer only if they contain it, since a model also marks lines that instruct it how to answer.
    """
    against = []
    for number, candidate in enumerate(candidates, start=1):
        text = candidate.evidence.text
        reason = contradicts(proposal.answer, text, proposal.question) if text else None
        if reason is not None:
            note("contradicted_by_rule", line=text, why=reason)
            against.append(number)
    if not against:
        return marks
    stated = []
    for number, candidate in enumerate(candidates, start=1):
        holds = passages.match(proposal.answer, candidate.evidence.text) >= SURE
        if number not in against and (holds or candidate.frame is not None):
            stated.append(number)
    kept = [number for number in marks.supports if number in stated]
    # if the film states both, the model decides
    rejected = [number for number in against if number in marks.supports or not stated]
    return Marks(supports=kept, contradicts=[*marks.contradicts, *rejected])


def mention_disagreement(answer: Answer, footage: Footage, question: Question) -> Answer:
    """Add a line that disagrees with the cited ones to the answer, and halve its confidence.

    The film does not show which of the two is right.
    """
    if answer.status not in GIVEN or not answer.evidence:
        return answer
    others = [
        line
        for line in conflicting(question, answer.text, answer.evidence, footage)
        if not is_instruction(line.text, question.text) and not _is_cited(line, answer)
    ]
    if not others:
        return answer
    first, other = answer.evidence[0], others[0]
    note("lines_disagree", lines=[first.text, other.text])
    pair = sorted((first, other), key=lambda line: line.segment)
    one, two = (f'"{line.text}" ({clock(line.segment.start)})' for line in pair)
    both = f"The film says both {one} and {two}."
    confidence = None if answer.confidence is None else answer.confidence / 2
    answer = replace(answer, evidence=(*answer.evidence, other), confidence=confidence)
    if question.options:
        return replace(answer, reason=f"{answer.reason} {both}".strip())
    return replace(answer, text=f"{answer.text} {both}".strip())


def _is_cited(line: Evidence, answer: Answer) -> bool:
    """Whether an answer cites a line, by itself or as a part of what it cites."""
    cited = [shown for shown in answer.evidence if shown.segment.overlap(line.segment) > 0]
    return any(line.text in shown.text for shown in cited)


def unsupported(answer: Answer) -> Answer:
    """The answer without citations: a wrong citation is worse than none."""
    confidence = None if answer.confidence is None else answer.confidence / 2
    return replace(answer, evidence=(), confidence=confidence, status="unsupported")


def _numbered(candidates: Sequence[Candidate], numbers: Sequence[int]) -> list[Candidate]:
    """The candidates with these numbers, in the model's order; invalid numbers are ignored."""
    valid = [number for number in dict.fromkeys(numbers) if 1 <= number <= len(candidates)]
    return [candidates[number - 1] for number in valid]


@dataclass(frozen=True)
class Proposal:
    """A question with the answer to be checked."""

    question: str
    answer: str

    @property
    def text(self) -> str:
        """Question and answer."""
        return f"{self.question} {self.answer}"


@dataclass(frozen=True)
class Candidate:
    """A moment that may support the answer."""

    evidence: Evidence
    frame: Frame | None = None
    """The picture to judge by; ``None``: the text is enough."""

    @property
    def is_line(self) -> bool:
        """Whether it is judged by words that are said or written."""
        return self.frame is None and self.evidence.source in WORDS

    def tokens(self, card: Card) -> int:
        """Its tokens in the prompt."""
        if self.frame is None:
            return estimate(self.evidence.text)
        return estimate_image(Image(self.frame, card.max_pixels, card.picture_tokens))

    def repeats(self, other: Candidate) -> bool:
        """Whether both show the same moment in the same way, as a text or as a picture."""
        gap = abs(self.evidence.segment.middle - other.evidence.segment.middle)
        return gap < APART and (self.frame is None) == (other.frame is None)

    def line(self) -> Line:
        """The line that describes it to the model, at the time of its picture if there is one."""
        segment = self.evidence.segment
        if self.frame is not None:
            segment = Segment(self.frame.time, self.frame.time)
        return Line(segment, self.evidence.text or phrase("shared", "picture_below"))


def gather(
    answer: Answer,
    footage: Footage,
    proposal: Proposal,
    lines: Sequence[Evidence],
    *,
    pictures: bool,
) -> list[Candidate]:
    """Distinct candidates, most promising first.

    Moments that the reason names, cited moments, lines and pictures take turns.
    """
    cited = sorted(answer.evidence, key=lambda moment: -_closeness(moment, footage, proposal.text))
    named, pictured = named_in(answer.reason, footage), close_pictures(footage, proposal)
    sees = pictures and "pictures" in footage.has
    # a moment without text and picture cannot be judged
    sources = [[e for e in source if sees or e.text] for source in (named, cited, lines, pictured)]
    part = scope(proposal.question, footage.duration)
    if part is not None:
        in_part = [
            [moment for moment in source if part.start <= moment.segment.middle <= part.end]
            for source in sources
        ]
        sources = in_part if any(in_part) else sources
    sources[2] = sources[2][:FROM_LINES]
    chosen: list[Candidate] = []
    for evidence in in_turns(sources):
        candidate = _candidate(evidence, footage, sees, proposal)
        if not any(candidate.repeats(other) for other in chosen):
            chosen.append(candidate)
        if len(chosen) == MOST:
            break
    return chosen


def in_turns(sources: Sequence[Sequence[Evidence]]) -> list[Evidence]:
    """The first moment of each source, then the second of each, and so on."""
    ranks = zip_longest(*sources)
    return [moment for rank in ranks for moment in rank if moment is not None]


def _candidate(evidence: Evidence, footage: Footage, sees: bool, proposal: Proposal) -> Candidate:
    # the text of a sign is known; where it stands is only visible in the picture
    if evidence.text and not (sees and _is_quoted(proposal, evidence)):
        return Candidate(evidence)
    (frame,) = footage.at([evidence.segment.middle])
    return Candidate(evidence, frame)


def named_in(reason: str, footage: Footage) -> list[Evidence]:
    """The moments that the answer's reason names by the clock."""
    times = [parse_time(text) for text in _CLOCK.findall(reason)]
    inside = [time for time in dict.fromkeys(times) if time < footage.duration]
    if "captions" in footage.has:
        lines = captioned(footage, inside)
        return [Evidence(line.segment, "caption", line.text) for line in lines]
    return [Evidence(Segment(time, time), "frame") for time in inside]


def ranked_lines(footage: Footage, about: str) -> list[Evidence]:
    """All known lines, the closest in meaning to a text first."""
    lines = sourced_lines(footage)
    if not lines:
        return []
    if "captions" in footage.has:
        closeness = footage.embeddings() @ footage.encode([about])[0]
    else:
        closeness = likeness(footage, about, [line.text for _, line in lines])
    evidence = []
    for number in np.argsort(-closeness, kind="stable").tolist():
        source, line = lines[number]
        score = round(float(closeness[number]), 4)
        evidence.append(Evidence(line.segment, source, line.text, score))
    return evidence


def close_pictures(footage: Footage, proposal: Proposal) -> list[Evidence]:
    """The moments whose pictures are closest to question and answer, together and separately.

    Separately, because a question about two events is answered at two moments. If the question
    names a part of the film, only that part is searched.
    """
    if "pictures" not in footage.has:
        return []
    texts = [proposal.text, proposal.question, proposal.answer]
    cosines = footage.encode(texts) @ footage.embeddings().T
    stretch = scope(proposal.question, footage.duration)
    return in_turns([_peaks(row, footage, stretch) for row in cosines])


def sourced_lines(footage: Footage) -> list[tuple[str, Line]]:
    """All known lines of the footage with their sources; nothing is recognised for this."""
    if "captions" in footage.has:
        return [("caption", line) for line in captioned(footage, footage.times.tolist())]
    speech, onscreen = footage.known_lines()
    return [("speech", line) for line in speech] + [("onscreen", line) for line in onscreen]


def decoy(lines: Sequence[Evidence], candidates: Sequence[Candidate]) -> list[Candidate]:
    """The line farthest from question and answer, if there are enough lines.

    A model that marks it as support marks everything, as small models do, so its marks are ignored.
    """
    if len(lines) <= FROM_LINES:
        return []
    farthest = lines[-1]
    known = {candidate.evidence.text for candidate in candidates}
    return [] if farthest.text in known else [Candidate(farthest)]


def affordable(candidates: Sequence[Candidate], chat: Chat | None, run: Run) -> list[Candidate]:
    """As many candidates as the check can pay for, in order; always at least one."""
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
    """Whether the check shows a single picture, and neither method nor index selected its moment.

    A method that cites more moments than a check can list has not selected them. The closest of
    them seldom shows what is asked about, unless the reason names it.
    """
    shown = [candidate.evidence for candidate in chosen if candidate.frame is not None]
    if len(shown) != 1 or len(answer.evidence) <= MOST:
        return False
    return shown[0] in answer.evidence and shown[0] not in named_in(answer.reason, footage)


def likeliest(footage: Footage, proposal: Proposal, lines: Sequence[Evidence]) -> list[Candidate]:
    """At most three pictures: of a sign that shows the answer, and of the closest moments.

    Moments are searched with the answer, to find support, and without it, to find contradictions.
    The second closest is included only if it is as close as the first.
    """
    quoted = [line for line in lines[:FROM_LINES] if _is_quoted(proposal, line)][:1]
    moments = list(quoted)
    cosines = footage.encode([proposal.text, proposal.question]) @ footage.embeddings().T
    stretch = scope(proposal.question, footage.duration)
    peaks = _peaks(cosines.max(axis=0), footage, stretch)[:2]
    for close in (peak for peak in peaks if _alike(peak, peaks[0])):
        if not any(close.segment.start in line.segment for line in quoted):
            moments.append(close)
    frames = footage.at([moment.segment.middle for moment in moments])
    return [Candidate(moment, frame) for moment, frame in zip(moments, frames, strict=True)]


def redirected(
    chosen: Sequence[Candidate], likely: Sequence[Candidate], card: Card, run: Run
) -> list[Candidate]:
    """The candidates with their pictures replaced by likelier ones, as far as the tokens allow."""
    if not likely:
        return list(chosen)
    kept = [likely[0], *(candidate for candidate in chosen if candidate.frame is None)]
    left = WHOLE * _spent(run) - PROMPT - sum(candidate.tokens(card) for candidate in kept)
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


def pictures_of(candidates: Sequence[Candidate]) -> list[Frame]:
    """The pictures of the candidates that have one."""
    return [candidate.frame for candidate in candidates if candidate.frame is not None]


def _is_quoted(proposal: Proposal, evidence: Evidence) -> bool:
    """Whether the screen shows the answer at that moment."""
    on_screen = evidence.source == "onscreen"
    return on_screen and passages.match(proposal.answer, evidence.text) >= SURE


def _alike(one: Evidence, other: Evidence) -> bool:
    """Whether two moments are equally close to the query, within the precision of the index."""
    return abs((one.score or 0.0) - (other.score or 0.0)) <= 0.02


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
    """The moments of highest cosine, none within :data:`APART` seconds of a better one."""
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


def with_nearest_frames(answer: Answer, footage: Footage, question: Question) -> Answer:
    """Replace the moments closest to the question by frames, in an abstention.

    Not if pictures cannot answer it, nor if the film would have to be indexed for it.
    """
    text = in_full(question.text)
    about = " ".join(lexical.content_words(text))
    asks = bool(question.options) or is_question(text)
    if answer.status != "abstained" or not about or not asks or not may_be_visible(question):
        return answer
    if "pictures" not in footage.has or not footage.indexed:
        return answer
    cosines = np.asarray(footage.embeddings() @ footage.encode([about])[0], np.float32)
    peaks = _peaks(cosines, footage, None)[:NEAREST]
    return replace(answer, nearest=tuple(replace(peak, text=about) for peak in peaks))


def with_extent(evidence: Evidence, footage: Footage) -> Evidence:
    """The evidence with a duration: a moment of at least :data:`EXTENT` seconds.

    A caption lasts as long as it stays the same. Evidence that has a duration keeps it.
    """
    times = footage.times
    if evidence.segment.duration > 0 or not len(times):
        return evidence
    row = int(np.searchsorted(times, evidence.segment.start, side="right")) - 1
    first = last = max(0, row)
    if "captions" in footage.has:
        first, last = _same_caption(footage, first)
    end = float(times[last + 1]) if last + 1 < len(times) else footage.duration
    start = min(float(times[first]), evidence.segment.start)
    missing = max(0.0, EXTENT - (end - start)) / 2
    around = Segment(max(0.0, start - missing), min(footage.duration, end + missing))
    return replace(evidence, segment=around)


def _same_caption(footage: Footage, row: int) -> tuple[int, int]:
    """The first and last row of the run of rows with the same caption."""
    low, high = max(0, row - REACH), min(len(footage.times), row + REACH + 1)
    captions = footage.captions(footage.times[low:high].tolist())
    first = last = row
    while first > low and captions[first - 1 - low] == captions[row - low]:
        first -= 1
    while last + 1 < high and captions[last + 1 - low] == captions[row - low]:
        last += 1
    return first, last
