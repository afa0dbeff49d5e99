"""What has been done so far: who was told what, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from longtake.types import Evidence, Segment

GROUNDING, PERCEPTION, SUBTITLES, FINISH = "grounding", "visual_perception", "subtitles", "finish"
REFLECTION = "reflection"


@dataclass(frozen=True)
class Turn:
    """One entry of the history."""

    agent: str
    instruct: str
    report: tuple[str, ...]
    """What came of it, a line each."""
    scored_for: str = ""
    """Grounding: the instruction that every clip was scored by, where it was."""
    looked: tuple[int, ...] = ()
    """Places of the grid that a model looked at."""
    quoted: tuple[Evidence, ...] = ()
    """Lines of the film that were found to matter."""


@dataclass(frozen=True)
class Claim:
    """A clip that grounding returns."""

    segment: Segment
    score: float
    told: str = ""
    """What is said of it, by whoever scored it."""


def written(history: Sequence[Turn]) -> list[str]:
    """The history as the next agent reads it."""
    lines: list[str] = []
    for number, turn in enumerate(history, start=1):
        lines.append(f"{number}. {turn.agent}: {turn.instruct}")
        lines += [f"   {line}" for line in turn.report]
    return lines or ["Nothing yet."]


def uninspected(history: Sequence[Turn]) -> bool:
    """Whether nobody was sent to look since grounding last said where."""
    acted = [turn.agent for turn in history if turn.agent in (GROUNDING, PERCEPTION)]
    return bool(acted) and acted[-1] == GROUNDING
