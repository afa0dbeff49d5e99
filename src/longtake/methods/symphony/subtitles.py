"""The subtitle agent: the spoken lines that bear on the question, who is spoken of and how, and what it is about."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, Field

from longtake.events import note, step
from longtake.footage.protocol import Footage
from longtake.methods.symphony.history import SUBTITLES, Turn
from longtake.models.tokens import estimate
from longtake.prompts import words
from longtake.steps.ask import ask
from longtake.steps.fanout import fanout
from longtake.steps.run import Run
from longtake.steps.times import Written, read_stretch
from longtake.steps.tools import ToolError
from longtake.timecode import clock
from longtake.types import Evidence, Line, Question

NEAR = 2.0
"""Seconds by which a model may miss the line it means."""


class Quoted(BaseModel):
    """A line as the model gives it."""

    start: Written
    end: Written
    text: str


class Heard(BaseModel):
    """What the lines say about the question."""

    lines: list[Quoted]
    entities: list[str] = Field(description="who and what is spoken of")
    sentiment: str = Field("", description="how they are spoken of")
    topic: str = Field("", description="one sentence: what the lines are about")


def listen(
    footage: Footage, question: Question, instruct: str, run: Run, *, most_tokens: int
) -> Turn:
    """All lines of the film, in as many pieces as the model's context needs, and what was made of them."""
    with step("subtitles", instruct=instruct):
        lines = footage.speech()
        if not lines:
            return Turn(
                SUBTITLES, instruct, ("There are no subtitles, and no speech was recognised.",)
            )
        context = run["llm"].card.context
        room = most_tokens if context is None else min(most_tokens, context // 2)

        def read(piece: Sequence[Line]) -> Heard | None:
            return ask(
                run["llm"],
                "symphony/subtitles",
                Heard,
                default=None,
                question=question,
                instruct=instruct,
                subtitles=list(piece),
            )

        heard = [one for one in fanout(read, pieces(lines, room)) if one is not None]
        return _merged(footage, lines, instruct, heard)


def pieces(lines: Sequence[Line], most_tokens: int) -> list[list[Line]]:
    """The lines in order, cut where a piece would have more than ``most_tokens``; a longer line is a piece alone."""
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


def _merged(footage: Footage, lines: Sequence[Line], instruct: str, heard: Sequence[Heard]) -> Turn:
    """The pieces as one report. Only lines that the film has are passed on: what a model adds is dropped."""
    found: dict[Line, None] = {}
    for quoted in (line for one in heard for line in one.lines):
        real = _real(footage, lines, quoted)
        if real is None:
            note("line_not_in_film", text=quoted.text)
        else:
            found[real] = None
    kept = sorted(found, key=lambda line: line.segment)
    report = [f"[{clock(line.segment.start)}] {line.text}" for line in kept] or [
        "No line bears on this."
    ]
    entities = list(dict.fromkeys(name for one in heard for name in one.entities))
    if entities:
        moods = "; ".join(dict.fromkeys(one.sentiment for one in heard if one.sentiment))
        report.append(f"Spoken of: {', '.join(entities)}" + (f" ({moods})" if moods else ""))
    report += [
        f"About: {topic}" for topic in dict.fromkeys(one.topic for one in heard if one.topic)
    ]
    quotes = tuple(Evidence(line.segment, "speech", line.text) for line in kept)
    return Turn(SUBTITLES, instruct, tuple(report), quoted=quotes)


def _real(footage: Footage, lines: Sequence[Line], quoted: Quoted) -> Line | None:
    """The film's own line that a model quotes: the one with most of its words at about its time."""
    try:
        meant = read_stretch(quoted.start, quoted.end, footage.duration).segment
    except ToolError:
        return None
    near = [
        line
        for line in lines
        if line.segment.start <= meant.end + NEAR and line.segment.end >= meant.start - NEAR
    ]
    said = set(quoted.text.lower().split())
    shared = [
        (len(said & set(line.text.lower().split())), -abs(line.segment.start - meant.start))
        for line in near
    ]
    best = max(range(len(near)), key=lambda number: shared[number], default=None)
    return None if best is None or shared[best][0] == 0 else near[best]
