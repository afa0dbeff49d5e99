"""``vlm_score``: a vision-language model grades every clip of the film from 1 to 4."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from longtake.algorithms import sampling
from longtake.events import ScoresSet, emit, note
from longtake.footage.look import look_at, rows_within
from longtake.footage.protocol import Footage
from longtake.methods.symphony.history import Claim
from longtake.steps.ask import ask
from longtake.steps.fanout import fanout
from longtake.steps.run import Run
from longtake.steps.showing import shown_to
from longtake.types import Question, Segment

if TYPE_CHECKING:
    from longtake.methods.symphony.grounding import Grounding


class ScoreReply(BaseModel):
    """How relevant a clip is to the question."""

    caption: str = Field(description="relevant people, objects and actions, in order")
    score: int = Field(ge=1, le=4)
    reason: str = Field("", description="for a score of 2 or higher: why")


@dataclass(frozen=True)
class Scoring:
    """Scores the clips of one film by one instruction."""

    settings: Grounding
    footage: Footage
    question: Question
    instruction: str
    run: Run

    def claims(self) -> list[Claim]:
        """Every clip with a score of at least ``least_score``, best first; ties go by time."""
        clips = cut(self.footage.duration, self.settings.scored_seconds)
        if self.settings.scoring == "full" or len(clips) <= self.settings.score_calls:
            claims = self.score(clips)
        else:
            claims = self.coarse_to_fine(clips)
        # the trace shows every score, also those that are not returned
        values = {claim.segment: claim.score for claim in claims}
        segments = tuple(sorted(values))
        emit(
            ScoresSet(
                label=f"vlm_score: {self.instruction}",
                segments=segments,
                values=tuple(values[segment] for segment in segments),
            )
        )
        kept = [claim for claim in claims if claim.score >= self.settings.least_score]
        return sorted(kept, key=_best_first)

    def coarse_to_fine(self, clips: Sequence[Segment]) -> list[Claim]:
        """Score long stretches first, then the clips of the best ones while calls are left.

        A stretch whose clips were scored is replaced by them.
        """
        limit = self.settings.score_calls
        # coarse stretches take at most half of the calls; the rest is for a closer look
        size = max(self.settings.coarse_clips, math.ceil(len(clips) / (limit // 2)))
        groups = [list(clips[at : at + size]) for at in range(0, len(clips), size)]
        stretches = {Segment(group[0].start, group[-1].end): group for group in groups}
        coarse = self.score(list(stretches))
        left = limit - len(stretches)
        fine: list[Segment] = []
        refined: set[Segment] = set()
        for claim in sorted(coarse, key=_best_first):
            group = stretches[claim.segment]
            if len(group) <= left:
                left -= len(group)
                fine += group
                refined.add(claim.segment)
        note(
            "scored_coarsely",
            stretches=len(stretches),
            refined=len(refined),
            calls=len(stretches) + len(fine),
        )
        rest = [claim for claim in coarse if claim.segment not in refined]
        return [*rest, *self.score(fine)]

    def score(self, clips: Sequence[Segment]) -> list[Claim]:
        """Score clips in parallel; a clip whose score is unreadable is left out."""
        return [claim for claim in fanout(self.score_clip, clips) if claim is not None]

    def score_clip(self, clip: Segment) -> Claim | None:
        """Show a clip to the model and read its score."""
        rows = rows_within(self.footage, clip)
        chosen = rows[sampling.uniform(len(rows), self.settings.scored_frames)]
        reply = ask(
            self.run["vlm"],
            "symphony/score",
            ScoreReply,
            default=None,
            question=self.question,
            instruction=self.instruction,
            clip=clip,
            **shown_to(self.footage, look_at(self.footage, chosen.tolist())),
        )
        if reply is None:
            note("clip_not_scored", start=clip.start, end=clip.end)
            return None
        told = [text for text in (reply.caption, reply.reason) if text]
        return Claim(clip, reply.score, " ".join(told))


def cut(duration: float, seconds: float) -> list[Segment]:
    """Cut the film into clips of equal length; a remainder under half a clip joins the last one."""
    count = max(1, math.floor(duration / seconds + 0.5))
    starts = [number * seconds for number in range(count)]
    ends = [min(start + seconds, duration) for start in starts[:-1]]
    return [Segment(start, end) for start, end in zip(starts, [*ends, duration], strict=True)]


def _best_first(claim: Claim) -> tuple[float, Segment]:
    return -claim.score, claim.segment
