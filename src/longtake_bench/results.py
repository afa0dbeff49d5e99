"""The result of one question: what a run keeps of it, and what every score is computed from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, TypeAlias

from longtake.types import GIVEN, Result, Segment, Status, Usage

Ended: TypeAlias = Status | Literal["error"]


@dataclass(frozen=True)
class QuestionResult:
    """How a question ended; a row of ``results.jsonl``, which has the fields that are set."""

    id: str
    status: Ended
    video: str = ""
    choice: str | None = None
    text: str = ""
    confidence: float | None = None
    evidence: Sequence[Segment] = ()
    """What it cites, the strongest first; results of older runs are in time order."""
    context: Segment | None = None
    """The stretch of talk that an account is from."""
    usage: Usage | None = None
    """Unknown for errors in runs of version 0.2."""
    error: str = ""
    seen: float | None = None
    """Distinct frames, shown or read as captions."""
    rounds: float | None = None
    notes: Mapping[str, int] = field(default_factory=dict)
    signals: Mapping[str, Any] = field(default_factory=dict)
    """What a calibration is fitted from."""
    stages: Sequence[Mapping[str, Any]] = ()

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> QuestionResult:
        """The result in a row; raises if the row lacks its id or status, or holds other values."""
        known = {each.name for each in fields(cls)}
        given = {name: row[name] for name in row if name in known and row[name] is not None}
        pairs = given.get("evidence") or ()
        given["evidence"] = tuple(Segment(float(start), float(end)) for start, end, *_ in pairs)
        if "context" in given:
            given["context"] = Segment(*map(float, given["context"]))
        if "usage" in given:
            given["usage"] = Usage(**given["usage"])
        return cls(**given)

    @classmethod
    def of_answer(cls, id: str, video: str, result: Result, **counted: Any) -> QuestionResult:  # noqa: A002
        """The result of an answered question."""
        answer = result.answer
        return cls(
            id,
            answer.status,
            video,
            answer.choice,
            answer.text,
            answer.confidence,
            tuple(cited.segment for cited in answer.evidence),
            answer.context,
            result.usage,
            **counted,
        )

    @property
    def row(self) -> dict[str, Any]:
        """The result as plain data."""
        common = {"id": self.id, "video": self.video, "status": self.status}
        usage = {} if self.usage is None else {"usage": asdict(self.usage)}
        if self.failed:
            return {**common, "error": self.error, **usage}
        answer = {name: getattr(self, name) for name in ("choice", "text", "confidence")}
        evidence = [[each.start, each.end] for each in self.evidence]
        context = self.context and [self.context.start, self.context.end]
        counted = {name: getattr(self, name) for name in ("seen", "rounds", "notes")}
        fitted = {"signals": self.signals, "stages": self.stages}
        return {
            **common,
            **answer,
            "evidence": evidence,
            "context": context,
            **usage,
            **{name: value for name, value in counted.items() if value is not None},
            **{name: value for name, value in fitted.items() if value},
        }

    @property
    def failed(self) -> bool:
        """Whether it ended in an error."""
        return self.status == "error"

    @property
    def given(self) -> bool:
        """Whether there is an answer, trusted or not."""
        return self.status in GIVEN

    @property
    def cost(self) -> float:
        """What it has cost in dollars, as far as that is known."""
        return (self.usage.cost if self.usage else None) or 0.0

    @property
    def stretches(self) -> Sequence[Segment]:
        """What it refers to: the stretch of talk that an account is from, or what it cites."""
        return [self.context] if self.context else self.evidence


Results: TypeAlias = Mapping[str, QuestionResult]
"""Results by question."""
