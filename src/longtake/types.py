"""The data types that every part of longtake shares.

Nothing here imports a media or model runtime, which keeps ``import longtake`` fast.
"""

from __future__ import annotations

import string
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Pixels: TypeAlias = "NDArray[np.uint8]"

LETTERS = string.ascii_uppercase
"""Labels for the options of a multiple-choice question, in order."""


@dataclass(frozen=True, slots=True, order=True)
class Segment:
    """A stretch of film in seconds, half-open: it includes ``start`` but not ``end``."""

    start: float
    end: float

    def __post_init__(self) -> None:
        # written so that NaN fails too
        if not self.end >= self.start:
            raise ValueError(f"a segment cannot end ({self.end}) before it starts ({self.start})")

    @property
    def duration(self) -> float:
        """Length in seconds."""
        return self.end - self.start

    @property
    def middle(self) -> float:
        """The midpoint in seconds."""
        return (self.start + self.end) / 2

    def __contains__(self, time: float) -> bool:
        return self.start <= time < self.end

    def overlap(self, other: Segment) -> float:
        """Seconds that the two segments share."""
        return max(0.0, min(self.end, other.end) - max(self.start, other.start))


class FrameSource(Protocol):
    """A film that can be decoded at its own rate."""

    def between(self, stretch: Segment, max_frames: int, width: int) -> list[Frame]:
        """Every frame in a stretch, at most ``width`` wide; none if they are too many."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Frame:
    """One picture and the time it appears on screen, in seconds from the start of the film."""

    time: float
    pixels: Pixels
    """RGB, height × width × 3."""
    film: FrameSource | None = None
    """The source of the frames around it, if any."""

    def __repr__(self) -> str:
        height, width = self.pixels.shape[:2]
        return f"Frame(time={self.time:.3f}, {width}×{height})"


@dataclass(frozen=True, slots=True)
class Line:
    """A piece of text and when it is said or shown."""

    segment: Segment
    text: str


QuestionKind: TypeAlias = Literal["fact", "list", "count", "when", "who", "about", "account"]
"""What a question asks for: one fact; every occurrence of something; how many or how often; the
moment of the film; a person; the gist of the film; or an account of reasons, opinions, a talk."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a film; without options it is open-ended."""

    text: str
    options: tuple[str, ...] = ()
    kind: QuestionKind | None = None
    """What it asks for; ``None``: as its words suggest (``question_kinds.asks_for``)."""

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise ValueError("the question is empty")
        if len(self.options) == 1 or len(self.options) > len(LETTERS):
            raise ValueError(
                f"a question has no options or 2 to {len(LETTERS)}, not {len(self.options)}"
            )

    @property
    def letters(self) -> str:
        """The letters of the options: ``"ABCD"`` for four."""
        return LETTERS[: len(self.options)]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Something in the film that supports an answer."""

    segment: Segment
    source: str
    """Where it comes from: ``frame``, ``caption``, ``speech``, ``onscreen``, ``subtitle``."""
    text: str = ""
    score: float | None = None


GIVEN = ("answered", "unsupported", "not_credible")
"""Statuses of given answers, trusted or not."""
Status: TypeAlias = Literal[
    "answered", "unsupported", "abstained", "budget_spent", "cancelled", "not_credible"
]


Unchecked: TypeAlias = Literal["", "budget", "model", "unreadable", "reranker"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a method concludes. ``choice`` is a letter, or ``None`` if no option was chosen."""

    choice: str | None = None
    text: str = ""
    reason: str = ""
    confidence: float | None = None
    evidence: tuple[Evidence, ...] = ()
    status: Status = "answered"
    nearest: tuple[Evidence, ...] = ()
    """For an abstention: the moments closest to the question, which are not evidence."""
    context: Segment | None = None
    """The stretch of talk that an account is about; its evidence are the lines that support it."""
    unchecked: Unchecked = ""
    """Why the answer was not checked against the film: the budget ended, the model that checks
    failed or gave no readable reply, or no reranker is there to do it. Empty: it was, if asked."""

    @property
    def is_given(self) -> bool:
        """Whether there is an answer at all."""
        return self.status in GIVEN and bool(self.choice or self.text)


@dataclass(frozen=True, slots=True)
class Usage:
    """Resources used. Adds with ``+``; a cost of ``None`` is unknown and makes the sum unknown."""

    calls: int = 0
    tokens_in: int = 0
    tokens_cached: int = 0
    """The part of ``tokens_in`` that was served from a prefix cache."""
    tokens_out: int = 0
    frames: int = 0
    seconds: float = 0.0
    cost: float | None = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(*map(_sum, astuple(self), astuple(other)))

    def __sub__(self, other: Usage) -> Usage:
        before = [None if value is None else -value for value in astuple(other)]
        return Usage(*map(_sum, astuple(self), before))


def _sum(one: Any, other: Any) -> Any:
    return None if one is None or other is None else one + other


@dataclass(frozen=True, slots=True)
class Result:
    """The answer to a question, what it cost, and how to check it."""

    answer: Answer
    usage: Usage
    method: str
    models: Mapping[str, str] = field(default_factory=dict)
    """Model name by role."""
    trace: Any = None
    """The events of the run, for ``longtake replay`` and the page."""
