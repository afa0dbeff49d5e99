"""On-screen text by RapidOCR (PP-OCRv6 small, weights inside its wheel).

It reads Chinese, English and other languages in Latin script, and needs neither network nor
display. A frame takes about a second of one core, so :mod:`longtake.algorithms.shots` decides which
frames to read. It drops spaces in small print, so :mod:`longtake.algorithms.phrases` matches
without spaces.
"""

from __future__ import annotations

import threading
from functools import cached_property
from importlib import metadata
from typing import Any

import numpy as np

from longtake.perception.protocols import TextBox
from longtake.perception.runtime import Compute
from longtake.types import Frame

SCORE = 0.5
"""Text with a lower score is left out (RapidOCR's own default)."""


class RapidReader:
    """The built-in reader."""

    def __init__(self, *, compute: Compute | None = None, score: float = SCORE) -> None:
        self._threads = (compute or Compute()).threads
        self._score = score
        self._lock = threading.Lock()  # the engine keeps the scale of the last picture as state
        self.key = f"rapidocr-{metadata.version('rapidocr')}:{score}"

    @cached_property
    def _engine(self) -> Any:
        """Loaded on first use, because it takes a second."""
        from rapidocr import RapidOCR

        return RapidOCR(
            params={
                "Global.log_level": "critical",
                "Global.text_score": self._score,
                "Global.use_cls": False,  # film text is upright
                "EngineConfig.onnxruntime.intra_op_num_threads": self._threads or -1,
            }
        )

    def read(self, frame: Frame) -> list[TextBox]:
        """The text in a frame, top to bottom, then left to right."""
        height, width = frame.pixels.shape[:2]
        picture = np.ascontiguousarray(frame.pixels[:, :, ::-1])  # BGR, as OpenCV orders channels
        with self._lock:
            result = self._engine(picture)
        if result.txts is None:
            return []
        boxes = []
        for text, corners, score in zip(result.txts, result.boxes, result.scores, strict=True):
            if text.strip():
                boxes.append(TextBox(text, _share(corners, width, height), float(score)))
        # the engine promises no order
        return sorted(boxes, key=lambda box: (box.box[1], box.box[0]))


def _share(corners: Any, width: int, height: int) -> tuple[float, float, float, float]:
    # boxes may reach slightly beyond the picture
    points = np.clip(np.asarray(corners, np.float64) / (width, height), 0, 1)
    left, top = points.min(axis=0)
    right, bottom = points.max(axis=0)
    return float(left), float(top), float(right), float(bottom)
