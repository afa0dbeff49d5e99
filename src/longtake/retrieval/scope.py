"""Finds the part of a film that a question names: "at the end", "in the first half", "after 12:30".

A4VL's appendix C reports such questions as failures, because the similarity of pictures and words
ignores position. Only statements about the *video* count: "at the end" and "at the end of the
video" refer to the film, but "at the end of the race" refers to a race.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from longtake._util.timecode import SHORT_CLOCK, parse_time
from longtake.algorithms.lexical import NUMBERS
from longtake.types import Segment

END_SHARE = 0.25
"""Share of a film that "the end" and "the beginning" each cover."""

_FILM = r"(?:video|film|movie|clip|footage|recording|episode|vlog|show|trailer|documentary)"
# "of the video", or no "of" at all
_OF_FILM = rf"(?:\s+of\s+(?:the|this)\s+(?:\w+\s+)?{_FILM}\b|(?!\s+of\b))"
_COUNT = rf"(?P<count>\d+(?:\.\d+)?|{'|'.join(NUMBERS)}|a\s+few|few)"
_UNIT = r"(?P<unit>second|sec|minute|min|hour)s?"
_PAST = r"\b(?:(?P<past>after|before)\s+(?:the\s+)?)?"
_PARTS = {"half": 1 / 2, "third": 1 / 3, "quarter": 1 / 4}
_SECONDS = {"second": 1.0, "sec": 1.0, "minute": 60.0, "min": 60.0, "hour": 3600.0}
_LATE = ("last", "final", "closing", "latter", "second")

Reader = Callable[[re.Match[str], float], tuple[float, float]]


def scope(text: str, duration: float) -> Segment | None:
    """Return the part of the film that a question names; ``None`` if none, or outside the film.

    Several expressions are intersected, as in "after minute 5 in the first half".
    """
    start, end = 0.0, duration
    for pattern, reader in _READERS:
        for match in re.finditer(pattern, text, re.IGNORECASE):
            begin, stop = reader(match, duration)
            start, end = max(start, begin), min(end, stop)
    empty = end - start <= 0
    whole = (start, end) == (0.0, duration)
    return None if empty or whole else Segment(start, end)


def clipped(blocks: list[Segment], within: Segment) -> list[Segment]:
    """Cut blocks to a segment and drop those outside it."""
    parts = [(max(block.start, within.start), min(block.end, within.end)) for block in blocks]
    return [Segment(start, end) for start, end in parts if end > start]


def _number(text: str) -> float:
    text = text.lower()
    if text in NUMBERS:
        return float(NUMBERS[text])
    return 3.0 if text.endswith("few") else float(text)  # "few" or "a few"


def _part(match: re.Match[str], duration: float) -> tuple[float, float]:
    length = duration * _PARTS[match["part"].lower()]
    # "second" is the last of two, and the middle one of three
    if match["which"].lower() == "second" and match["part"].lower() != "half":
        return _beyond(match, length, 2 * length, duration)
    return _outermost(match, duration, length)


def _outermost(
    match: re.Match[str], duration: float, length: float | None = None
) -> tuple[float, float]:
    if length is None:
        length = _number(match["count"]) * _SECONDS[match["unit"].lower()]
    if match["which"].lower() in _LATE:
        return _beyond(match, duration - length, duration, duration)
    return _beyond(match, 0.0, length, duration)


def _beyond(match: re.Match[str], start: float, end: float, duration: float) -> tuple[float, float]:
    """Return the part itself, or what lies beyond: "after the first half", "before the last …"."""
    if match["past"] is None:
        return start, end
    return (end, duration) if match["past"].lower() == "after" else (0.0, start)


def _since(match: re.Match[str], duration: float) -> tuple[float, float]:
    moment = _moment(match)
    return (0.0, moment) if match[1].lower() in ("before", "until") else (moment, duration)


def _at(match: re.Match[str], _: float) -> tuple[float, float]:
    moment = _moment(match)
    # a clock time names a moment, "minute 7" a whole minute; allow half a minute on either side
    length = 0.0 if match["clock"] else 60.0
    return max(0.0, moment - 30.0), moment + length + 30.0


def _between(match: re.Match[str], _: float) -> tuple[float, float]:
    if match["from"]:
        return parse_time(match["from"]), parse_time(match["to"])
    return _number(match["first"]) * 60, _number(match["last"]) * 60


def _moment(match: re.Match[str]) -> float:
    if match["clock"]:
        return parse_time(match["clock"])
    return _number(match["minute"]) * 60


_WHEN = (
    rf"(?:(?:the\s+)?minute\s+(?P<minute>\d+)|(?:the\s+)?(?P<clock>{SHORT_CLOCK})(?:\s+mark)?)\b"
)
_NEAR = r"\b(?:at|towards?|near|nearing|in)\s+the\s+(?:very\s+)?"
_UP_TO = r"\s+(?:to|and|until)\s+"

_END = rf"{_NEAR}end{_OF_FILM}(?![\w-])"
_BEGINNING = rf"{_NEAR}(?:beginning|start){_OF_FILM}(?![\w-])"
# "the man in the middle" is a place in the picture, unless the question ends there
_MIDDLE = (
    rf"\b(?:(?:in|at|towards?|near)\s+the\s+middle|halfway)"
    rf"(?:\s+(?:of|through)\s+(?:the|this)\s+(?:\w+\s+)?{_FILM}\b|(?:\s+through)?\W*$)"
)
# "the first half hour" is a duration, not a half
_PART = (
    rf"{_PAST}(?P<which>first|second|last|final|latter)\s+(?P<part>half|third|quarter)\b"
    rf"(?!\s+(?:an\s+)?hour){_OF_FILM}"
)
_OUTER = rf"{_PAST}(?P<which>first|opening|last|final|closing)\s+{_COUNT}\s+{_UNIT}\b{_OF_FILM}"
# "from 10:00 to 12:00" is left to _BETWEEN
_SINCE = rf"\b(after|from|since|before|until)\s+{_WHEN}(?!\s+(?:to|and|until)\b)"
_AT = rf"\b(at|around|during|in)\s+{_WHEN}"
_BETWEEN = (
    rf"\b(?:between|from)\s+(?:minutes?\s+(?P<first>\d+){_UP_TO}(?:minute\s+)?(?P<last>\d+)"
    rf"|(?P<from>{SHORT_CLOCK}){_UP_TO}(?P<to>{SHORT_CLOCK}))\b"
)

_READERS: list[tuple[str, Reader]] = [
    (_END, lambda _, duration: (duration * (1 - END_SHARE), duration)),
    (_BEGINNING, lambda _, duration: (0.0, duration * END_SHARE)),
    (_MIDDLE, lambda _, duration: (duration / 3, duration * 2 / 3)),
    (_PART, _part),
    (_OUTER, _outermost),
    (_SINCE, _since),
    (_AT, _at),
    (_BETWEEN, _between),
]
