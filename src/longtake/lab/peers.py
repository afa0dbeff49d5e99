"""Judging peers: how convincing another agent's answer and reason are."""

from __future__ import annotations

import re
from typing import Any

from longtake.lab.facts import Sighting
from longtake.lab.grammar import facts_in
from longtake.lab.mind import Mind
from longtake.lab.solving import option_of
from longtake.timecode import CLOCK, parse_time
from longtake.types import LETTERS

_SCORES = {(3, True): 9, (2, True): 6, (2, False): 4, (3, False): 3}
"""Score by how far the stated facts settle the question, and whether they support the answer."""


def scores(mind: Mind) -> list[dict[str, Any]]:
    """A score, 1 to 10, for each peer with a line: stated facts that support its answer count."""
    judged = []
    for name, said in mind.shown.named_lines():
        score = peer_score(mind, said)
        judged.append({"name": name, "agent": name, "score": score, "reason": _verdict(score)})
    return judged


def peer_score(mind: Mind, said: str) -> int:
    """How convincing one answer with its reason is, 1 to 10."""
    return mind.judged(_from_facts(mind, said), range(1, 11), said)


def _from_facts(mind: Mind, said: str) -> int:
    """The score that the stated facts deserve."""
    stated = [Sighting(fact, _clock_before(said, place)) for place, fact in facts_in(said)]
    finding = mind.find(stated)
    if finding.level == 1 or not stated:
        return 2
    options = mind.shown.options
    letter = re.match(r"\(?([A-Z])\b[.):]?", said)
    if options and letter:
        supported = option_of(finding, options)
        agrees = supported is not None and LETTERS[supported] == letter[1]
    else:
        agrees = finding.value is not None and finding.value.lower() in said.lower()
    return _SCORES[finding.level, agrees]


def _verdict(score: int) -> str:
    if score > 5:
        return "names what it saw, and that supports the answer"
    return "names nothing that supports the answer"


def _clock_before(text: str, place: int) -> float | None:
    """The last time stamp before a position, in seconds."""
    stamps = re.findall(rf"\[({CLOCK})\]", text[:place])
    return parse_time(stamps[-1]) if stamps else None
