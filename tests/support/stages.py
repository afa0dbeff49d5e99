"""Methods that say the same whatever they are asked, to be stages of ``auto``."""

from dataclasses import dataclass
from typing import ClassVar

from longtake.agents.run import Run
from longtake.errors import ConfigError
from longtake.llm.structured.ask import ask
from longtake.types import Answer, Evidence, Question, Segment


@dataclass(frozen=True)
class Sure:
    """Says A, and is sure of it."""

    name: ClassVar[str] = "sure"
    paper: ClassVar[str] = "none"
    roles: ClassVar[tuple[str, ...]] = ("llm",)
    presets: ClassVar[dict[str, dict[str, object]]] = {}
    choice: str = "A"
    confidence: float = 0.95
    calls: int = 1

    def answer(self, footage, question: Question, run: Run) -> Answer:
        for _ in range(self.calls):
            ask(run["llm"], "shared/same_meaning", question=question, answers=["a"], default="")
        run.propose(Answer("D", "in between"))
        return Answer(self.choice, confidence=self.confidence)


@dataclass(frozen=True)
class Unsure(Sure):
    """Says B, and is not sure."""

    name: ClassVar[str] = "unsure"
    choice: str = "B"
    confidence: float = 0.3


@dataclass(frozen=True)
class Silent(Sure):
    """Abstains."""

    name: ClassVar[str] = "silent"

    def answer(self, footage, question: Question, run: Run) -> Answer:
        return Answer(reason="cannot tell", status="abstained")


@dataclass(frozen=True)
class Broken(Sure):
    """Fails."""

    name: ClassVar[str] = "broken"

    def answer(self, footage, question: Question, run: Run) -> Answer:
        raise ConfigError("out of order")


@dataclass(frozen=True)
class Crowd(Sure):
    """Needs a team."""

    name: ClassVar[str] = "crowd"
    roles: ClassVar[tuple[str, ...]] = ("team",)


@dataclass(frozen=True)
class Told(Unsure):
    """Says B, and cites a line that holds it."""

    name: ClassVar[str] = "told"
    checks_itself: ClassVar[bool] = True

    def answer(self, footage, question: Question, run: Run) -> Answer:
        cited = (Evidence(Segment(3, 5), "speech", "b leaves"),)
        return Answer(self.choice, evidence=cited)


@dataclass(frozen=True)
class Seen(Told):
    """Says A, looks at pictures, and cites one that shows it."""

    name: ClassVar[str] = "seen"
    roles: ClassVar[tuple[str, ...]] = ("vlm",)
    choice: str = "A"
