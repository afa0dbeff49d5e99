"""LVAgent with a team that says what it is told to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from longtake.agents.run import Run
from longtake.methods.lvagent.method import LVAgent
from longtake.runner.session import solve
from longtake.types import Question
from support.listening import listening
from support.talking import TalkingFootage, Team

QUESTION = Question("What is thrown?", ("a ball", "a stick", "a shoe"))
OPEN = Question("What is thrown?")
FOOTAGE = TalkingFootage([("cat", 200), ("dog", 200), ("car", 200)])
NAMES = ("ann", "bob", "cid")


def cards(**points: int) -> dict[str, dict[str, int]]:
    """Every judge gives the same scores."""
    return dict.fromkeys(points, points)


LOW_BOB = cards(ann=9, bob=2, cid=5)


def play(
    team: Team, method: LVAgent | None = None, question: Question = QUESTION, footage: Any = FOOTAGE
) -> Any:
    with listening() as heard:
        answer = solve(method or LVAgent(), footage, question, Run({}, team=team.agents)).answer
    return answer, heard


def talk(
    answers: Mapping[str, Sequence[str | None]],
    scores: Mapping[str, Mapping[str, int]],
    **more: Any,
) -> Team:
    return Team(answers, scores, **more)
