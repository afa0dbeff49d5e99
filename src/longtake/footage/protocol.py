"""The protocol of everything that methods can look at: a film, captions, or a lab script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from longtake.algorithms.partition import EventPartition, Partition
from longtake.llm.backend import FrameDescriber
from longtake.perception.protocols import Reranker, VideoTextEncoder
from longtake.types import Frame, Line, Segment

Material: TypeAlias = Literal["pictures", "captions"]
"""What footage can show: frames, or a ready-made caption for every moment."""


class Footage(Protocol):
    """A video as methods see it.

    Rows and frame numbers refer to :attr:`times`, a grid of one moment per second by default.
    To find out what footage can show, read :attr:`has`; do not test its class or try a call.
    """

    @property
    def name(self) -> str:
        """Name used in the trace."""

    @property
    def has(self) -> frozenset[Material]:
        """What this footage can show."""

    @property
    def duration(self) -> float:
        """Length in seconds."""

    @property
    def times(self) -> NDArray[np.float64]:
        """The grid: the moments that embeddings, frame numbers and samples refer to."""

    @property
    def native_frames(self) -> int | None:
        """Number of pictures in the file; ``None`` if unknown."""

    @property
    def encoder(self) -> Encoder:
        """The space shared by :meth:`embeddings` and :meth:`encode`."""

    @property
    def retriever(self) -> VideoTextEncoder | None:
        """The trained head that scores clips against texts; ``None`` if none is configured."""

    @property
    def reranker(self) -> Reranker | None:
        """What tells whether lines answer a question; ``None`` if there is none."""

    @property
    def given_subtitles(self) -> Path | None:
        """The subtitle file that the user named, if any."""

    @property
    def replies_folder(self) -> Path | None:
        """The folder in which models' replies about this footage are kept; ``None``: nowhere."""

    @property
    def indexed(self) -> bool:
        """Whether nothing has to be indexed before it can be searched."""

    def describer(self) -> FrameDescriber | None:
        """What describes frames to models that only read; ``None`` if there is no perception."""

    def at(self, times: Sequence[float], *, width: int | None = None) -> list[Frame]:
        """The frames on screen at the given times."""

    def embeddings(self) -> NDArray[np.float32]:
        """One unit row per moment of the grid."""

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit row per text, in the space of :meth:`embeddings`."""

    def features(self) -> NDArray[np.float32]:
        """One row per moment of the grid describing how it looks, independent of any text."""

    def blocks(self, rule: EventPartition) -> Partition:
        """The footage divided where what is visible changes."""

    def meanings(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit row per text; the cosine of two rows measures how close they are in meaning."""

    def captions(self, times: Sequence[float]) -> list[str]:
        """The captions at the given times; empty unless :attr:`has` includes ``captions``."""

    def speech(self, within: Segment | None = None) -> list[Line]:
        """What is said: subtitles if there are any, otherwise recognised speech."""

    def onscreen(self, within: Segment | None = None) -> list[Line]:
        """Text visible in the picture."""

    def known_lines(self) -> tuple[list[Line], list[Line]]:
        """Speech and on-screen text that are already known, without recognition."""

    def kept(self, name: str) -> Mapping[str, Any] | None:
        """What :meth:`keep` was given under a name; ``None`` if nothing was."""

    def keep(self, name: str, notes: Mapping[str, Any]) -> None:
        """Keep notes, as JSON, with the index of this footage, if it has one."""


class Encoder(Protocol):
    """What is known about the space that pictures and texts share."""

    @property
    def name(self) -> str:
        """The encoder's name in a configuration."""

    @property
    def logit_scale(self) -> float | None:
        """Factor that turns a cosine into the model's own logit, where known."""

    @property
    def thresholds(self) -> Any:
        """Thresholds on this encoder's scale, by name; only those with a source or a derivation."""
