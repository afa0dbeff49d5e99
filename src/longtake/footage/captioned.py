"""Footage made of captions alone: one caption per second, as some benchmarks ship it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from longtake.errors import MediaError
from longtake.events import CAPTIONS_READ, note
from longtake.footage.plain import PlainFootage
from longtake.footage.protocol import Material
from longtake.types import Frame, Line, Segment


class Sentences(Protocol):
    """A sentence encoder."""

    @property
    def name(self) -> str:
        """The encoder's name."""

    def texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit row per text."""


class CaptionSpace:
    """The space of captions and queries: both are sentences."""

    logit_scale: float | None = None

    def __init__(self, name: str) -> None:
        self.name = name
        self.thresholds: Mapping[str, float] = {}


class CaptionedFootage(PlainFootage):
    """A video known only by its captions; retrieval compares their meaning."""

    has: frozenset[Material] = frozenset({"captions"})

    def __init__(
        self, name: str, captions: Sequence[str], sentences: Sentences, *, step: float = 1.0
    ) -> None:
        if not captions:
            raise MediaError(name, "unreadable", "has no captions")
        self.name = name
        self._captions = tuple(captions)
        self._sentences = sentences
        self._step = step
        self.encoder = CaptionSpace(sentences.name)

    @property
    def duration(self) -> float:
        """Length in seconds."""
        return len(self._captions) * self._step

    @cached_property
    def times(self) -> NDArray[np.float64]:
        """The moments that have a caption."""
        return np.arange(len(self._captions), dtype=np.float64) * self._step

    def captions(self, times: Sequence[float]) -> list[str]:
        """The captions at the given times."""
        # a time on the grid may fall a rounding error short of its own caption
        rows = (np.asarray(times) / self._step + 1e-6).astype(int)
        # reading what a frame shows is a way of seeing it, and is counted as such
        note(CAPTIONS_READ, times=[float(time) for time in times])
        return [self._captions[row] for row in np.clip(rows, 0, len(self._captions) - 1)]

    def embeddings(self) -> NDArray[np.float32]:
        """The meaning of each caption."""
        return self._rows

    @cached_property
    def _rows(self) -> NDArray[np.float32]:
        # many captions repeat; each distinct one is encoded once
        distinct = list(dict.fromkeys(self._captions))
        row_of = {caption: row for row, caption in enumerate(distinct)}
        return self._sentences.texts(distinct)[[row_of[caption] for caption in self._captions]]

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Queries in the space of the captions."""
        return self._sentences.texts(texts)

    def meanings(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit row per text."""
        return self._sentences.texts(texts)

    def features(self) -> NDArray[np.float32]:
        """The meaning of each caption: nothing else tells moments apart."""
        return self._rows

    def speech(self, within: Segment | None = None) -> list[Line]:  # noqa: ARG002
        """Always empty: only captions are known."""
        return []

    def onscreen(self, within: Segment | None = None) -> list[Line]:  # noqa: ARG002
        """Always empty: only captions are known."""
        return []

    def known_lines(self) -> tuple[list[Line], list[Line]]:
        """Always empty: only captions are known."""
        return [], []

    def at(self, times: Sequence[float], *, width: int | None = None) -> list[Frame]:  # noqa: ARG002
        """Raises: there are no pictures."""
        raise self._no_pictures(len(times))

    def uniform(
        self,
        n: int,
        *,
        within: Segment | None = None,  # noqa: ARG002
        width: int | None = None,  # noqa: ARG002
    ) -> list[Frame]:
        """Raises: there are no pictures."""
        raise self._no_pictures(n)

    def random(
        self,
        n: int,
        *,
        within: Segment | None = None,  # noqa: ARG002
        seed: int = 0,  # noqa: ARG002
        width: int | None = None,  # noqa: ARG002
    ) -> list[Frame]:
        """Raises: there are no pictures."""
        raise self._no_pictures(n)

    def _no_pictures(self, asked: int) -> MediaError:
        detail = f"is made of captions; it has no pictures to show (asked for {asked})"
        return MediaError(self.name, "no_video", detail)
