"""What an answer cites: moments that were looked at, and lines that were quoted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from longtake.footage.look import cite, look_at
from longtake.footage.protocol import Footage
from longtake.timecode import parse_time
from longtake.types import Evidence

CITED = 3
"""Moments cited for an answer; as many quoted lines may be cited in addition."""
_CLOCK = re.compile(r"\b\d{1,2}:[0-5]\d:[0-5]\d\b")


def moments(footage: Footage, looked: Sequence[int], reason: str, about: str) -> list[Evidence]:
    """Moments that were looked at: those the reason names, then those closest to the answer."""
    if not looked:
        return []
    times = footage.times[list(looked)]
    named: dict[int, None] = {}
    for text in _CLOCK.findall(reason):
        nearest = int(np.abs(times - parse_time(text)).argmin())
        # a time that nobody looked at is no evidence
        if abs(float(times[nearest]) - parse_time(text)) <= 1.0:
            named[looked[nearest]] = None
    first = list(named)[:CITED]
    rest = [row for row in looked if row not in named]
    return [
        *cite(footage, look_at(footage, first, pictures=False), about, CITED),
        *cite(footage, look_at(footage, rest, pictures=False), about, CITED - len(first)),
    ]


def closest(footage: Footage, quoted: Sequence[Evidence], about: str) -> list[Evidence]:
    """The quoted lines closest in meaning to the answer."""
    if not quoted:
        return []
    rows = footage.meanings([about, *(line.text for line in quoted)])
    closeness = rows[1:] @ rows[0]
    best = np.argsort(-closeness, kind="stable")[:CITED].tolist()
    return [replace(quoted[index], score=round(float(closeness[index]), 4)) for index in best]
