"""A method that asks, and asks again whether it was right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from longtake.agents.answer import guess
from longtake.agents.run import Run
from longtake.footage.protocol import Footage
from longtake.prompts import Plain
from longtake.types import Answer, Question


@dataclass(frozen=True)
class Echo:
    """Answers twice, and keeps the second answer."""

    name: ClassVar[str] = "echo"
    paper: ClassVar[str] = "none"
    roles: ClassVar[tuple[str, ...]] = ("llm",)
    presets: ClassVar[dict[str, dict[str, Any]]] = {}

    tone: str = "plain"
    """The tone that the prompt asks for."""

    def answer(self, footage: Footage, question: Question, run: Run) -> Answer:
        """Ask, then ask for a confirmation."""
        del footage
        first = guess(run["llm"], "longtake_echo/answer", question, tone=Plain(self.tone))
        run.propose(first.as_answer())
        choice = Plain(first.choice or "none")
        return guess(run["llm"], "longtake_echo/check", question, choice=choice).as_answer()
