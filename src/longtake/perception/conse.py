"""Pictures and texts in one space by way of tags: weak, real, and on every machine.

ConSE (Norouzi et al., "Zero-Shot Learning by Convex Combination of Semantic Embeddings", ICLR 2014, eq. 4): a
picture is the mean of its most probable classes' text vectors, weighted by probability::

    f(x) = 1/Z · Σ_{t=1..T} p(ŷ(x, t) | x) · s(ŷ(x, t)),   T = 10

Each class is embedded with its WordNet definition ("abacus: a calculator that …"), not by its name alone as in
the paper: over 35 everyday phrases the right class came at rank 1.3 on average instead of 24.

What is not near one of ImageNet's 1,000 classes is not seen: no actions, no people by name, no counts.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from longtake.events import note
from longtake.perception.efficientnet import EfficientNetLite2, class_glosses
from longtake.perception.minilm import MiniLM
from longtake.perception.protocols import Tag
from longtake.perception.runtime import unit, write_once
from longtake.types import Frame

if TYPE_CHECKING:
    from longtake.perception.protocols import Array

TOP = 10
"""Classes that make up a picture's vector (T; the paper's best value)."""


CONFIDENT = 4.0
"""Value of :meth:`ConSE.surprise` from which a picture is taken to show what the text says.

Measured: of 300 made-up words and of 300 triples of random words, 0.7 % and 3.7 % reach it with the best of 133
frames of two films; of ImageNet's classes, 96.7 % reach it by their own name with a picture of nothing else.
The more different things a film shows, the more of them some nonsense will resemble.
"""


class ConSE:
    """The built-in image–text encoder: EfficientNet's tags in MiniLM's space."""

    name = "conse"
    logit_scale: float | None = None
    logit_bias: float | None = None

    def __init__(self, cache: Path, *, images: EfficientNetLite2, texts: MiniLM) -> None:
        self._images = images
        self._texts = texts
        self.dim = texts.dim
        self.thresholds: Mapping[str, float] = {"surprise": CONFIDENT}
        glosses = hashlib.sha256("\n".join(class_glosses()).encode()).hexdigest()[:8]
        self.key = f"{self.name}{TOP}:{glosses}:{texts.key}:{images.key}"
        identity = hashlib.sha256(f"{glosses}:{texts.key}".encode()).hexdigest()[:16]
        self._classes = self._class_vectors(cache / "models" / f"imagenet-glosses-{identity}.npy")

    @property
    def size(self) -> int:
        """Shorter side that frames need."""
        return self._images.size

    def images(self, frames: Sequence[Frame]) -> Array:
        """One unit row per frame, in the space of :meth:`texts`."""
        return self.from_probabilities(self._images.probabilities(frames))

    def texts(self, texts: Sequence[str]) -> Array:
        """One unit row per text."""
        return self._texts.texts(texts)

    def tags(self, frames: Sequence[Frame], top: int = 5) -> list[list[Tag]]:
        """The most probable classes of each frame."""
        return self._images.tags(frames, top)

    def from_probabilities(self, probabilities: Array) -> Array:
        """Vectors of pictures whose class probabilities are known: one pass serves tags and search."""
        weights = np.zeros_like(probabilities, dtype=np.float32)
        best = np.argpartition(-probabilities, TOP - 1, axis=1)[:, :TOP]
        np.put_along_axis(weights, best, np.take_along_axis(probabilities, best, axis=1), axis=1)
        return unit(weights @ self._classes)

    def surprise(self, texts: Array, images: Array) -> Array:
        """How far each picture stands out for each text (texts × images), in standard deviations.

        A cosine says little by itself: a word such as "bird" is fairly close to everything. The yardstick is
        the text's cosines with all 1,000 classes, that is with pictures of anything whatever.
        """
        background = texts @ self._classes.T
        spread = background.std(axis=1, keepdims=True)
        distance = texts @ images.T - background.mean(axis=1, keepdims=True)
        return np.asarray(distance / np.where(spread > 0, spread, 1), np.float32)

    def _class_vectors(self, file: Path) -> Array:
        def encode() -> bytes:
            buffer = io.BytesIO()
            np.save(buffer, self._texts.texts(class_glosses()))
            return buffer.getvalue()

        try:
            return np.asarray(np.load(write_once(file, encode), allow_pickle=False), np.float32)
        except (ValueError, EOFError) as error:
            # damaged since it was written: made again, which takes seconds
            note("damaged", file=str(file), why=str(error))
            file.unlink(missing_ok=True)
            return np.asarray(np.load(write_once(file, encode), allow_pickle=False), np.float32)
