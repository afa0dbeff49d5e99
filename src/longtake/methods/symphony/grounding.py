"""The grounding agent: where in the film to look, by one of two tools.

``retrieve`` compares ten-second clips with a cue; ``vlm_score`` shows every minute of the film to the
vision-language model, which grades it from 1 to 4 and says what it shows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, Field

from longtake.algorithms import sampling
from longtake.errors import check_least
from longtake.events import ScoresSet, ToolCalled, emit, note, step
from longtake.footage.look import look_at, rows_within
from longtake.footage.protocol import Footage
from longtake.methods.symphony.history import GROUNDING, Claim, Turn
from longtake.models.tokens import estimate
from longtake.steps.ask import ask
from longtake.steps.fanout import fanout
from longtake.steps.run import Run
from longtake.steps.showing import length, shown_to
from longtake.timecode import clock, parse_time
from longtake.types import Question, Segment

_CLOCK = r"(?:\d{1,2}:)?[0-5]?\d:[0-5]\d"
_RANGE = re.compile(rf"\b({_CLOCK})\s*(?:to|and|until|-|–|—)\s*({_CLOCK})\b")
_MOMENT = re.compile(rf"\b{_CLOCK}\b")
REPORTED = 0.4
"""Share of the planner's context that one report may fill."""


class Approach(BaseModel):
    """Which tool, and what it is told."""

    tool: Literal["retrieve", "vlm_score"]
    cue: str = Field("", description="for retrieve: what is to be seen, in a few concrete words")
    instruction: str = Field("", description="for vlm_score: what to identify in a clip")


class Relevance(BaseModel):
    """A clip against the question."""

    caption: str = Field(
        description="people, things, actions that bear on the question, in their order"
    )
    score: int = Field(ge=1, le=4)
    reason: str = Field("", description="for 2 and more: why")


@dataclass(frozen=True)
class Grounding:
    """Settings of the grounding agent."""

    retrieved_clips: int = 15
    """Clips that ``retrieve`` returns …"""
    retrieved_seconds: float = 10.0
    """… and how long they are."""
    scored_seconds: float = 60.0
    """Length of the clips that ``vlm_score`` shows …"""
    scored_frames: int = 30
    """… and frames of each."""
    least_score: int = 2
    """A clip scored lower, of 1 to 4, is not returned."""
    scoring: Literal["full", "coarse_to_fine"] = "full"
    """Score every clip, or long stretches first and then the clips of the best (ours)."""
    coarse_clips: int = 4
    """Clips in a long stretch; more where half of ``score_calls`` would not go over the film."""
    score_calls: int = 32
    """Calls that ``coarse_to_fine`` may make for one scoring."""
    max_scorings: int = 3
    """Times that the film is scored for one question, then grounding retrieves (ours; the paper sets no bound)."""

    def __post_init__(self) -> None:
        check_least(
            self,
            "symphony.grounding",
            retrieved_clips=1,
            retrieved_seconds=1,
            scored_seconds=1,
            scored_frames=1,
            coarse_clips=1,
            score_calls=2,
            max_scorings=0,
        )

    def calls(self, duration: float) -> int:
        """The most calls of one scoring."""
        clips = len(cut(duration, self.scored_seconds))
        return clips if self.scoring == "full" else min(clips, self.score_calls)


def ground(
    settings: Grounding,
    footage: Footage,
    question: Question,
    instruct: str,
    run: Run,
    *,
    scored_for: Sequence[str],
) -> Turn:
    """One call of one tool; a question that names its own time needs none.

    ``scored_for`` are the instructions that the film was scored by before: by the same ones it is not scored again.
    """
    with step("grounding", instruct=instruct):
        named = named_stretches(question.text, footage.duration)
        if named:
            note("question_names_its_time", stretches=[[s.start, s.end] for s in named])
            claims, how = [Claim(s, 1.0) for s in named], "the question itself names when"
        else:
            approach = _approach(footage, question, instruct, run)
            by = approach.instruction or instruct
            if (
                approach.tool == "vlm_score"
                and by not in scored_for
                and len(scored_for) < settings.max_scorings
            ):
                claims = scored(settings, footage, question, by, run)
                return Turn(
                    GROUNDING, instruct, tuple(reported(claims, "vlm_score", run)), scored_for=by
                )
            if approach.tool == "vlm_score":
                note(
                    "not_scored_again",
                    why="by the same instruction" if by in scored_for else "as often as it may be",
                )
            claims, how = retrieved(settings, footage, approach.cue or instruct), "retrieve"
        return Turn(GROUNDING, instruct, tuple(reported(claims, how, run)))


def _approach(footage: Footage, question: Question, instruct: str, run: Run) -> Approach:
    unread = Approach(tool="vlm_score", cue=instruct, instruction=instruct)
    return ask(
        run["llm"],
        "symphony/ground",
        Approach,
        default=unread,
        question=question,
        length=length(footage),
        instruct=instruct,
    )


def retrieved(settings: Grounding, footage: Footage, cue: str) -> list[Claim]:
    """The clips whose mean picture is closest to the cue, best first."""
    clips = cut(footage.duration, settings.retrieved_seconds)
    pictures, text = footage.embeddings(), footage.encode([cue])[0]
    means = np.stack([pictures[rows_within(footage, clip)].mean(axis=0) for clip in clips])
    sizes = np.linalg.norm(means, axis=1)
    closeness = (means @ text) / np.where(sizes > 0, sizes, 1.0)
    emit(
        ScoresSet(
            label=f"retrieve: {cue}",
            segments=tuple(clips),
            values=tuple(np.round(closeness, 4).tolist()),
        )
    )
    best = np.argsort(-closeness, kind="stable")[: settings.retrieved_clips].tolist()
    claims = [Claim(clips[number], round(float(closeness[number]), 3)) for number in best]
    _tell("retrieve", {"cue": cue}, claims)
    return claims


