"""Times as models write them: repaired where it is plain what is meant, refused with words to the model otherwise."""

from __future__ import annotations

from dataclasses import dataclass

from longtake.errors import ConfigError
from longtake.steps.tools import ToolError
from longtake.timecode import clock, parse_time
from longtake.types import Segment

Written = str | float
"""A time in a model's reply: a clock, or seconds."""


@dataclass(frozen=True)
class Stretch:
    """A stretch of film, and what was done to the times that were written for it."""

    segment: Segment
    repaired: str = ""


def read_stretch(start: Written, end: Written, duration: float) -> Stretch:
    """The stretch that two times name.

    ::

        "00:03:21", "3:21", "201 s", 201      the same moment
        00:05:00 to 00:04:00                  reversed: turned round
        03:21:00 in a film of an hour         minutes written as hours: 00:03:21
        00:59:00 to 01:10:00                  beyond the end: cut at the end
        02:00:00 to 02:10:00                  wholly outside: refused
    """
    a, shifted_a = _moment(start, duration)
    b, shifted_b = _moment(end, duration)
    done = (
        ["minutes and seconds had been written as hours and minutes"]
        if shifted_a or shifted_b
        else []
    )
    if b < a:
        a, b = b, a
        done.append("the two times were the wrong way round")
    if a >= duration:
        raise ToolError(f"{clock(a)} lies beyond the end: the film is {clock(duration)} long")
    if b > duration:
        b = duration
        done.append(f"the film ends at {clock(duration)}")
    return Stretch(Segment(a, b), "; ".join(done))


def _moment(written: Written, duration: float) -> tuple[float, bool]:
    """Seconds, and whether a clock had to be read one place lower to lie inside the film."""
    try:
        seconds = parse_time(str(written))
    except ConfigError as error:
        raise ToolError(f"{error}; write times as HH:MM:SS") from error
    parts = str(written).strip().split(":")
    if seconds >= duration and len(parts) == 3 and float(parts[2]) == 0 and seconds / 60 < duration:
        return seconds / 60, True
    return seconds, False


def at_least(segment: Segment, seconds: float, duration: float) -> Segment:
    """The segment widened to both sides to last ``seconds``, inside the film."""
    if segment.duration >= seconds:
        return segment
    start = max(0.0, min(segment.middle - seconds / 2, duration - seconds))
    return Segment(start, min(duration, start + seconds))
