"""On-screen text by RapidOCR (PP-OCRv6 small, weights inside its wheel).

It reads Chinese, English and other languages in Latin script, and needs neither network nor
display. Text is looked for in a small copy of a frame and read in the frame itself; only where the
copy shows small print is the whole frame searched, which takes more than a second of one core.
:mod:`longtake.algorithms.shots` decides which frames to read. Spaces are dropped in small print, so
:mod:`longtake.algorithms.phrases` matches without spaces.
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


COPY = 640
"""Longer side of the copy, in pixels; ``benchmarks/onscreen.py`` measures what is missed."""
SMALL = 30
"""Height of a box in pixels of the frame below which the whole frame is searched. Boxes found in
the copy are generous: letters of 8 to 16 pixels have boxes of 21 to 30."""


class RapidReader:
    """The built-in reader."""

    def __init__(self, *, compute: Compute | None = None, score: float = SCORE) -> None:
        self._threads = (compute or Compute()).threads
        self._score = score
        self._lock = threading.Lock()  # the engine keeps the scale of the last picture as state
        self.key = f"rapidocr-{metadata.version('rapidocr')}:{score}:copy{COPY}"

    @cached_property
    def _thorough(self) -> Any:
        """Searches the whole frame; loaded on first use, because it takes a second."""
        return self._open()

    @cached_property
    def _quick(self) -> Any:
        """Searches the small copy."""
        return self._open({"Det.limit_type": "max", "Det.limit_side_len": COPY})

    def _open(self, params: dict[str, Any] | None = None) -> Any:
        from rapidocr import RapidOCR

        common = {
            "Global.log_level": "critical",
            "Global.text_score": self._score,
            "Global.use_cls": False,  # film text is upright
            "EngineConfig.onnxruntime.intra_op_num_threads": self._threads or -1,
        }
        return RapidOCR(params=common | (params or {}))

    def read(self, frame: Frame) -> list[TextBox]:
        """The text in a frame, top to bottom, then left to right."""
        height, width = frame.pixels.shape[:2]
        picture = np.ascontiguousarray(frame.pixels[:, :, ::-1])  # BGR, as OpenCV orders channels
        with self._lock:
            boxes = _boxes(self._quick(picture), width, height)
            if any((box.box[3] - box.box[1]) * height < SMALL for box in boxes):
                boxes = _boxes(self._thorough(picture), width, height)
        # the engine promises no order
        return sorted(boxes, key=lambda box: (box.box[1], box.box[0]))


def _boxes(result: Any, width: int, height: int) -> list[TextBox]:
    # without any text, the engine returns an object that has no texts at all
    if getattr(result, "txts", None) is None:
        return []
    boxes = []
    for text, corners, score in zip(result.txts, result.boxes, result.scores, strict=True):
        if text.strip():
            boxes.append(TextBox(text, _share(corners, width, height), float(score)))
    return boxes


def _share(corners: Any, width: int, height: int) -> tuple[float, float, float, float]:
    # boxes may reach slightly beyond the picture
    points = np.clip(np.asarray(corners, np.float64) / (width, height), 0, 1)
    left, top = points.min(axis=0)
    right, bottom = points.max(axis=0)
    return float(left), float(top), float(right), float(bottom)
