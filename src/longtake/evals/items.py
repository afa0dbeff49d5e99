"""Questions with labels, and the same questions without.

A label never leaves the process that scores. Solvers run in processes of their own, are started without a copy of
this one's memory, and are handed :class:`Asked`: what a person who takes the test would see.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from longtake.footage.protocol import Footage
from longtake.types import Question, Segment


@dataclass(frozen=True)
class Asked:
    """A question as a solver gets it."""

    id: str
    video: str
    question: Question


@dataclass(frozen=True)
class Item:
    """A question with what is needed to score it."""

    asked: Asked
    label: str | None
    """The letter of the right option, or the words of the right answer; ``None`` where labels are not public."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """What scores are broken down by: ``{"type": "causal"}``."""
    evidence: tuple[Segment, ...] = ()
    """Where the answer is to be seen, where that is known."""


class Source(Protocol):
    """Gives videos to solvers. It travels to their processes, so it holds no label."""

    def footage(self, video: str) -> Footage:
        """The video of that name."""


@dataclass(frozen=True)
class Benchmark:
    """Questions, and where their videos come from."""

    name: str
    items: Sequence[Item]
    source: Source
    files: Mapping[str, str] = field(default_factory=dict)
    """Hashes of the files that were read, by name."""
    settings: Mapping[str, object] = field(default_factory=dict)
    """Whatever else decides what is asked: the split, a profile's hash."""
    options: Mapping[str, str] = field(default_factory=dict)
    """The words it was loaded with, so that it can be loaded again."""

    def draw(
        self, *, limit: int | None = None, sample: int | None = None, seed: int = 0
    ) -> Benchmark:
        """The first questions, or some drawn at random, in the benchmark's order."""
        items = list(self.items)
        if sample is not None and sample < len(items):
            kept = sorted(random.Random(seed).sample(range(len(items)), sample))
            items = [items[number] for number in kept]
        settings = {**self.settings, "limit": limit, "sample": sample}
        return replace(self, items=items[:limit], settings=settings)
