"""What perception offers to the rest of longtake: encoders, a reader and a listener.

Implementations are built once and may be called from several threads. The same input gives the same
output whatever else is in the batch (within float tolerance), and an empty input gives an empty
array of the right width.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from longtake.types import Frame, Line, Segment

Array: TypeAlias = NDArray[np.float32]
Samples: TypeAlias = NDArray[np.float32]


class VectorEncoder(Protocol):
    """What encoders of pictures and of texts have in common."""

    @property
    def name(self) -> str:
        """The encoder's name in a configuration."""

    @property
    def key(self) -> str:
        """Identity of model, weights and preprocessing: equal keys give equal vectors."""

    @property
    def dim(self) -> int:
        """Length of a vector."""


@runtime_checkable
class ImageEncoder(VectorEncoder, Protocol):
    """Turns pictures into vectors."""

    @property
    def size(self) -> int:
        """Shorter side in pixels that frames need; smaller frames lose detail."""

    def images(self, frames: Sequence[Frame]) -> Array:
        """One unit row per frame, float32."""


@runtime_checkable
class TextEncoder(VectorEncoder, Protocol):
    """Turns texts into vectors."""

    def texts(self, texts: Sequence[str]) -> Array:
        """One unit row per text, float32."""


@runtime_checkable
class ImageTextEncoder(ImageEncoder, TextEncoder, Protocol):
    """Pictures and texts in one space: their cosine says how well they fit."""

    @property
    def logit_scale(self) -> float | None:
        """Factor that turns a cosine into the logit the model was trained on, where known."""

    @property
    def thresholds(self) -> Mapping[str, float]:
        """Thresholds on this encoder's scale, by name; only those with a source or a derivation."""


class FrameNetwork(Protocol):
    """A network whose output is stored once per frame for all encoders derived from it."""

    @property
    def layer(self) -> str:
        """Name of the stored layer."""

    @property
    def key(self) -> str:
        """Identity of model, weights and preprocessing."""

    @property
    def size(self) -> int:
        """Shorter side in pixels that frames need."""

    def outputs(self, frames: Sequence[Frame]) -> Array:
        """One row per frame, containing everything that derived encoders need."""


@runtime_checkable
class DerivedEncoder(Protocol):
    """An image encoder whose vectors follow from the stored output of a network.

    The film is then decoded and the network run once, however many encoders build on it. Encoders
    without this have their own vectors stored instead.
    """

    @property
    def network(self) -> FrameNetwork:
        """The network whose output is stored."""

    def from_outputs(self, outputs: Array) -> Array:
        """The vectors of frames whose network output is given; equal to :meth:`images` of them."""


@runtime_checkable
class CalibratedEncoder(Protocol):
    """An image–text encoder that can tell a match from the best of many poor fits.

    ``thresholds["surprise"]`` is the value from which a picture counts as showing the text.
    """

    @property
    def thresholds(self) -> Mapping[str, float]:
        """Thresholds by name, ``surprise`` among them."""

    def surprise(self, texts: Array, images: Array) -> Array:
        """How far each picture stands out for each text (texts × images)."""


@runtime_checkable
class VideoTextEncoder(Protocol):
    """Scores a clip, given as the vectors of its frames, against texts."""

    @property
    def key(self) -> str:
        """Identity of what turns frame vectors into scores."""

    @property
    def thresholds(self) -> Mapping[str, float]:
        """Thresholds on the scale of the scores, by name, where they were measured."""

    def scores(self, frames: Array, texts: Array) -> Array:
        """One score per text for the clip whose frame vectors are the rows of ``frames``."""


@runtime_checkable
class Reranker(Protocol):
    """Reads a question and a text together: how well the text answers the question."""

    @property
    def key(self) -> str:
        """Identity of model and weights."""

    @property
    def thresholds(self) -> Mapping[str, float]:
        """Scores from which a text is relevant, by kind of question, where they were measured."""

    def scores(self, question: str, texts: Sequence[str]) -> Array:
        """One score per text, higher for a better answer; on the scale of the model's logits."""


@dataclass(frozen=True, slots=True)
class Tag:
    """Something visible in a picture, with the model's probability."""

    name: str
    probability: float


@dataclass(frozen=True, slots=True)
class TextBox:
    """Text in a picture: its content, place and score."""

    text: str
    box: tuple[float, float, float, float]
    """Left, top, right, bottom, each as a fraction of the picture's width or height."""
    score: float


@runtime_checkable
class TextReader(Protocol):
    """Reads the text in a picture."""

    @property
    def key(self) -> str:
        """Identity of models and settings."""

    def read(self, frame: Frame) -> list[TextBox]:
        """The text in a frame, top to bottom."""


@dataclass(frozen=True, slots=True)
class UnsupportedSpeech:
    """A stretch of sound that was not transcribed, and why."""

    segment: Segment
    reason: str


@dataclass(frozen=True, slots=True)
class Heard:
    """What a listener recognised in a piece of sound."""

    lines: tuple[Line, ...] = ()
    unsupported: tuple[UnsupportedSpeech, ...] = ()
    """Speech left out because it is not in a language the listener knows."""


@runtime_checkable
class SpeechRecognizer(Protocol):
    """Transcribes speech."""

    @property
    def key(self) -> str:
        """Identity of model and settings."""

    def listen(self, samples: Samples, start: float = 0.0) -> Heard:
        """Transcribe 16 kHz mono float samples; ``start`` is the film time of the first sample."""


@dataclass(frozen=True)
class Preprocessing:
    """Resize, crop, normalise.

    ``crop`` scales the shorter side to ``resize`` and takes the central square of ``side``;
    ``squash`` scales the whole picture to that square, so that the edges of a wide frame are kept.
    """

    side: int
    resize: int
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    filter: Literal["bilinear", "bicubic"] = "bicubic"
    fit: Literal["crop", "squash"] = "crop"

    @property
    def key(self) -> str:
        """Everything that changes the output, as text."""
        key = f"{self.fit}{self.resize}:{self.side}:{self.filter}:{self.mean}:{self.std}"
        return key.replace(" ", "")

    @property
    def size(self) -> int:
        """Shorter side in pixels that frames need."""
        return self.side if self.fit == "squash" else self.resize

    def prepare(self, frames: Sequence[Frame]) -> Array:
        """Frames × 3 × side × side, float32."""
        pixels = np.stack([self._square(frame.pixels) for frame in frames])
        # (x / 255 − mean) / std as one multiplication and one subtraction
        scale = 1 / (255 * np.asarray(self.std, np.float32))
        shift = np.asarray(self.mean, np.float32) / np.asarray(self.std, np.float32)
        values = pixels * scale.astype(np.float32) - shift
        return np.ascontiguousarray(values.transpose(0, 3, 1, 2), dtype=np.float32)

    def _square(
        self, pixels: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]
    ) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
        from PIL import Image

        filters = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}
        height, width = pixels.shape[:2]
        picture = Image.fromarray(np.ascontiguousarray(pixels))
        if self.fit == "squash":
            return np.asarray(picture.resize((self.side, self.side), filters[self.filter]))
        # cropping and scaling in one step: what is cropped need not be resized
        span = min(width, height) * self.side / self.resize
        left, top = (width - span) / 2, (height - span) / 2
        box = (left, top, left + span, top + span)
        return np.asarray(picture.resize((self.side, self.side), filters[self.filter], box=box))
