"""Symphony's agents that look and listen.

The visual perception agent is a language model that sees through three tools, one at a time. The
subtitle agent reads every spoken line, in pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from longtake.agents.answer import length, shown_to
from longtake.agents.run import Run
from longtake.agents.team import fanout
from longtake.agents.tools import (
    Stretch,
    Tool,
    ToolError,
    Written,
    at_least,
    read_stretch,
    tool,
    use_tools,
)
from longtake.algorithms import sampling
from longtake.errors import check_least
from longtake.footage.look import Look, look_at, look_closely, rows_within, together
from longtake.footage.protocol import Footage
from longtake.llm.chat import estimate
from longtake.llm.structured.ask import ask
from longtake.methods.symphony.grounding import PERCEPTION, SUBTITLES, HistoryEntry
from longtake.prompts import Plain, phrase, words
from longtake.tracing.events import note, step
from longtake.types import Evidence, Line, Question, Segment

# These fields have no description, so that a text that was cut off or ends in a loop is used as far
# as it goes: a described text may be exact and is then rejected. The prompts describe them instead.


class ObservationReply(BaseModel):
    """What pictures show."""

    observation: str


class FindingsReply(BaseModel):
    """What was found with the tools."""

    findings: str


class Interval(BaseModel):
    """A stretch of the film, as a tool takes it."""

    model_config = ConfigDict(extra="forbid")

    start: Written
    end: Written


@dataclass(frozen=True)
class Perception:
    """Settings of the visual perception agent."""

    max_tool_calls: int = 5
    """Tool calls before it must answer."""
    summary_frames: int = 40
    """Frames of ``global_summary``."""
    summary_seconds: float = 180.0
    """A summary takes the whole film, or a stretch longer than this."""
    summary_ends: bool = True
    """A summary shows the last moment of its stretch; off, as released: only the first."""
    inspector_frames: int = 40
    """Most frames of ``frame_inspector``."""
    inspector_rate: float | None = None
    """Frames a second of ``frame_inspector``, on the grid (as released); unset: as many as allowed,
    also between the moments of the grid."""
    least_seconds: float = 10.0
    """A shorter stretch is widened to this."""
    most_seconds: float | None = 60.0
    """A longer stretch is cut to this; unset, as released: any length."""
    cue_frames: int = 10
    """Frames that a cue adds."""
    cue_seconds: float = 30.0
    """A cue adds frames to stretches longer than this."""
    cue_apart: float | None = 0.25
    """Frames that a cue adds are more than this many seconds from those shown; unset, as released:
    they may be among them."""
    segment_frames: int = 40
    """Frames that the stretches of ``multi_segment`` share, in proportion to their length."""
    show_question: bool = True
    """Tell the agent and its tools the team's question (ours), besides the instruction."""

    def __post_init__(self) -> None:
        lengths = dict.fromkeys(("summary_seconds", "least_seconds", "cue_seconds", "cue_apart"), 0)
        check_least(
            self, "symphony.perception", cue_frames=0, inspector_rate=0.1, most_seconds=1, **lengths
        )

    @property
    def most_frames(self) -> int:
        """The most frames of one look."""
        return max(
            self.summary_frames, self.inspector_frames + self.cue_frames, self.segment_frames
        )

    def asked(self, question: Question, instruct: str) -> dict[str, Any]:
        """What the agent and its tools are asked, as slots of their prompts."""
        shown = {"question": question} if self.show_question else {}
        return {**shown, "instruct": instruct}

    def perceive(
        self, footage: Footage, question: Question, instruct: str, run: Run
    ) -> HistoryEntry:
        """Use at most ``max_tool_calls`` tools, then report what was found."""
        tools = PerceptionTools(self, footage, question, instruct, run)
        prompt = "symphony/perceive" if self.show_question else "symphony/perceive_alone"
        with step("visual_perception", instruct=instruct):
            reply = use_tools(
                run["perceiver"],
                prompt,
                tools.tools,
                FindingsReply,
                turns=self.max_tool_calls,
                default=None,
                length=length(footage),
                **self.asked(question, instruct),
            )
        if not tools.stretches:
            # whatever it reports, no picture was seen
            if reply is not None:
                note("findings_without_a_look", findings=reply.findings)
            return HistoryEntry(PERCEPTION, instruct, (phrase("symphony", "not_looked"),))
        looked = [phrase("symphony", "looked_at", where=Plain(where)) for where in tools.stretches]
        rows = tuple(sorted(tools.rows))
        if reply is None:  # the observations stand without a summary
            return HistoryEntry(PERCEPTION, instruct, (*looked, *tools.observations), looked=rows)
        return HistoryEntry(PERCEPTION, instruct, (reply.findings, *looked), looked=rows)


