"""The grounding agent: finds where in the film to look, with one of two tools.

``retrieve`` compares ten-second clips with a cue. ``vlm_score`` shows every minute of the film to
the vision-language model, which grades it from 1 to 4 and says what it shows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from longtake._util.timecode import SHORT_CLOCK, clock, parse_time
from longtake.agents.answer import length, shown_to
from longtake.agents.run import Run
from longtake.agents.team import fanout
from longtake.algorithms import sampling
from longtake.errors import check_least
from longtake.footage.look import look_at, rows_within
from longtake.footage.protocol import Footage
from longtake.llm.chat import estimate
from longtake.llm.structured.ask import ask
from longtake.prompts import Plain, phrase
from longtake.tracing.events import ToolCalled, emit, note, note_scores, step
from longtake.types import Evidence, Question, Segment

GROUNDING, PERCEPTION, SUBTITLES, FINISH = "grounding", "visual_perception", "subtitles", "finish"

REFLECTION = "reflection"


@dataclass(frozen=True)
class HistoryEntry:
    """One entry of the history."""

    agent: str
    instruct: str
    report: tuple[str, ...]
    """What the agent reported, line by line."""
    scored_for: str = ""
    """For grounding: the instruction by which the clips were scored, if any."""
    looked: tuple[int, ...] = ()
    """Rows of the footage's grid that a model looked at."""
    quoted: tuple[Evidence, ...] = ()
    """Spoken lines that were found to be relevant."""


@dataclass(frozen=True)
class GroundedClip:
    """A clip returned by grounding."""

    segment: Segment
    score: float
    description: str = ""
    """What the model that scored it says about it."""


def written(history: Sequence[HistoryEntry]) -> list[str]:
    """The history as the next agent reads it."""
    lines: list[str] = []
    for number, entry in enumerate(history, start=1):
        # one numbered line per entry, so that a planner can refer to it
        lines.append(f"{number}. {entry.agent}: {entry.instruct}")
        lines += [f"   {line}" for line in entry.report]
    return lines or [phrase("symphony", "nothing_yet")]


def uninspected(history: Sequence[HistoryEntry]) -> bool:
    """Whether nobody has looked since grounding last reported where to look."""
    for entry in reversed(history):
        if entry.agent == GROUNDING:
            return True
        # an agent that used no tool has looked at nothing
        if entry.agent == PERCEPTION and entry.looked:
            return False
    return False


class ToolReply(BaseModel):
    """Which tool to use, and what it is told."""

    tool: Literal["retrieve", "vlm_score"]
    cue: str = Field("", description="for retrieve: what is visible, in a few concrete words")
    instruction: str = Field("", description="for vlm_score: what to identify in a clip")


class ScoreReply(BaseModel):
    """How relevant a clip is to the question."""

    caption: str = Field(description="relevant people, objects and actions, in order")
    score: int = Field(ge=1, le=4)
    reason: str = Field("", description="for a score of 2 or higher: why")


