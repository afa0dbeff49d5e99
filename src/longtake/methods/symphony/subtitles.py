"""The subtitle agent: the relevant lines, who and what is mentioned and how, and the topic."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, Field

from longtake.events import note, step
from longtake.footage.protocol import Footage
from longtake.methods.symphony.history import SUBTITLES, Entry
from longtake.models.tokens import estimate
from longtake.prompts import phrase, words
from longtake.steps.ask import ask
from longtake.steps.fanout import fanout
from longtake.steps.run import Run
from longtake.steps.times import Written, read_stretch
from longtake.steps.tools import ToolError
from longtake.types import Evidence, Line, Question

NEAR = 2.0
"""Seconds by which a quoted line's time may be off."""


class QuotedLine(BaseModel):
    """A line as the model quotes it."""

    start: Written
    end: Written
    text: str


# Only the lines are required: those that were quoted whole are kept, even if the reply was cut off
# after them. The texts have no description, so that they are read as far as they go.


class SubtitlesReply(BaseModel):
    """What the lines say about the question."""

    lines: list[QuotedLine]
    entities: list[str] = Field(default=[], description="who and what is mentioned")
    sentiment: str = ""
    topic: str = ""


def listen(
    footage: Footage, question: Question, instruct: str, run: Run, *, most_tokens: int
) -> Entry:
    """Read all lines of the film, in as many pieces as the context requires, and report on them."""
    with step("subtitles", instruct=instruct):
        lines = footage.speech()
        if not lines:
            return Entry(SUBTITLES, instruct, (phrase("symphony", "no_subtitles"),))
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
) -> Entry:
    """The replies as one report. Only lines that the film contains are passed on."""
    found: dict[Line, None] = {}
    for quoted in (line for reply in replies for line in reply.lines):
        real = _real(footage, lines, quoted)
        if real is None:
            note("line_not_in_film", text=quoted.text)
        else:
            found[real] = None
    kept = sorted(found, key=lambda line: line.segment)
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
    return Entry(SUBTITLES, instruct, tuple(report), quoted=quotes)


def _each_once(texts: Sequence[str]) -> list[str]:
    return [text for text in dict.fromkeys(texts) if text]


def _real(footage: Footage, lines: Sequence[Line], quoted: QuotedLine) -> Line | None:
    """The film's own line that a model quotes: the one with most of its words near its time."""
    try:
        meant = read_stretch(quoted.start, quoted.end, footage.duration).segment
    except ToolError:
        return None
    # models paraphrase and misdate lines, so words and times only have to be close
    said = set(quoted.text.lower().split())
    best, best_rank = None, (0, -float("inf"))
    for line in lines:
        near = line.segment.start <= meant.end + NEAR and line.segment.end >= meant.start - NEAR
        shared = len(said & set(line.text.lower().split()))
        rank = shared, -abs(line.segment.start - meant.start)
        if near and shared and rank > best_rank:
            best, best_rank = line, rank
    return best
