"""The visual perception agent: a language model that looks through three tools, one at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from longtake.algorithms import allocate, sampling
from longtake.errors import check_least
from longtake.events import step
from longtake.footage.look import Look, look_at, look_closely, rows_within, together
from longtake.footage.protocol import Footage
from longtake.methods.symphony.history import PERCEPTION, Turn
from longtake.steps.ask import ask
from longtake.steps.run import Run
from longtake.steps.showing import length, shown_to
from longtake.steps.times import Written, at_least, read_stretch
from longtake.steps.tools import Tool, ToolError, tool, use_tools
from longtake.timecode import clock
from longtake.types import Question, Segment

NEAR = 0.25
"""A moment this many seconds from one that is shown adds nothing to it."""


class Seen(BaseModel):
    """What pictures show."""

    observation: str = Field(description="what bears on the request, each thing after its time")


class Found(BaseModel):
    """What came of looking."""

    findings: str = Field(
        description="what was found out, each thing after the time at which it is to be seen"
    )


class Interval(BaseModel):
    """A stretch of film."""

    model_config = ConfigDict(extra="forbid")

    start: Written
    end: Written


@dataclass(frozen=True)
class Perception:
    """Settings of the visual perception agent."""

    max_tool_calls: int = 5
    """Tools it may use before it must answer."""
    summary_frames: int = 40
    """Frames of ``global_summary`` …"""
    summary_seconds: float = 180.0
    """… which takes the whole film, or a stretch that is longer than this."""
    inspector_frames: int = 40
    """Most frames of ``frame_inspector`` …"""
    least_seconds: float = 10.0
    """… whose stretch is widened to this …"""
    most_seconds: float = 60.0
    """… and is cut to this."""
    cue_frames: int = 10
    """Frames that a cue adds …"""
    cue_seconds: float = 30.0
    """… where a stretch is longer than this."""
    segment_frames: int = 40
    """Frames that the stretches of ``multi_segment`` share, by their length."""

    def __post_init__(self) -> None:
        check_least(
            self,
            "symphony.perception",
            max_tool_calls=1,
            summary_frames=1,
            summary_seconds=1,
            inspector_frames=1,
            least_seconds=1,
            most_seconds=1,
            cue_frames=0,
            cue_seconds=0,
            segment_frames=1,
        )

    @property
    def most_frames(self) -> int:
        """The most frames of one look."""
        return max(
            self.summary_frames, self.inspector_frames + self.cue_frames, self.segment_frames
        )


def perceive(
    settings: Perception, footage: Footage, question: Question, instruct: str, run: Run
) -> Turn:
    """Tools, at most ``max_tool_calls`` of them, then what was found."""
    eyes = Eyes(settings, footage, question, instruct, run)
    with step("visual_perception", instruct=instruct):
        found = use_tools(
            run["llm"],
            "symphony/perceive",
            eyes.tools,
            Found,
            turns=settings.max_tool_calls,
            default=None,
            question=question,
            instruct=instruct,
            length=length(footage),
        )
    looked = [f"Looked at {what}." for what in eyes.looks]
    if found is None:  # what the pictures showed is known, though nobody summed it up
        return Turn(
            PERCEPTION, instruct, (*looked, *eyes.observations), looked=tuple(sorted(eyes.rows))
        )
    return Turn(PERCEPTION, instruct, (found.findings, *looked), looked=tuple(sorted(eyes.rows)))


@dataclass
class Eyes:
    """The three tools on one film, and what has been looked at with them."""

    settings: Perception
    footage: Footage
    question: Question
    instruct: str
    run: Run
    rows: set[int] = field(default_factory=set)
    looks: list[str] = field(default_factory=list)
    observations: list[str] = field(default_factory=list)

    @property
    def tools(self) -> list[Tool]:
        """As the model is told of them."""
        return [tool(self.global_summary), tool(self.frame_inspector), tool(self.multi_segment)]

    def global_summary(
        self,
        start: Annotated[Written, "HH:MM:SS; leave out for the whole film"] = 0.0,
        end: Annotated[Written | None, "HH:MM:SS; leave out for the whole film"] = None,
    ) -> str:
        """An overview of the whole film, or of a stretch of more than three minutes."""
        read = read_stretch(
            start, self.footage.duration if end is None else end, self.footage.duration
        )
        whole = read.segment.duration >= self.footage.duration - 1.0
        if not whole and read.segment.duration <= self.settings.summary_seconds:
            raise ToolError(f"{_said(read.segment)} is short; use frame_inspector for it")
        rows = rows_within(self.footage, read.segment)
        shown = look_at(
            self.footage, rows[sampling.uniform(len(rows), self.settings.summary_frames)].tolist()
        )
        return self._look([read.segment], shown, read.repaired)

    def frame_inspector(
        self,
        start: Annotated[Written, "HH:MM:SS"],
        end: Annotated[Written, "HH:MM:SS, 10 to 60 seconds later"],
        cue: Annotated[
            str,
            "what to look for, in a few words; used where the stretch is longer than 30 seconds",
        ] = "",
    ) -> str:
        """A close look at a stretch of 10 to 60 seconds."""
        own = self.settings
        read = read_stretch(start, end, self.footage.duration)
        if read.segment.duration > own.summary_seconds:
            raise ToolError(
                f"{_said(read.segment)} is too long to inspect; name at most {own.most_seconds:g} seconds at a time, "
                "the most promising first, or use global_summary"
            )
        segment, done = (
            at_least(read.segment, own.least_seconds, self.footage.duration),
            read.repaired,
        )
        if segment.duration > own.most_seconds:
            segment = Segment(segment.start, segment.start + own.most_seconds)
            done = "; ".join(
                part
                for part in (done, f"only the first {own.most_seconds:g} seconds were looked at")
                if part
            )
        shown = look_closely(self.footage, segment, own.inspector_frames)
        if segment.duration > own.cue_seconds:
            shown = together(shown, self._cued(segment, shown, cue or self.instruct))
        return self._look([segment], shown, done)

    def multi_segment(
        self, intervals: Annotated[list[Interval], "stretches to compare, 2 or more"]
    ) -> str:
        """Several stretches side by side: to compare them, or to see how one thing led to another."""
        if not intervals:
            raise ToolError("name at least one stretch")
        read = [read_stretch(one.start, one.end, self.footage.duration) for one in intervals]
        least = [at_least(one.segment, 1.0, self.footage.duration) for one in read]
        segments = sorted(dict.fromkeys(least))[: self.settings.segment_frames]
        shares = np.array([segment.duration for segment in segments])
        places = [rows_within(self.footage, segment) for segment in segments]
        total, room = self.settings.segment_frames, [len(rows) for rows in places]
        given = allocate.counts(shares / shares.sum(), total, room)
        if 0 in given:  # none is passed over: one of each, and the rest by length
            more = allocate.counts(
                shares / shares.sum(), total - len(segments), [size - 1 for size in room]
            )
            given = [1 + count for count in more]
        rows = [
            row[sampling.uniform(len(row), count)] for row, count in zip(places, given, strict=True)
        ]
        shown = look_at(self.footage, np.unique(np.concatenate(rows)).tolist())
        return self._look(
            segments, shown, "; ".join(dict.fromkeys(one.repaired for one in read if one.repaired))
        )

    def _cued(self, segment: Segment, shown: Look, cue: str) -> Look:
        """Further moments of the segment, those of the grid that are closest to the cue and not as good as shown."""
        rows = rows_within(self.footage, segment)
        times = np.array(
            [
                *(frame.time for frame in shown.frames),
                *(line.segment.start for line in shown.captions),
            ]
        )
        apart = np.abs(self.footage.times[rows][:, None] - times).min(axis=1)
        free = rows[apart > NEAR]
        closeness = self.footage.embeddings()[free] @ self.footage.encode([cue])[0]
        best = np.argsort(-closeness, kind="stable")[: self.settings.cue_frames]
        return look_at(self.footage, np.sort(free[best]).tolist())

    def _look(self, segments: Sequence[Segment], shown: Look, repaired: str) -> str:
        """What the vision-language model sees there, with a word on what was done to the times."""
        where = ", ".join(map(_said, segments))
        seen = ask(
            self.run["vlm"],
            "symphony/look",
            Seen,
            default=None,
            question=self.question,
            instruct=self.instruct,
            **shown_to(self.footage, shown),
        )
        self.rows.update(shown.rows)
        self.looks.append(where)
        told = "Nothing could be made out." if seen is None else seen.observation
        self.observations.append(f"{where}: {told}")
        note = f" ({repaired})" if repaired else ""
        return f"{where}{note}\n{told}"


def _said(segment: Segment) -> str:
    return f"{clock(segment.start)} to {clock(segment.end)}"
