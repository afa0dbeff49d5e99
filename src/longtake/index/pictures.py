"""Frame layers made by perception."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtake.index.store import LayerKey
from longtake.perception.conse import ConSE
from longtake.perception.efficientnet import FEATURES, EfficientNetLite2
from longtake.perception.protocols import ImageEncoder
from longtake.types import Frame


class Looks:
    """What the built-in network makes of each frame: its features, then its class probabilities.

    One pass serves tags, event features and the built-in search.
    """

    def __init__(self, looker: EfficientNetLite2) -> None:
        self._looker = looker
        self.key = LayerKey("looks", 1, {"model": looker.key})
        self.side = looker.size

    def rows(self, frames: Sequence[Frame]) -> NDArray[Any]:
        """Features and probabilities side by side, in half precision."""
        return np.concatenate(self._looker.look(frames), axis=1).astype(np.float16)


class Embeddings:
    """Vectors of an encoder that is described by a card."""

    def __init__(self, encoder: ImageEncoder) -> None:
        self._encoder = encoder
        self.key = LayerKey("embeddings", 1, {"encoder": encoder.key})
        self.side = encoder.size

    def rows(self, frames: Sequence[Frame]) -> NDArray[Any]:
        """Unit rows in half precision."""
        return self._encoder.images(frames).astype(np.float16)


def features(looks: NDArray[Any]) -> NDArray[np.float32]:
    """The feature part of :class:`Looks`."""
    return np.asarray(looks[:, :FEATURES], np.float32)


def probabilities(looks: NDArray[Any]) -> NDArray[np.float32]:
    """The class probabilities in :class:`Looks`."""
    return np.asarray(looks[:, FEATURES:], np.float32)


def needed(encoder: ImageEncoder, looker: EfficientNetLite2) -> list[Looks | Embeddings]:
    """The layers that searching with an encoder stands on."""
    looks = Looks(looker)
    return [looks] if isinstance(encoder, ConSE) else [looks, Embeddings(encoder)]
