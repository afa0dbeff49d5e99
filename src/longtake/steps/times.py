"""Times as models write them: repaired if the meaning is clear, rejected with a hint if not."""

from __future__ import annotations

from dataclasses import dataclass

from longtake.errors import ConfigError
from longtake.prompts import Plain, phrase
from longtake.steps.tools import ToolError
from longtake.timecode import clock, parse_time
from longtake.types import Segment

Written = str | float
"""A time in a model's reply: a clock, or seconds."""


@dataclass(frozen=True)
class Stretch:
    """A stretch of film, and how the times written for it were repaired."""

    segment: Segment
    repaired: str = ""


def read_stretch(start: Written, end: Written, duration: float) -> Stretch:
    """The stretch that two times name.

    ::

        "00:03:21", "3:21", "201 s", 201      the same moment
        00:05:00 to 00:04:00                  reversed: swapped
        03:21:00 in a film of an hour         minutes written as hours: 00:03:21
        00:59:00 to 01:10:00                  past the end: cut at the end
        02:00:00 to 02:10:00                  entirely outside: rejected
    """
    a, shifted_a = _moment(start, duration)
    b, shifted_b = _moment(end, duration)
    done = []
    if shifted_a or shifted_b:
        done.append(phrase("shared", "hours_for_minutes"))
    if b < a:
        a, b = b, a
        done.append(phrase("shared", "wrong_way_round"))
    if a >= duration:
        length = Plain(clock(duration))
        raise ToolError(phrase("shared", "beyond_the_end", time=Plain(clock(a)), length=length))
    if b > duration:
        b = duration
        done.append(phrase("shared", "film_ends", time=Plain(clock(duration))))
    return Stretch(Segment(a, b), "; ".join(done))


def _moment(written: Written, duration: float) -> tuple[float, bool]:
    """Seconds, and whether hours had to be read as minutes to fall inside the film."""
    try:
        seconds = parse_time(str(written))
    except ConfigError as error:
        raise ToolError(phrase("shared", "write_times", why=str(error))) from error
    parts = str(written).strip().split(":")
    if seconds >= duration and len(parts) == 3 and float(parts[2]) == 0 and seconds / 60 < duration:
        return seconds / 60, True
    return seconds, False


def at_least(segment: Segment, seconds: float, duration: float) -> Segment:
    """The segment widened on both sides to last ``seconds``, within the film."""
    if segment.duration >= seconds:
        return segment
    start = max(0.0, min(segment.middle - seconds / 2, duration - seconds))
    return Segment(start, min(duration, start + seconds))