@dataclass(frozen=True)
class Grounding:
    """Settings of the grounding agent."""

    # from the paper
    retrieved_clips: int = 15
    """Clips that ``retrieve`` returns."""
    retrieved_seconds: float | None = 10.0
    """Length of these clips; unset, as released: single moments of the grid."""
    scored_seconds: float = 60.0
    """Length of the clips that ``vlm_score`` shows."""
    scored_frames: int = 30
    """Frames shown of each, its first and its last among them."""
    scored_every: float | None = None
    """Show a frame every so many seconds instead, from the clip's start (as released)."""
    least_score: int = 2
    """Clips with a lower score, of 1 to 4, are not returned."""
    by_time: bool = False
    """Report scored clips in time order, as released, instead of the best first."""

    # ours, or from the released code
    max_scorings: int = 3
    """How often the film is scored for one question; after that, grounding retrieves (ours; the
    paper sets no limit)."""
    named_times: bool = True
    """Return the stretch that a question names by the clock instead of searching (as released)."""
    report_share: float = 0.4
    """Most of the planner's context that a report fills (ours): the rest is for the history and for
    its reply."""

    def __post_init__(self) -> None:
        lengths = {"retrieved_seconds": 1, "scored_seconds": 1, "scored_every": 0.1}
        check_least(self, "symphony.grounding", max_scorings=0, **lengths)

    @property
    def most_frames(self) -> int:
        """The most frames shown of a scored clip."""
        if self.scored_every is None:
            return self.scored_frames
        return math.ceil((self.scored_seconds + LEAST_REST) / self.scored_every)

    def calls(self, duration: float) -> int:
        """The calls of one scoring."""
        return len(cut(duration, self.scored_seconds))

    def ground(
        self,
        footage: Footage,
        question: Question,
        instruct: str,
        run: Run,
        *,
        scored_for: Sequence[str],
    ) -> HistoryEntry:
        """Use one tool once; a question that names its own time needs none.

        ``scored_for`` lists the instructions by which the film was scored before. It is not scored
        again by the same instruction.
        """
        with step("grounding", instruct=instruct):
            named = named_stretches(question.text, footage.duration) if self.named_times else []
            if named:
                note("question_names_its_time", stretches=[[s.start, s.end] for s in named])
                claims = [GroundedClip(segment, 1.0) for segment in named]
                report = self.report(phrase("symphony", "claims_named"), claims, run)
                return HistoryEntry(GROUNDING, instruct, report)
            choice = _choose_tool(footage, question, instruct, run)
            if choice.tool == "vlm_score":
                # scoring again in the same way would repeat the report, at a call per minute
                instruction = choice.instruction or instruct
                if instruction not in scored_for and len(scored_for) < self.max_scorings:
                    claims = self.scored(footage, question, instruction, run)
                    report = self.tool_report("vlm_score", claims, run)
                    return HistoryEntry(GROUNDING, instruct, report, scored_for=instruction)
                repeated = instruction in scored_for
                note("not_scored_again", why="same instruction" if repeated else "limit reached")
            claims = self.retrieved(footage, choice.cue or instruct)
            report = self.tool_report("retrieve", claims, run)
            return HistoryEntry(GROUNDING, instruct, report)

    def retrieved(self, footage: Footage, cue: str) -> list[GroundedClip]:
        """The clips whose mean embedding is closest to the cue, best first."""
        if self.retrieved_seconds is None:
            clips = [Segment(time, time) for time in footage.times.tolist()]
        else:
            clips = cut(footage.duration, self.retrieved_seconds)
        pictures, text = footage.embeddings(), footage.encode([cue])[0]
        # a clip is compared as a whole, since one frame may be blurred or turned away
        means = np.stack([pictures[rows_within(footage, clip)].mean(axis=0) for clip in clips])
        # the mean of unit vectors is shorter than one, and zero if they cancel out
        sizes = np.linalg.norm(means, axis=1)
        closeness = (means @ text) / np.where(sizes > 0, sizes, 1.0)
        note_scores(f"retrieve: {cue}", clips, closeness)
        best = np.argsort(-closeness, kind="stable")[: self.retrieved_clips].tolist()
        claims = [GroundedClip(clips[index], round(float(closeness[index]), 3)) for index in best]
        _record("retrieve", {"cue": cue}, claims)
        return claims

    def scored(
        self, footage: Footage, question: Question, instruction: str, run: Run
    ) -> list[GroundedClip]:
        """Every clip with a score of at least ``least_score``, best first; ties go by time."""

        def score(clip: Segment) -> GroundedClip | None:
            reply = ask(
                run["vlm"],
                "symphony/score",
                ScoreReply,
                default=None,
                question=question,
                instruction=instruction,
                clip=clip,
                **shown_to(footage, look_at(footage, self.shown_rows(footage, clip).tolist())),
            )
            if reply is None:
                note("clip_not_scored", start=clip.start, end=clip.end)
                return None
            texts = [text for text in (reply.caption, reply.reason) if text]
            return GroundedClip(clip, reply.score, " ".join(texts))

        # a clip whose score cannot be read is left out
        clips = cut(footage.duration, self.scored_seconds)
        claims = [claim for claim in fanout(score, clips) if claim is not None]
        # the trace shows every score, also those that are not returned
        values = dict(sorted((claim.segment, claim.score) for claim in claims))
        note_scores(f"vlm_score: {instruction}", values, values.values())
        kept = [claim for claim in claims if claim.score >= self.least_score]
        kept.sort(key=lambda claim: (-claim.score, claim.segment))
        _record("vlm_score", {"scoring_instruction": instruction}, kept)
        return kept

    def shown_rows(self, footage: Footage, clip: Segment) -> NDArray[np.int64]:
        """The rows of the grid that are shown of a clip."""
        rows = rows_within(footage, clip)
        if self.scored_every is None:
            return rows[sampling.uniform(len(rows), self.scored_frames)]
        moments = np.arange(clip.start, clip.end, self.scored_every)
        places = np.searchsorted(footage.times[rows], moments)
        return rows[np.unique(places[places < len(rows)])]

    def tool_report(self, tool: str, claims: Sequence[GroundedClip], run: Run) -> tuple[str, ...]:
        """What a tool found, or that it found nothing."""
        if not claims:
            return (phrase("symphony", "nothing_grounded", tool=Plain(tool)),)
        by_time = self.by_time and tool == "vlm_score"
        heading = phrase("symphony", "claims_by_time" if by_time else "claims", tool=Plain(tool))
        return self.report(heading, claims, run, by_time=by_time)

    def report(
        self, heading: str, claims: Sequence[GroundedClip], run: Run, *, by_time: bool = False
    ) -> tuple[str, ...]:
        """The claims as lines, as many of the best as fit into the share of the context."""
        context = run["planner"].card.context
        room = math.inf if context is None else self.report_share * context
        kept: list[GroundedClip] = []
        for claim in claims:
            room -= estimate(_line(claim))
            # the best claim is reported even if it alone fills the room
            if room < 0 and kept:
                break
            kept.append(claim)
        left_out = len(claims) - len(kept)
        if by_time:
            kept.sort(key=lambda claim: claim.segment)
        lines = [heading, *map(_line, kept)]
        if left_out:
            note("claims_left_out", kept=len(kept), of=len(claims))
            lines.append(phrase("symphony", "claims_left_out", number=left_out))
        return tuple(lines)


