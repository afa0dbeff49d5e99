"""What seeing, reading and hearing offer to the rest of longtake.

Every implementer is built once, is safe to call from several threads, gives the same output for the same
input whatever stands beside it in the batch (within float tolerance), and answers an empty input with an
empty array of the right width.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from longtake.types import Frame, Line, Segment

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[np.float32]
    Samples: TypeAlias = NDArray[np.float32]


@runtime_checkable
class ImageEncoder(Protocol):
    """Pictures as vectors."""

    @property
    def name(self) -> str:
        """The name it goes by in a configuration."""

    @property
    def key(self) -> str:
        """Identity of model, weights and preprocessing: equal keys give equal vectors."""

    @property
    def dim(self) -> int:
        """Length of a vector."""

    @property
    def size(self) -> int:
        """Shorter side in pixels below which a frame loses detail; larger frames only cost time."""

    def images(self, frames: Sequence[Frame]) -> Array:
        """One unit row per frame, float32."""


@runtime_checkable
class TextEncoder(Protocol):
    """Texts as vectors."""

    @property
    def name(self) -> str:
        """The name it goes by in a configuration."""

    @property
    def key(self) -> str:
        """Identity of model, weights and tokenizer: equal keys give equal vectors."""

    @property
    def dim(self) -> int:
        """Length of a vector."""

    def texts(self, texts: Sequence[str]) -> Array:
        """One unit row per text, float32."""


@runtime_checkable
class ImageTextEncoder(ImageEncoder, TextEncoder, Protocol):
    """Pictures and texts in one space: a cosine between the two says how well they fit."""

    @property
    def logit_scale(self) -> float | None:
        """What a cosine is multiplied with to become the logit the model was trained on, where known."""

    @property
    def logit_bias(self) -> float | None:
        """What is added to that logit (sigmoid-trained models only)."""

    @property
    def thresholds(self) -> Mapping[str, float]:
        """Cut-offs on this encoder's own scale, by name; only those with a source or a computation."""


@runtime_checkable
class VideoTextEncoder(Protocol):
    """A stretch of film, given as its frames' vectors, against a text."""

    @property
    def key(self) -> str:
        """Identity of whatever turns frame vectors into scores."""

    @property
    def thresholds(self) -> Mapping[str, float]:
        """Cut-offs on the scale of its scores, by name, where they were measured."""

    def scores(self, frames: Array, texts: Array) -> Array:
        """One score per text for the clip whose frame vectors are the rows of ``frames``."""


@dataclass(frozen=True, slots=True)
class Tag:
    """Something a picture shows, by name, with the model's probability."""

    name: str
    probability: float


class Tagger(Protocol):
    """Names what pictures show."""

    @property
    def key(self) -> str:
        """Identity of model, weights and preprocessing."""

    def tags(self, frames: Sequence[Frame], top: int = 5) -> list[list[Tag]]:
        """The ``top`` most probable tags of each frame, most probable first."""


@dataclass(frozen=True, slots=True)
class TextBox:
    """Text on a picture: what it says, where, and how sure the reader is."""

    text: str
    box: tuple[float, float, float, float]
    """Left, top, right, bottom, each as a share (0..1) of the picture's width or height."""
    score: float


@runtime_checkable
class Reader(Protocol):
    """Reads the text on a picture."""

    @property
    def key(self) -> str:
        """Identity of the models and settings."""

    def read(self, frame: Frame) -> list[TextBox]:
        """The text on a frame, top to bottom."""


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A stretch of sound that the listener did not put into words, and why."""

    segment: Segment
    reason: str


@dataclass(frozen=True, slots=True)
class Heard:
    """What a listener made of a piece of sound."""

    lines: tuple[Line, ...] = ()
    unsupported: tuple[Unsupported, ...] = ()
    """Speech that was left out because it is not in a language the listener knows."""
    language: str | None = None
    """The language of the lines where the listener can tell (``en``), else ``None``."""


@runtime_checkable
class Listener(Protocol):
    """Turns sound into words."""

    @property
    def key(self) -> str:
        """Identity of model and settings."""

    @property
    def languages(self) -> tuple[str, ...]:
        """Languages it can transcribe, as two-letter codes."""

    def listen(self, samples: Samples, start: float = 0.0) -> Heard:
        """Words in 16 kHz mono float samples; ``start`` is the film time of the first sample."""
