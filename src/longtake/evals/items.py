"""Questions with labels, and the same questions without.

Labels never leave the process that scores. Solvers run in separate processes, without a copy of
this one's memory, and receive :class:`BenchmarkQuestion` only: what a person
taking the test would see.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from longtake.footage.protocol import Footage
from longtake.types import Question, Segment

NOT_TOLD = "(not told)"
"""Label of a question that cannot be answered: the right outcome is an abstention."""


@dataclass(frozen=True)
class BenchmarkQuestion:
    """A question as solvers receive it."""

    id: str
    video: str
    question: Question


@dataclass(frozen=True)
class LabelledQuestion:
    """A question with what scoring needs."""

    asked: BenchmarkQuestion
    label: str | None
    """The letter of the right option or, for an open question, the right answer.

    ``None`` if the label is not public.
    """
    tags: Mapping[str, str] = field(default_factory=dict)
    """Groups to break scores down by, such as ``{"type": "causal"}``."""
    evidence: tuple[Segment, ...] = ()
    """Where the answer is visible, if known."""
    accepted: tuple[str, ...] = ()
    """Other right answers to an open question."""


class VideoSource(Protocol):
    """Opens videos for solvers. It is pickled and sent to their processes, so it holds no label."""

    def footage(self, video: str) -> Footage:
        """The video with that name."""


@dataclass(frozen=True)
class Benchmark:
    """Questions, and where their videos come from."""

    name: str
    items: Sequence[LabelledQuestion]
    source: VideoSource
    files: Mapping[str, str] = field(default_factory=dict)
    """Hashes of the files that were read, by file name."""
    settings: Mapping[str, object] = field(default_factory=dict)
    """Whatever else determines the questions: the split, the hash of a profile."""
    options: Mapping[str, str] = field(default_factory=dict)
    """The options it was loaded with, so that it can be loaded again."""

    def draw(
        self, *, limit: int | None = None, sample: int | None = None, seed: int = 0
    ) -> Benchmark:
        """The first questions, or random ones, in the benchmark's order."""
        items = list(self.items)
        if sample is not None and sample < len(items):
            # numbers are drawn and sorted, so that the order stays the benchmark's
            kept = sorted(random.Random(seed).sample(range(len(items)), sample))
            items = [items[number] for number in kept]
        settings = {**self.settings, "limit": limit, "sample": sample}
        return replace(self, items=items[:limit], settings=settings)
