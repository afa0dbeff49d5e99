"""What has been done so far: which agent was told what, and what it reported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from longtake.prompts import phrase
from longtake.types import Evidence, Segment

GROUNDING, PERCEPTION, SUBTITLES, FINISH = "grounding", "visual_perception", "subtitles", "finish"
REFLECTION = "reflection"


@dataclass(frozen=True)
class Entry:
    """One entry of the history."""

    agent: str
    instruct: str
    report: tuple[str, ...]
    """What the agent reported, line by line."""
    scored_for: str = ""
    """For grounding: the instruction by which every clip was scored, if they were."""
    looked: tuple[int, ...] = ()
    """Rows of the footage's grid that a model looked at."""
    quoted: tuple[Evidence, ...] = ()
    """Spoken lines that were found to be relevant."""


@dataclass(frozen=True)
class Claim:
    """A clip returned by grounding."""

    segment: Segment
    score: float
    told: str = ""
    """What the model that scored it says about it."""


def written(history: Sequence[Entry]) -> list[str]:
    """The history as the next agent reads it."""
    lines: list[str] = []
    for number, entry in enumerate(history, start=1):
        # one numbered line per entry, so that a planner can refer to it
        lines.append(f"{number}. {entry.agent}: {entry.instruct}")
        lines += [f"   {line}" for line in entry.report]
    return lines or [phrase("symphony", "nothing_yet")]


def uninspected(history: Sequence[Entry]) -> bool:
    """Whether nobody has looked since grounding last reported where to look."""
    acted = []
    for entry in history:
        # an agent that used no tool has looked at nothing
        has_looked = entry.agent == PERCEPTION and entry.looked
        if entry.agent == GROUNDING or has_looked:
            acted.append(entry.agent)
    return bool(acted) and acted[-1] == GROUNDING
