"""On-screen text by RapidOCR (PP-OCRv6 small, weights inside its wheel).

It reads Chinese, English and other languages in Latin script, and needs neither network nor
display. Text is looked for in a small copy of a frame and read in the frame itself; only where the
copy shows small print is the whole frame searched, which takes more than a second of one core.
What looks the same at the same place as in the last frame is not read again.
:mod:`longtake.algorithms.shots` decides which frames to read. Spaces are dropped in small print, so
:mod:`longtake.algorithms.phrases` matches without spaces.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from typing import Any

import numpy as np

from longtake.perception.protocols import TextBox
from longtake.perception.runtime import Compute, batches
from longtake.types import Frame

SCORE = 0.5
"""Text with a lower score is left out (RapidOCR's own default)."""


COPY = 640
"""Longer side of the copy, in pixels; ``benchmarks/onscreen.py`` measures what is missed."""
SMALL = 30
"""Height of a box in pixels of the frame below which the whole frame is searched. Boxes found in
the copy are generous: letters of 8 to 16 pixels have boxes of 21 to 30."""
FEW = 3
"""Low boxes that are read at once to see whether there is small print."""
PATCH = 24
"""Height in pixels at which two crops of a text are compared."""
SAME = 3.0
"""Difference (0 to 255) of the most changed part of a crop below which it shows the same text. A
digit that changes in a clock differs by 20 and more, but a page that comes into focus by 3."""
MOVED = 3.0
"""Pixels that a box may move between two frames and still be compared."""


class RapidReader:
    """The built-in reader."""

    def __init__(self, *, compute: Compute | None = None, score: float = SCORE) -> None:
        self._threads = (compute or Compute()).threads
        self._score = score
        self._lock = threading.Lock()  # the engine keeps the scale of the last picture as state
        self._last: list[_Read] = []
        self.key = f"rapidocr-{metadata.version('rapidocr')}:{score}:copy{COPY}"

    @cached_property
    def _thorough(self) -> Any:
        """Searches the whole frame; loaded on first use, because it takes a second."""
        return self._open()

    @cached_property
    def _quick(self) -> Any:
        """Searches the small copy, and reads."""
        return self._open({"Det.limit_type": "max", "Det.limit_side_len": COPY})

    def _open(self, params: dict[str, Any] | None = None) -> Any:
        from rapidocr import RapidOCR

        common = {
            "Global.log_level": "critical",
            "Global.use_cls": False,  # film text is upright
            "Global.use_rec": False,  # :meth:`_recognise` reads, and only what is new
            "EngineConfig.onnxruntime.intra_op_num_threads": self._threads or -1,
        }
        return RapidOCR(params=common | (params or {}))

    def read(self, frame: Frame) -> list[TextBox]:
        """The text in a frame, top to bottom, then left to right."""
        height, width = frame.pixels.shape[:2]
        picture = np.ascontiguousarray(frame.pixels[:, :, ::-1])  # BGR, as OpenCV orders channels
        with self._lock:
            corners = _corners(self._quick(picture))
            if self._small_print(picture, corners):
                corners = _corners(self._thorough(picture))
            read = self._recognise(picture, corners)
            self._last = read
        legible = [each for each in read if each.score >= self._score and each.text.strip()]
        boxes = [TextBox(e.text, _share(e.corners, width, height), e.score) for e in legible]
        # the engine promises no order
        return sorted(boxes, key=lambda box: (box.box[1], box.box[0]))

    def _small_print(self, picture: Any, corners: Sequence[Any]) -> bool:
        """Whether a low box holds text; most that do not are textures."""
        low = [each for each in corners if _rise(each, picture.shape[0]) < SMALL]
        for some in batches(low, FEW):
            read = self._recognise(picture, some)
            self._last = [*self._last, *read]
            if any(each.score >= self._score and each.text.strip() for each in read):
                return True
        return False

    def _recognise(self, picture: Any, corners: Sequence[Any]) -> list[_Read]:
        """Text and score of each box; those known from the last frame are not read again."""
        from rapidocr.utils.process_img import get_rotate_crop_image

        read: list[_Read] = []
        crops, places = [], []
        for place, each in enumerate(corners):
            crop = get_rotate_crop_image(picture, each.copy())
            patch = _patch(crop)
            known = next((old for old in self._last if old.shows(each, patch)), None)
            read.append(_Read(each, patch, "", 0.0) if known is None else known)
            if known is None:
                crops.append(crop)
                places.append(place)
        if crops:
            result = self._quick.recognize_txt(crops)
            for place, text, score in zip(places, result.txts, result.scores, strict=True):
                blank = read[place]
                read[place] = _Read(blank.corners, blank.patch, text, float(score))
        return read


@dataclass(frozen=True)
class _Read:
    """A box that was read, legible or not."""

    corners: Any
    patch: Any
    """What the box looks like, small and grey."""
    text: str
    score: float

    def shows(self, corners: Any, patch: Any) -> bool:
        """Whether a box at these corners that looks like this holds the same text."""
        if np.abs(self.corners - corners).max() > MOVED or self.patch.shape != patch.shape:
            return False
        gap = np.abs(self.patch - patch)
        # a letter is about half as wide as it is high; the mean of the line would hide it
        parts = np.array_split(gap, max(1, gap.shape[1] * 2 // PATCH), axis=1)
        return bool(max(part.mean() for part in parts) < SAME)


def _patch(crop: Any) -> Any:
    import cv2

    height, width = crop.shape[:2]
    # widths in steps, since a box that stays may change by a pixel
    across = max(1, round(width / height * 2)) * PATCH // 2
    small = cv2.resize(crop, (across, PATCH), interpolation=cv2.INTER_AREA)
    return small.mean(axis=2, dtype=np.float32)


def _corners(result: Any) -> list[Any]:
    # without any text, the engine returns an object that has no boxes
    found = getattr(result, "boxes", None)
    return [] if found is None else [np.asarray(box, np.float32) for box in found]


def _rise(corners: Any, height: int) -> float:
    """Height of a box in pixels, inside the frame."""
    rows = np.clip(corners[:, 1], 0, height)
    return float(rows.max() - rows.min())


def _share(corners: Any, width: int, height: int) -> tuple[float, float, float, float]:
    # boxes may reach slightly beyond the picture
    points = np.clip(np.asarray(corners, np.float64) / (width, height), 0, 1)
    left, top = points.min(axis=0)
    right, bottom = points.max(axis=0)
    return float(left), float(top), float(right), float(bottom)
