"""The result of one question: what a run keeps of it, and what every score is computed from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, PlainSerializer, TypeAdapter
from pydantic.dataclasses import dataclass

from longtake.types import GIVEN, Segment, Status, Usage


def _segment(value: Any) -> Segment:
    return value if isinstance(value, Segment) else Segment(*map(float, value[:2]))


Stretch: TypeAlias = Annotated[
    Segment, BeforeValidator(_segment), PlainSerializer(lambda each: [each.start, each.end])
]
"""A segment, which is a pair of numbers on disk."""


@dataclass(frozen=True)
class QuestionResult:
    """How a question ended; a row of ``results.jsonl``."""

    id: str
    status: Status | Literal["error"]
    video: str = ""
    choice: str | None = None
    text: str = ""
    confidence: float | None = None
    evidence: tuple[Stretch, ...] = ()
    """What it cites, the strongest first; results of older runs are in time order."""
    context: Stretch | None = None
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
    stages: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> QuestionResult:
        """The result in a row; raises ``ValueError`` if it is none."""
        given = {name: value for name, value in row.items() if value is not None}
        return _ADAPTER.validate_python(given)

    @property
    def row(self) -> dict[str, Any]:
        """The result as plain data; what only some runs know is left out if it is empty."""
        row: dict[str, Any] = _ADAPTER.dump_python(self)
        for name in ("error", "usage", "seen", "rounds", "notes", "signals", "stages"):
            if row[name] is None or row[name] in ("", {}, ()):
                del row[name]
        return row

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
    def stretches(self) -> tuple[Segment, ...]:
        """What it refers to: the stretch of talk that an account is from, or what it cites."""
        return (self.context,) if self.context else self.evidence


_ADAPTER: TypeAdapter[QuestionResult] = TypeAdapter(QuestionResult)
Results: TypeAlias = Mapping[str, QuestionResult]
"""Results by question."""