@dataclass
class PerceptionTools:
    """The three tools for one film, and what was looked at with them.

    Models read the docstrings and annotations of the tools as part of the tools' form.
    """

    settings: Perception
    footage: Footage
    question: Question
    instruct: str
    run: Run
    rows: set[int] = field(default_factory=set)
    """Rows of the grid that were shown."""
    stretches: list[str] = field(default_factory=list)
    """The stretches that were looked at, in words."""
    observations: list[str] = field(default_factory=list)
    """What each look showed."""

    @property
    def tools(self) -> list[Tool]:
        """The tools as the model is offered them."""
        return [tool(self.global_summary), tool(self.frame_inspector), tool(self.multi_segment)]

    def global_summary(
        self,
        start: Annotated[Written, "HH:MM:SS; omit for the whole film"] = 0.0,
        end: Annotated[Written | None, "HH:MM:SS; omit for the whole film"] = None,
    ) -> str:
        """An overview of the whole film, or of a part longer than three minutes."""
        duration = self.footage.duration
        read = read_stretch(start, duration if end is None else end, duration)
        # a model may round the end of the film down by a second
        whole = read.segment.duration >= duration - 1.0
        if not whole and read.segment.duration <= self.settings.summary_seconds:
            raise ToolError(phrase("symphony", "too_short", clip=read.segment))
        shown = look_at(self.footage, self._overview(read.segment).tolist())
        return self._look([read.segment], shown, read.repaired)

    def _overview(self, segment: Segment) -> NDArray[np.int64]:
        """The rows that a summary of the segment shows."""
        frames, times = self.settings.summary_frames, self.footage.times
        if self.settings.summary_ends:
            rows = rows_within(self.footage, segment)
            return rows[sampling.uniform(len(rows), frames)]
        moments = np.linspace(segment.start, segment.end, frames, endpoint=False)
        nearest = np.rint(np.interp(moments, times, np.arange(len(times))))
        return np.unique(nearest.astype(np.int64))

    def frame_inspector(
        self,
        start: Annotated[Written, "HH:MM:SS"],
        end: Annotated[Written, "HH:MM:SS, 10 to 60 seconds later"],
        cue: Annotated[
            str, "what to look for, in a few words; used if the part is longer than 30 seconds"
        ] = "",
    ) -> str:
        """A close look at 10 to 60 seconds."""
        read = read_stretch(start, end, self.footage.duration)
        segment, repairs = self._inspected(read)
        shown = self._closely(segment)
        if segment.duration > self.settings.cue_seconds:
            shown = together(shown, self._cued(segment, shown, cue or self.instruct))
        return self._look([segment], shown, "; ".join(repairs))

    def _inspected(self, read: Stretch) -> tuple[Segment, list[str]]:
        """The segment that is inspected for these times, and how it was repaired."""
        settings, most = self.settings, self.settings.most_seconds
        repairs = [read.repaired] if read.repaired else []
        segment = at_least(read.segment, settings.least_seconds, self.footage.duration)
        if most is None or segment.duration <= most:
            return segment, repairs
        # cutting a long stretch to its first minute would hide that the rest was not seen
        if segment.duration > settings.summary_seconds:
            problem = phrase("symphony", "too_long", clip=segment, seconds=Plain(f"{most:g}"))
            raise ToolError(problem)
        repairs.append(phrase("symphony", "only_first", seconds=Plain(f"{most:g}")))
        return Segment(segment.start, segment.start + most), repairs

    def _closely(self, segment: Segment) -> Look:
        """The frames of a close look, without those of a cue."""
        settings = self.settings
        if settings.inspector_rate is None:
            return look_closely(self.footage, segment, settings.inspector_frames)
        rows = self._rows(segment)
        count = round(settings.inspector_rate * segment.duration)
        count = max(1, min(settings.inspector_frames, count))
        evenly = np.linspace(rows[0], rows[-1], min(count, len(rows))).astype(np.int64)
        return look_at(self.footage, evenly.tolist())

    def _rows(self, segment: Segment) -> NDArray[np.int64]:
        """The rows of a segment; with ``inspector_rate``, its last moment is one of them."""
        if self.settings.inspector_rate is None:
            return rows_within(self.footage, segment)
        times = self.footage.times
        inside = np.flatnonzero((times >= segment.start) & (times <= segment.end))
        return inside if len(inside) else rows_within(self.footage, segment)

    def multi_segment(
        self, intervals: Annotated[list[Interval], "the parts to compare, 2 or more"]
    ) -> str:
        """Several parts side by side: to compare them, or to see how one thing led to another."""
        if not intervals:
            raise ToolError(phrase("symphony", "no_interval"))
        read = [read_stretch(one.start, one.end, self.footage.duration) for one in intervals]
        widened = [at_least(one.segment, 1.0, self.footage.duration) for one in read]
        # more segments than frames could not all be shown
        segments = sorted(dict.fromkeys(widened))[: self.settings.segment_frames]
        places = [rows_within(self.footage, segment) for segment in segments]
        counts = self._shared_frames(segments, [len(rows) for rows in places])
        chosen = [
            rows[sampling.uniform(len(rows), count)]
            for rows, count in zip(places, counts, strict=True)
        ]
        shown = look_at(self.footage, np.unique(np.concatenate(chosen)).tolist())
        repairs = dict.fromkeys(one.repaired for one in read if one.repaired)
        return self._look(segments, shown, "; ".join(repairs))

    def _shared_frames(self, segments: Sequence[Segment], room: Sequence[int]) -> list[int]:
        """Frames for each segment in proportion to its length, at least one each."""
        durations = np.array([segment.duration for segment in segments])
        shares, total = durations / durations.sum(), self.settings.segment_frames
        counts = sampling.counts(shares, total, room)
        if 0 not in counts:
            return counts
        # a short segment would not be seen at all: one frame each, the rest by length
        more = sampling.counts(shares, total - len(segments), [size - 1 for size in room])
        return [1 + count for count in more]

    def _cued(self, segment: Segment, shown: Look, cue: str) -> Look:
        """The moments of the segment closest to the cue, apart from those that are shown."""
        # only moments of the grid have embeddings to compare with the cue
        free = self._rows(segment)
        if self.settings.cue_apart is not None:
            times = [frame.time for frame in shown.frames]
            times += [line.segment.start for line in shown.captions]
            apart = np.abs(self.footage.times[free][:, None] - np.array(times)).min(axis=1)
            free = free[apart > self.settings.cue_apart]
        closeness = self.footage.embeddings()[free] @ self.footage.encode([cue])[0]
        best = np.argsort(-closeness, kind="stable")[: self.settings.cue_frames]
        return look_at(self.footage, np.sort(free[best]).tolist())

    def _look(self, segments: Sequence[Segment], shown: Look, repaired: str) -> str:
        """What the vision-language model sees there, and how the times were repaired."""
        where = ", ".join(words(segment) for segment in segments)
        settings = self.settings
        prompt = "symphony/look" if settings.show_question else "symphony/look_alone"
        reply = ask(
            self.run["vlm"],
            prompt,
            ObservationReply,
            default=None,
            **settings.asked(self.question, self.instruct),
            **shown_to(self.footage, shown),
        )
        self.rows.update(shown.rows)
        self.stretches.append(where)
        observation = phrase("symphony", "nothing_made_out") if reply is None else reply.observation
        self.observations.append(f"{where}: {observation}")
        repairs = f" ({repaired})" if repaired else ""
        return f"{where}{repairs}\n{observation}"


