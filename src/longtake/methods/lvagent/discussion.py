"""The state of a discussion: who is still in it, what each agent saw, and what was said."""

from __future__ import annotations

from dataclasses import dataclass, field

from longtake.footage.look import Look
from longtake.footage.protocol import Footage
from longtake.steps.run import Agent, Run
from longtake.steps.votes import Opinion
from longtake.types import Question


@dataclass(frozen=True)
class AgentTurn:
    """What an agent looked at, what it looked for, and what it says."""

    look: Look
    key: str
    """The key information it looked for; empty if it watched the whole film."""
    opinion: Opinion


@dataclass
class Discussion:
    """A discussion of one question about one film."""

    footage: Footage
    question: Question
    run: Run
    agents: list[Agent]
    """Those still in it, best first."""
    whole: set[str] = field(default_factory=set)
    """Names of the agents that watch the whole film."""
    turns: dict[str, AgentTurn] = field(default_factory=dict)
    """Each agent's latest turn."""
    history: list[str] = field(default_factory=list)
    """What was said, the scores, and who left, round by round."""
    first: tuple[Opinion, ...] = ()
    """The opinions of the first round."""
