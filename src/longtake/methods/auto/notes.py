"""Notes that stages left: one line for each thing that was told, the relevant ones chosen."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from longtake.footage.protocol import Footage
from longtake.methods.auto.searching import in_turns
from longtake.timecode import parse_time
from longtake.types import Line, Question, Segment

APART = 8.0
"""Seconds within which the same words are one note."""
_CLOCK = re.compile(r"\[?\b(\d{1,2}:[0-5]\d:[0-5]\d)\b\]?:?\s*")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z\[])")


def split(line: Line) -> list[Line]:
    """A note in single statements, each at the last time that was named before it."""
    lines = []
    moment = line.segment
    for sentence in _SENTENCE.split(line.text):
        begin = 0
        for named in _CLOCK.finditer(sentence):
            lines += _told(moment, sentence[begin : named.start()])
            time = parse_time(named.group(1))
            moment, begin = Segment(time, time), named.end()
        lines += _told(moment, sentence[begin:])
    return lines


def _told(moment: Segment, text: str) -> list[Line]:
    words = text.strip(" -–,;")
    return [Line(moment, words)] if any(letter.isalpha() for letter in words) else []


def merged(lines: Iterable[Line]) -> list[Line]:
    """Lines in time order, without those that repeat what was noted shortly before."""
    kept: list[Line] = []
    latest: dict[str, float] = {}
    for line in sorted(lines, key=lambda line: line.segment):
        before = latest.get(line.text)
        latest[line.text] = line.segment.start
        if before is None or line.segment.start - before > APART:
            kept.append(line)
    return kept


def relevant(footage: Footage, question: Question, lines: Sequence[Line], most: int) -> list[Line]:
    """The lines closest in meaning to the question and to each of its options, in time order.

    Question and options take turns, so that no option is judged without its evidence.
    """
    if len(lines) <= most:
        return list(lines)
    queries = [question.text, *(f"{question.text} {option}" for option in question.options)]
    rows = footage.meanings([*queries, *(line.text for line in lines)])
    closeness = rows[: len(queries)] @ rows[len(queries) :].T
    return [lines[index] for index in sorted(in_turns(closeness, most))]