# only "at 3:16" is a time of the film; "John 3:16" and "the clock shows 3:16" are not
_AT = r"\b(?:at|from|between|until)\s+(?:about\s+|around\s+)?"

_RANGE = re.compile(
    rf"{_AT}({SHORT_CLOCK})\s*(?:to|and|until|-|–|—)\s*({SHORT_CLOCK})\b", re.IGNORECASE
)

_MOMENT = re.compile(rf"{_AT}({SHORT_CLOCK})\b", re.IGNORECASE)


def _choose_tool(footage: Footage, question: Question, instruct: str, run: Run) -> ToolReply:
    default = ToolReply(tool="vlm_score", cue=instruct, instruction=instruct)
    return ask(
        run["grounder"],
        "symphony/ground",
        ToolReply,
        default=default,
        question=question,
        length=length(footage),
        instruct=instruct,
    )


def _line(claim: GroundedClip) -> str:
    score = Plain(f"{claim.score:g}")
    if not claim.description:
        return phrase("symphony", "claim", clip=claim.segment, score=score)
    return phrase("symphony", "claim_told", clip=claim.segment, score=score, told=claim.description)


def named_stretches(text: str, duration: float) -> list[Segment]:
    """The stretches that a question names by the clock: ranges, else a minute around moments.

    Times count after "at", "from", "between" or "until", within the length of the film.
    """
    ranges = [(parse_time(a), parse_time(b)) for a, b in _RANGE.findall(text)]
    if not ranges:
        moments = [parse_time(moment) for moment in _MOMENT.findall(text)]
        ranges = [(moment - 30.0, moment + 30.0) for moment in moments if moment < duration]
    # a range may be written backwards, or reach beyond the film
    inside = [(max(0.0, min(pair)), min(duration, max(pair))) for pair in ranges]
    return [Segment(start, end) for start, end in inside if end > start]


def _record(tool: str, arguments: dict[str, Any], claims: Sequence[GroundedClip]) -> None:
    """Record the use of a tool in the trace."""
    lines = []
    for claim in claims:
        span = f"{clock(claim.segment.start)} to {clock(claim.segment.end)}"
        lines.append(f"{span} ({claim.score:g}) {claim.description}".strip())
    emit(ToolCalled(name=tool, arguments=arguments, result="\n".join(lines)))


LEAST_REST = 0.5
"""A rest under this many seconds joins the last clip: films end a frame or two after a second."""


def cut(duration: float, seconds: float) -> list[Segment]:
    """Cut the film into clips of equal length; the last one is what remains."""
    count = max(1, math.floor((duration - LEAST_REST) / seconds) + 1)
    starts = [number * seconds for number in range(count)]
    return [Segment(start, end) for start, end in zip(starts, [*starts[1:], duration], strict=True)]
