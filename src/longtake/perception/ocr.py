"""On-screen text by RapidOCR (PP-OCRv6 small, weights inside its wheel).

It reads Chinese, English and other languages in Latin script, and needs neither network nor
display. A frame takes more than a second of one core, so :mod:`longtake.algorithms.shots` decides
which frames to read, and a look at a small copy decides whether a frame is read at all: most show
no text. It drops spaces in small print, so :mod:`longtake.algorithms.phrases` matches without
spaces.
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


GLANCE = 640
"""Longer side, in pixels, of the copy in which text is looked for first. Text that is found there
is searched for again in the whole frame; ``benchmarks/onscreen.py`` measures what is missed."""


class RapidReader:
    """The built-in reader."""

    def __init__(self, *, compute: Compute | None = None, score: float = SCORE) -> None:
        self._threads = (compute or Compute()).threads
        self._score = score
        self._lock = threading.Lock()  # the engine keeps the scale of the last picture as state
        self.key = f"rapidocr-{metadata.version('rapidocr')}:{score}:glance{GLANCE}"

    @cached_property
    def _engine(self) -> Any:
        """Detects and recognises; loaded on first use, because it takes a second."""
        return self._open()

    @cached_property
    def _scout(self) -> Any:
        """Detects in a small copy of the frame."""
        return self._open({"Det.limit_type": "max", "Det.limit_side_len": GLANCE})

    def _open(self, params: dict[str, Any] | None = None) -> Any:
        from rapidocr import RapidOCR

        common = {
            "Global.log_level": "critical",
            "Global.text_score": self._score,
            "Global.use_cls": False,  # film text is upright
            "EngineConfig.onnxruntime.intra_op_num_threads": self._threads or -1,
        }
        return RapidOCR(params=common | (params or {}))

    def sees_text(self, picture: Any) -> bool:
        """Whether a small copy of a picture (BGR) shows text."""
        with self._lock:
            result = self._scout(picture, use_det=True, use_cls=False, use_rec=False)
        return result.boxes is not None and len(result.boxes) > 0

    def read(self, frame: Frame) -> list[TextBox]:
        """The text in a frame, top to bottom, then left to right."""
        height, width = frame.pixels.shape[:2]
        picture = np.ascontiguousarray(frame.pixels[:, :, ::-1])  # BGR, as OpenCV orders channels
        if not self.sees_text(picture):
            return []
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
