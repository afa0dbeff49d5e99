"""Footage for tests of methods: plain-coloured pictures, and an encoder that the test defines."""

from collections.abc import Mapping, Sequence

import numpy as np

from longtake.footage.plain import PlainFootage
from longtake.types import Frame, Line


class Space:
    """An encoder's card."""

    name = "test"
    logit_scale: float | None = None

    def __init__(self) -> None:
        self.thresholds: dict[str, float] = {}


class TestFootage(PlainFootage):
    """A film of ``count`` seconds; ``words`` maps each text to the moments that match it.

    Every text has an axis of its own in the space of the encoder.
    """

    __test__ = False

    def __init__(
        self,
        count: int,
        words: Mapping[str, Sequence[int]] | None = None,
        lines: Sequence[Line] = (),
        onscreen: Sequence[Line] = (),
    ):
        self.name = "test film"
        self.duration = float(count)
        self.times = np.arange(count, dtype=np.float64)
        self.encoder = Space()
        self._words = dict(words or {})
        self._lines = list(lines)
        self._onscreen = list(onscreen)
        self.shown: list[float] = []

    def at(self, times, *, width=None):
        self.shown += list(times)
        return [Frame(float(t), np.full((36, 64, 3), int(t) % 256, np.uint8)) for t in times]

    def embeddings(self):
        rows = np.zeros((len(self.times), len(self._words) + 1), np.float32)
        rows[:, -1] = 1.0
        for axis, moments in enumerate(self._words.values()):
            for rank, moment in enumerate(moments):
                rows[moment] = 0.0
                rows[moment, axis] = 1.0 - 0.1 * rank
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def encode(self, texts):
        rows = np.zeros((len(texts), len(self._words) + 1), np.float32)
        for row, text in enumerate(texts):
            rows[row, list(self._words).index(text) if text in self._words else -1] = 1.0
        return rows

    def meanings(self, texts):
        """Bags of words."""
        vocabulary = sorted({word for text in texts for word in text.lower().split()})
        rows = np.array(
            [[text.lower().split().count(w) for w in vocabulary] for text in texts], np.float32
        )
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        return rows / np.where(norms > 0, norms, 1)

    def features(self):
        return self.embeddings()

    def speech(self, within=None):
        return [line for line in self._lines if within is None or line.segment.overlap(within) > 0]

    def known_lines(self):
        return self.speech(), self.onscreen()

    def onscreen(self, within=None):
        return [line for line in self._onscreen if not within or line.segment.overlap(within) > 0]