def scored(
    settings: Grounding, footage: Footage, question: Question, instruction: str, run: Run
) -> list[Claim]:
    """Every clip that scores at least ``least_score``, best first and by time among equals."""
    clips = cut(footage.duration, settings.scored_seconds)
    if settings.scoring == "full" or len(clips) <= settings.score_calls:
        claims = _score(settings, footage, question, instruction, run, clips)
    else:
        claims = _coarse_to_fine(settings, footage, question, instruction, run, clips)
    values = {claim.segment: claim.score for claim in claims}
    shown = sorted(values)
    emit(
        ScoresSet(
            label=f"vlm_score: {instruction}",
            segments=tuple(shown),
            values=tuple(values[s] for s in shown),
        )
    )
    kept = [claim for claim in claims if claim.score >= settings.least_score]
    kept.sort(key=lambda claim: (-claim.score, claim.segment))
    _tell("vlm_score", {"scoring_instruction": instruction}, kept)
    return kept


def _coarse_to_fine(
    settings: Grounding,
    footage: Footage,
    question: Question,
    instruction: str,
    run: Run,
    clips: Sequence[Segment],
) -> list[Claim]:
    """Long stretches first; then, best first, their clips for as long as calls are left. A stretch whose clips were
    scored gives way to them."""
    # half of the calls at most: the rest is for a closer look
    each = max(settings.coarse_clips, math.ceil(len(clips) / (settings.score_calls // 2)))
    groups = [list(clips[at : at + each]) for at in range(0, len(clips), each)]
    whole = {Segment(group[0].start, group[-1].end): group for group in groups}
    coarse = _score(settings, footage, question, instruction, run, list(whole))
    left, fine = settings.score_calls - len(whole), list[Segment]()
    refined = set[Segment]()
    for claim in sorted(coarse, key=lambda claim: (-claim.score, claim.segment)):
        group = whole[claim.segment]
        if len(group) <= left:
            left -= len(group)
            fine += group
            refined.add(claim.segment)
    note(
        "scored_coarsely", stretches=len(whole), refined=len(refined), calls=len(whole) + len(fine)
    )
    rest = [claim for claim in coarse if claim.segment not in refined]
    return [*rest, *_score(settings, footage, question, instruction, run, fine)]


def _score(
    settings: Grounding,
    footage: Footage,
    question: Question,
    instruction: str,
    run: Run,
    clips: Sequence[Segment],
) -> list[Claim]:
    """Each clip's score, side by side; a clip whose score cannot be read is left out."""

    def one(clip: Segment) -> Claim | None:
        rows = rows_within(footage, clip)
        look = look_at(footage, rows[sampling.uniform(len(rows), settings.scored_frames)].tolist())
        said = ask(
            run["vlm"],
            "symphony/score",
            Relevance,
            default=None,
            question=question,
            instruction=instruction,
            clip=clip,
            **shown_to(footage, look),
        )
        if said is None:
            note("clip_not_scored", start=clip.start, end=clip.end)
            return None
        return Claim(
            clip, said.score, " ".join(part for part in (said.caption, said.reason) if part)
        )

    return [claim for claim in fanout(one, clips) if claim is not None]


def reported(claims: Sequence[Claim], how: str, run: Run) -> list[str]:
    """The claims as lines, the best first; as many as leave the planner room to think."""
    if not claims:
        return [f"{how}: nothing in the film seems to bear on this."]
    lines = []
    for claim in claims:
        told = f": {claim.told}" if claim.told else ""
        lines.append(
            f"{clock(claim.segment.start)} to {clock(claim.segment.end)} (score {claim.score:g}){told}"
        )
    context = run["llm"].card.context
    room = math.inf if context is None else REPORTED * context
    kept: list[str] = []
    for line in lines:
        room -= estimate(line)
        if room < 0 and kept:
            break
        kept.append(line)
    if len(kept) < len(lines):
        note("claims_left_out", kept=len(kept), of=len(lines))
        kept.append(f"({len(lines) - len(kept)} more clips with no higher scores are left out)")
    return [f"{how} found, best first; these are claims, to be looked at:", *kept]


def cut(duration: float, seconds: float) -> list[Segment]:
    """The film in clips of equal length; a last piece shorter than half of one joins the clip before it."""
    count = max(1, math.floor(duration / seconds + 0.5))
    starts = [number * seconds for number in range(count)]
    return [Segment(start, min(start + seconds, duration)) for start in starts[:-1]] + [
        Segment(starts[-1], duration)
    ]


def named_stretches(text: str, duration: float, *, around: float = 30.0) -> list[Segment]:
    """The stretches that a question names by the clock: its ranges, else what lies ``around`` its moments."""
    ranges = [(parse_time(a), parse_time(b)) for a, b in _RANGE.findall(text)]
    if not ranges:
        moments = [parse_time(moment) for moment in _MOMENT.findall(text)]
        ranges = [(moment - around, moment + around) for moment in moments if moment < duration]
    found = [(max(0.0, min(pair)), min(duration, max(pair))) for pair in ranges]
    return [Segment(a, b) for a, b in found if b > a]


def _tell(tool: str, arguments: dict[str, Any], claims: Sequence[Claim]) -> None:
    lines = [
        f"{clock(c.segment.start)} to {clock(c.segment.end)} ({c.score:g}) {c.told}".strip()
        for c in claims
    ]
    emit(ToolCalled(name=tool, arguments=arguments, result="\n".join(lines)))