NEAR_LINE = 2.0
"""Seconds by which a quoted line's time may be off."""


class QuotedLine(BaseModel):
    """A line as the model quotes it."""

    start: Written
    end: Written
    text: str


# Only the lines are required, so that those before the end of a reply that was cut off are kept.


class SubtitlesReply(BaseModel):
    """What the lines say about the question."""

    lines: list[QuotedLine]
    entities: list[str] = Field(default=[], description="who and what is mentioned")
    sentiment: str = ""
    topic: str = ""


def listen(
    footage: Footage, question: Question, instruct: str, run: Run, *, most_tokens: int
) -> HistoryEntry:
    """Read all lines of the film, in as many pieces as the context requires, and report on them."""
    with step("subtitles", instruct=instruct):
        lines = footage.speech()
        if not lines:
            return HistoryEntry(SUBTITLES, instruct, (phrase("symphony", "no_subtitles"),))
        context = run["llm"].card.context
        # half of the context is left for the question, the form and the reply
        room = most_tokens if context is None else min(most_tokens, context // 2)

        def read(piece: Sequence[Line]) -> SubtitlesReply | None:
            return ask(
                run["llm"],
                "symphony/subtitles",
                SubtitlesReply,
                default=None,
                question=question,
                instruct=instruct,
                subtitles=list(piece),
            )

        # an unreadable reply loses its piece only
        replies = [reply for reply in fanout(read, pieces(lines, room)) if reply is not None]
        return _merged(footage, lines, instruct, replies)


def pieces(lines: Sequence[Line], most_tokens: int) -> list[list[Line]]:
    """The lines in pieces of at most ``most_tokens``; a longer line is a piece on its own."""
    cut: list[list[Line]] = [[]]
    used = 0
    for line in lines:
        size = estimate(words(line)) + 1
        if cut[-1] and used + size > most_tokens:
            cut.append([])
            used = 0
        cut[-1].append(line)
        used += size
    return cut


def _merged(
    footage: Footage, lines: Sequence[Line], instruct: str, replies: Sequence[SubtitlesReply]
) -> HistoryEntry:
    """The replies as one report. Only lines that the film contains are passed on."""
    quoted_lines: dict[Line, None] = {}
    for quoted in (line for reply in replies for line in reply.lines):
        real = _real(footage, lines, quoted)
        if real is None:
            note("line_not_in_film", text=quoted.text)
        else:
            quoted_lines[real] = None
    kept = sorted(quoted_lines, key=lambda line: line.segment)
    report = [words(line) for line in kept] or [phrase("symphony", "no_line")]
    names = ", ".join(_each_once([name for reply in replies for name in reply.entities]))
    tone = "; ".join(_each_once([reply.sentiment for reply in replies]))
    if names and tone:
        report.append(phrase("symphony", "mentioned_how", names=names, tone=tone))
    elif names:
        report.append(phrase("symphony", "mentioned", names=names))
    for topic in _each_once([reply.topic for reply in replies]):
        report.append(phrase("symphony", "topic", topic=topic))
    quotes = tuple(Evidence(line.segment, "speech", line.text) for line in kept)
    return HistoryEntry(SUBTITLES, instruct, tuple(report), quoted=quotes)


def _each_once(texts: Sequence[str]) -> list[str]:
    return [text for text in dict.fromkeys(texts) if text]


def _real(footage: Footage, lines: Sequence[Line], quoted: QuotedLine) -> Line | None:
    """The line of the film that a model quotes: the one near its time that shares most words."""
    try:
        meant = read_stretch(quoted.start, quoted.end, footage.duration).segment
    except ToolError:
        return None
    # models paraphrase and misdate lines, so words and times only have to be close
    quoted_words = set(quoted.text.lower().split())
    best, best_rank = None, (0, -float("inf"))
    for line in lines:
        near = (
            line.segment.start <= meant.end + NEAR_LINE
            and line.segment.end >= meant.start - NEAR_LINE
        )
        shared = len(quoted_words & set(line.text.lower().split()))
        rank = shared, -abs(line.segment.start - meant.start)
        if near and shared and rank > best_rank:
            best, best_rank = line, rank
    return best
