"""Times as people write them, to and from seconds."""

from __future__ import annotations

import math
import re

from longtake.errors import ConfigError
from longtake.types import Segment

CLOCK = r"\d{1,2}:[0-5]\d:[0-5]\d"
"""Pattern of a time as :func:`clock` writes it, for finding it in a text."""
SHORT_CLOCK = r"(?:\d{1,2}:[0-5]\d|\d{1,3}):[0-5]\d(?:\.\d+|,\d{3}\b)?"
"""Pattern of a time that may lack hours or have a fraction: ``3:21``, ``00:03:21,500``."""
# [[hours:]minutes:]seconds, with an optional fraction and unit
_TIME = re.compile(
    r"(?:(?:(\d+):)?(\d{1,3}):)?(\d+(?:[.,]\d+)?)\s*(?:s|sec|seconds?)?", re.IGNORECASE
)


def clock(seconds: float, *, millis: bool = False) -> str:
    """Format ``751.5`` as ``00:12:31``, or as ``00:12:31.500`` with ``millis``.

    Without ``millis`` the fraction is dropped, as in the display of a player.
    """
    if not math.isfinite(seconds):
        return "--:--:--"  # as players show an unknown time
    sign = "-" if seconds < 0 else ""
    # round first, so that 59.9996 becomes 00:01:00.000 and not 00:00:59.1000
    thousandths = round(abs(seconds) * 1000)
    whole, rest = divmod(thousandths, 1000)
    text = f"{sign}{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"
    return f"{text}.{rest:03d}" if millis else text


def parse_time(text: str) -> float:
    """Parse ``12.5``, ``201 s``, ``3:21``, ``00:03:21`` or ``00:03:21,500`` into seconds."""
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise ConfigError(f"{text!r} is not a time; write seconds (12.5) or a clock (00:12:31)")
    hours, minutes, seconds = match.groups()
    value = float(seconds.replace(",", "."))
    if minutes is not None and value >= 60:
        raise ConfigError(f"{text!r} is not a time: {seconds} seconds do not fit in a minute")
    if hours is not None and int(minutes) >= 60:
        raise ConfigError(f"{text!r} is not a time: {minutes} minutes do not fit in an hour")
    return int(hours or 0) * 3600 + int(minutes or 0) * 60 + value


def parse_range(text: str) -> Segment:
    """Parse ``00:10:00-00:20:00`` or ``600-1200`` into a segment."""
    first, dash, last = text.partition("-")
    if not dash:
        raise ConfigError(f"{text!r} is not a range; write START-END, as in 00:10:00-00:20:00")
    start, end = parse_time(first), parse_time(last)
    if end <= start:
        raise ConfigError(f"{text!r} is not a range: the end must come after the start")
    return Segment(start, end)
