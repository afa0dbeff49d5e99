"""A stretch of film against a text: by a trained head where the settings name one, else by mean pooling."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from longtake.footage.protocol import Footage
from longtake.perception.pooling import MeanPooling
from longtake.perception.protocols import VideoTextEncoder


@runtime_checkable
class Retrieving(Protocol):
    """Footage that knows how clips are to be scored."""

    @property
    def retriever(self) -> VideoTextEncoder | None:
        """The head in use; ``None``: none is configured."""


@runtime_checkable
class Native(Protocol):
    """Footage that knows how many pictures it has."""

    @property
    def native_frames(self) -> int:
        """Pictures in the film."""


def clip_scorer(footage: Footage) -> VideoTextEncoder:
    """Who scores clips of this footage."""
    head = footage.retriever if isinstance(footage, Retrieving) else None
    return MeanPooling() if head is None else head


def native_frames(footage: Footage) -> int | None:
    """How many pictures the film itself has; ``None`` where that is not known."""
    return footage.native_frames if isinstance(footage, Native) else None
