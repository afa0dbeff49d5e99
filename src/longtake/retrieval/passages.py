"""Passages: what is said, shown and described, in pieces that can be cited."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Protocol, TypeVar

import numpy as np

from longtake._util.timecode import clock
from longtake.algorithms import lexical
from longtake.algorithms.passages import squeeze
from longtake.algorithms.speakers import speaker
from longtake.footage.look import likeness
from longtake.footage.protocol import Footage
from longtake.types import Evidence, Line, Segment

SHORT_SCREEN = 5
"""Screens of at most so many lines are shown whole; of longer ones, only new lines are."""


@dataclass(frozen=True)
class Passage:
    """Consecutive lines from one source: ``speech``, ``onscreen`` or ``caption``."""

    source: str
    lines: tuple[Line, ...]
    relevance: float = 0.0
    """Its relevance to the question."""

    @property
    def segment(self) -> Segment:
        """From the first line to the last."""
        return Segment(self.lines[0].segment.start, max(line.segment.end for line in self.lines))

    @property
    def text(self) -> str:
        """The lines joined; those of a screen by slashes, since they form no sentence."""
        return (" / " if self.source == "onscreen" else " ").join(line.text for line in self.lines)


def lines_of(passages: Sequence[Passage]) -> list[Line]:
    """The lines of passages in the order of time."""
    return sorted((line for each in passages for line in each.lines), key=lambda line: line.segment)


def spoken_at(line: Line) -> Evidence:
    """A spoken line as evidence."""
    return Evidence(line.segment, "speech", line.text)


def in_parts(passages: Sequence[Passage], max_words: int) -> list[list[Passage]]:
    """Passages in groups of at most ``max_words``; a longer passage is a group of its own."""
    parts: list[list[Passage]] = []
    words = max_words
    for passage in passages:
        length = len(passage.text.split())
        if words + length > max_words:
            parts.append([])
            words = 0
        parts[-1].append(passage)
        words += length
    return parts


def numbered(passages: Sequence[Passage]) -> list[str]:
    """Passages as in a prompt: ``2. [00:01:05] onscreen: ALL RIGHTS RESERVED.``"""
    return [
        f"{number}. [{clock(each.segment.start)}] {each.source}: {each.text}"
        for number, each in enumerate(passages, start=1)
    ]


def timed(passage: Passage) -> str:
    """A passage as in the prompt for a short answer: ``1:05 screen: GO TO ROOM 4``."""
    minutes, seconds = divmod(int(passage.segment.start), 60)
    source = "screen" if passage.source == "onscreen" else passage.source
    return f"{minutes}:{seconds:02} {source}: {passage.text}"


def cite(passage: Passage, share: float) -> Evidence:
    """A passage as evidence."""
    return Evidence(passage.segment, passage.source, passage.text, round(share, 4))


def read(footage: Footage, stretch: Segment | None) -> list[Passage]:
    """Everything said, shown and described in a stretch; indexed now if it was not before."""
    if "captions" in footage.has:
        times = [t for t in footage.times.tolist() if stretch is None or t in stretch]
        captions = zip(times, footage.captions(times), strict=True)
        lines = [Line(Segment(time, time + 1), text) for time, text in captions]
        return [Passage("caption", (line,)) for line in lines]
    spoken = [Passage("speech", (line,)) for line in footage.speech(stretch)]
    shown = screens(footage.onscreen(stretch))
    return spoken + [passage for passage in shown if not is_misread(passage)]


def screens(lines: Sequence[Line]) -> list[Passage]:
    """One passage for each group of lines that are shown together.

    Lines of a screen explain each other: a name stands below "Narrator". A screen that shows the
    same as the previous one extends it.
    """
    # single letters are mostly misread shapes
    legible = [line for line in lines if len(squeeze(line.text)) >= 2]
    legible.sort(key=lambda line: line.segment.start)
    shown: list[Passage] = []
    before: frozenset[str] = frozenset()
    for _, group in groupby(legible, key=lambda line: line.segment.start):
        screen = list(group)
        known, before = before, frozenset(squeeze(line.text) for line in screen)
        new = [line for line in screen if squeeze(line.text) not in known]
        if shown and not new:
            shown[-1] = _prolonged(shown[-1], screen)
        else:
            kept = screen if len(screen) <= SHORT_SCREEN else new
            shown.append(Passage("onscreen", tuple(kept)))
    return shown


def is_misread(passage: Passage) -> bool:
    """Whether a long screen consists of words that are not English."""
    return len(passage.lines) > SHORT_SCREEN and lexical.is_misread(passage.text)


def _prolonged(passage: Passage, screen: Sequence[Line]) -> Passage:
    """A screen whose lines last until the end of the next one, if that still shows them."""
    until = {squeeze(line.text): line.segment.end for line in screen}
    lines = []
    for line in passage.lines:
        end = until.get(squeeze(line.text), line.segment.end)
        lines.append(Line(Segment(line.segment.start, max(end, line.segment.end)), line.text))
    return Passage(passage.source, tuple(lines))


def excerpt(footage: Footage, question: str, passage: Passage) -> Passage:
    """The part of a long screen around the line that is closest to the question.

    A page of small print would fill the prompt and distract a small model.
    """
    if passage.source != "onscreen" or len(passage.lines) <= SHORT_SCREEN:
        return passage
    closest = int(np.argmax(likeness(footage, question, [line.text for line in passage.lines])))
    first = min(max(0, closest - SHORT_SCREEN // 2), len(passage.lines) - SHORT_SCREEN)
    return replace(passage, lines=passage.lines[first : first + SHORT_SCREEN])


# an end is followed by white space and a capital, digit or quote: not so in "2.5" and "e.g. a"
_BREAK = re.compile(r"(?<=[.!?])[\"”']?\s+(?=[\"“'(]?[A-Z0-9])")


# "Dr. Smith" and "J. Smith" are no ends
_TITLE = re.compile(r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|St|No|vs)|\b[A-Z])\.$")


def sentences(text: str) -> list[str]:
    """The sentences of a text; abbreviations and decimals do not end one."""
    parts: list[str] = []
    for part in _BREAK.split(text.strip()):
        if parts and _TITLE.search(parts[-1]):
            parts[-1] = f"{parts[-1]} {part}"
        elif part:
            parts.append(part)
    return parts


def utterances(lines: Sequence[Line]) -> list[Line]:
    """Spoken lines divided into sentences, each with its speaker; a line may last for minutes."""
    parts = []
    for line in lines:
        name, text = speaker(line.text)
        spoken = sentences(text)
        start, letters = line.segment.start, max(1, sum(map(len, spoken)))
        for sentence in spoken:
            # durations are proportional to letters
            end = min(line.segment.end, start + line.segment.duration * len(sentence) / letters)
            labelled = f"{name}: {sentence}" if name else sentence
            parts.append(Line(Segment(start, max(start, end)), labelled))
            start = max(start, end)
    return parts


def is_aside(line: Line) -> bool:
    """Whether a line is too short to be meaningful: "Yeah, okay." """
    return len([word for word in speaker(line.text)[1].split() if word[0].isalnum()]) < 5


class _Text(Protocol):
    @property
    def text(self) -> str: ...


T = TypeVar("T", bound=_Text)


def fitting(lines: Sequence[T], max_words: int) -> list[T]:
    """The first lines that fit into a number of words."""
    chosen = []
    for line in lines:
        words = len(line.text.split())
        if words <= max_words:
            chosen.append(line)
            max_words -= words
    return chosen
