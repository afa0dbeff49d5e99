"""Checking an answer: which of the listed moments support it, and which contradict it.

The model judges by the same facts as it answers by: what it notices in the pictures and takes in
from the text. So a check errs as often as its model's acuity says.
"""

from __future__ import annotations

import re

from longtake.lab.grammar import facts_in
from longtake.lab.mind import Mind
from longtake.lab.skills import is_settled
from longtake.timecode import SHORT_CLOCK, parse_time

AT = 1.0
"""Maximum seconds between a sighting and the listed moment that it belongs to."""
_TIMED = re.compile(rf"\[({SHORT_CLOCK})\]")


def supports(mind: Mind) -> list[int]:
    """Listed moments that show what the answer rests on, unless the notes settle another answer."""
    if mind.finding.level == 3 and not is_settled(mind):
        return []
    return _telling(mind)


def contradicts(mind: Mind) -> list[int]:
    """Listed moments that settle the question for another answer than the proposed one."""
    if mind.finding.level < 3 or is_settled(mind):
        return []
    return _telling(mind)


def passages(mind: Mind) -> list[int]:
    """Listed passages that state a fact on which the answer rests; none for a guess."""
    if mind.finding.value is None:
        return []
    decisive = {sighting.fact for sighting in mind.finding.support}
    numbers = []
    for number, line in mind.shown.numbered_lines().items():
        if any(fact in decisive for _, fact in facts_in(line)):
            numbers.append(number)
    return numbers


def _telling(mind: Mind) -> list[int]:
    """The numbers of moments at which a sighting was made that the model's finding rests on."""
    times = [sighting.time for sighting in mind.finding.support if sighting.time is not None]
    numbers = []
    for number, line in mind.shown.numbered_lines().items():
        listed = _TIMED.match(line)
        if listed and any(abs(parse_time(listed[1]) - time) <= AT for time in times):
            numbers.append(number)
    return numbers
