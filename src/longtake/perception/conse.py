"""Pictures and texts in one space by way of tags: a weak encoder that runs on every machine.

ConSE (Norouzi et al., "Zero-Shot Learning by Convex Combination of Semantic Embeddings", ICLR 2014,
eq. 4) represents a picture by the text vectors of its most probable classes, weighted by
probability::

    f(x) = 1/Z · Σ_{t=1..T} p(ŷ(x, t) | x) · s(ŷ(x, t)),   T = 10

Each class is embedded with its WordNet definition ("abacus: a calculator that …") rather than by
name alone as in the paper: over 35 everyday phrases the mean rank of the right class fell from 24
to 1.3.

Only what resembles one of ImageNet's 1,000 classes is seen: no actions, no named people, no counts.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from longtake.perception.efficientnet import EfficientNetLite2, class_glosses, probabilities_in
from longtake.perception.minilm import MiniLM
from longtake.perception.protocols import Array
from longtake.perception.runtime import unit, write_once
from longtake.tracing.events import note
from longtake.types import Frame

if TYPE_CHECKING:
    from longtake.perception.encoders import EncoderSetup

TOP = 10
"""Classes that make up a picture's vector (T; the paper's best value)."""
CONFIDENT = 4.0
"""Value of :meth:`ConSE.surprise` from which a picture counts as showing the text.

Measured on 133 frames of two films: 0.7 % of 300 made-up words and 3.7 % of 300 triples of random
words reach it with their best frame. Of ImageNet's classes, 96.7 % reach it by their own name with
a picture that shows nothing else. A more varied film gives nonsense more chances to match
something.
"""


class ConSE:
    """The built-in image–text encoder: EfficientNet's tags in MiniLM's space."""

    name = "conse"
    logit_scale: float | None = None

    def __init__(self, cache: Path, *, images: EfficientNetLite2, texts: MiniLM) -> None:
        self.network = images
        self._texts = texts
        self.dim = texts.dim
        self.thresholds: Mapping[str, float] = {"surprise": CONFIDENT}
        # part of the key, because other definitions give other vectors
        glosses = hashlib.sha256("\n".join(class_glosses()).encode()).hexdigest()[:8]
        self.key = f"{self.name}{TOP}:{glosses}:{texts.key}:{images.key}"
        identity = hashlib.sha256(f"{glosses}:{texts.key}".encode()).hexdigest()[:16]
        self._file = cache / "models" / f"imagenet-glosses-{identity}.npy"

    @property
    def size(self) -> int:
        """Shorter side in pixels that frames need."""
        return self.network.size

    def images(self, frames: Sequence[Frame]) -> Array:
        """One unit row per frame, in the space of :meth:`texts`."""
        return self.from_probabilities(self.network.probabilities(frames))

    def texts(self, texts: Sequence[str]) -> Array:
        """One unit row per text."""
        return self._texts.texts(texts)

    def from_outputs(self, outputs: Array) -> Array:
        """Vectors of pictures from the tagger's stored output."""
        return self.from_probabilities(probabilities_in(outputs))

    def from_probabilities(self, probabilities: Array) -> Array:
        """Vectors of pictures from their class probabilities (eq. 4)."""
        weights = np.zeros_like(probabilities, dtype=np.float32)
        # argpartition: the order among the best does not matter
        best = np.argpartition(-probabilities, TOP - 1, axis=1)[:, :TOP]
        np.put_along_axis(weights, best, np.take_along_axis(probabilities, best, axis=1), axis=1)
        return unit(weights @ self._classes)

    def surprise(self, texts: Array, images: Array) -> Array:
        """How far each picture stands out for each text (texts × images), in standard deviations.

        A cosine says little by itself: a word such as "bird" is fairly close to everything. It is
        therefore compared with the text's cosines with all 1,000 classes, that is, with arbitrary
        pictures.
        """
        background = texts @ self._classes.T
        spread = background.std(axis=1, keepdims=True)
        distance = texts @ images.T - background.mean(axis=1, keepdims=True)
        return np.asarray(distance / np.where(spread > 0, spread, 1), np.float32)

    @cached_property
    def _classes(self) -> Array:
        """The vectors of the classes.

        Encoding 1,000 definitions takes seconds, so they are encoded when they are needed, once,
        and kept on disk.
        """
        try:
            return _load(write_once(self._file, self._encode_classes))
        except (ValueError, EOFError) as error:
            # damaged since it was written; making it again takes seconds
            note("damaged", file=str(self._file), why=str(error))
            self._file.unlink(missing_ok=True)
            return _load(write_once(self._file, self._encode_classes))

    def _encode_classes(self) -> bytes:
        buffer = io.BytesIO()
        np.save(buffer, self._texts.texts(class_glosses()))
        return buffer.getvalue()


def open_conse(setup: EncoderSetup) -> ConSE:
    """ConSE over the built-in tagger and sentence encoder."""
    return ConSE(setup.cache, images=setup.builtins.tagger, texts=setup.builtins.sentences)


def _load(file: Path) -> Array:
    return np.asarray(np.load(file, allow_pickle=False), np.float32)
