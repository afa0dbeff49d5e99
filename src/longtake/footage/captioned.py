"""Footage made of captions alone: no pictures, one caption a second, as some benchmarks ship it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from longtake.errors import MediaError
from longtake.types import Frame, Line, Segment


class Sentences(Protocol):
    """Texts by meaning."""

    @property
    def name(self) -> str:
        """The name it goes by."""

    def texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit row per text."""


class CaptionSpace:
    """The space of captions and queries: sentences on both sides."""

    logit_scale: float | None = None

    def __init__(self, name: str) -> None:
        self.name = name
        self.thresholds: Mapping[str, float] = {}


class CaptionedFootage:
    """A video known by its captions; retrieval is over their meaning."""

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
        """Seconds."""
        return len(self._captions) * self._step

    @cached_property
    def times(self) -> NDArray[np.float64]:
        """The moments that have a caption."""
        return np.arange(len(self._captions), dtype=np.float64) * self._step

    def captions(self, times: Sequence[float]) -> list[str] | None:
        """The captions at these moments."""
        rows = np.clip(
            (np.asarray(times) / self._step + 1e-6).astype(int), 0, len(self._captions) - 1
        )
        return [self._captions[row] for row in rows]

    def embeddings(self) -> NDArray[np.float32]:
        """The captions' meaning."""
        return self._rows

    @cached_property
    def _rows(self) -> NDArray[np.float32]:
        # many captions repeat; each is encoded once
        distinct = list(dict.fromkeys(self._captions))
        place = {caption: row for row, caption in enumerate(distinct)}
        return self._sentences.texts(distinct)[[place[caption] for caption in self._captions]]

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Queries in the space of the captions."""
        return self._sentences.texts(texts)

    def meanings(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Texts by meaning."""
        return self._sentences.texts(texts)

    def features(self) -> NDArray[np.float32]:
        """The captions' meaning: there is nothing else to tell moments apart by."""
        return self._rows

    def speech(self, within: Segment | None = None) -> list[Line]:  # noqa: ARG002
        """Nothing is known of what is said."""
        return []

    def known_lines(self) -> tuple[list[Line], list[Line]]:
        """Nothing but the captions is known."""
        return [], []

    def onscreen(self, within: Segment | None = None) -> list[Line]:  # noqa: ARG002
        """Nothing is known of what can be read."""
        return []

    def at(self, times: Sequence[float], *, width: int | None = None) -> list[Frame]:
        """There are no pictures."""
        return self._none(len(times), width)

    def uniform(
        self, n: int, *, within: Segment | None = None, width: int | None = None
    ) -> list[Frame]:
        """There are no pictures."""
        return self._none(n, within, width)

    def random(
        self, n: int, *, within: Segment | None = None, seed: int = 0, width: int | None = None
    ) -> list[Frame]:
        """There are no pictures."""
        return self._none(n, within, width, seed)

    def _none(self, *asked: object) -> list[Frame]:
        detail = f"is made of captions; it has no pictures to show (asked for {asked[0]})"
        raise MediaError(self.name, "no_video", detail)
