"""On-screen text by the models of RapidOCR (PP-OCRv6 small, weights inside its wheel).

It reads Chinese, English and other languages in Latin script, and needs neither network nor
display. Black borders are cut off first. Text is looked for in a small copy of what is left and
read in the frame itself; only where the copy shows small print is all of it searched at full size,
which takes more than a second of one core. What looks the same at the same place as in the last
frame is not read again. :mod:`longtake.algorithms.shots` decides which frames to read. Spaces are
dropped in small print, so :mod:`longtake.algorithms.passages` matches without spaces.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from longtake._util import version_of
from longtake.perception.protocols import TextBox
from longtake.perception.runtime import Compute, batches, checked, load_network
from longtake.types import Frame

SCORE = 0.5
"""Text with a lower score is left out (RapidOCR's own default)."""
COPY = 640
"""Longer side of the copy, in pixels: of 40 lines in letters of 14 pixels and more it misses none
(``benchmarks/onscreen.py`` of commit 8d7bd4c)."""
SMALL = 30
"""Height of a box in pixels of the frame below which the whole frame is searched. Boxes found in
the copy are generous: letters of 8 to 16 pixels have boxes of 21 to 30."""
SHORT_LINE = 320 / 48
"""Length of a line, in multiples of its height, to which the recogniser pads shorter ones."""
AT_ONCE = 6 * SHORT_LINE
"""Length of all lines that are recognised at once: the network gives 18,000 numbers for every few
pixels of them, and six long lines would take half a gigabyte."""
PATCH = 24
"""Height in pixels at which two crops of a text are compared."""
SAME = 3.0
"""Difference (0 to 255) of the most changed part of a crop below which it shows the same text. A
digit that changes in a clock differs by 20 and more, but a page that comes into focus by 3."""
WEIGHTS_SHA256 = {
    "PP-OCRv6_det_small.onnx": "090f04abcd9d9a7498bc4ebf677e4cb9bdce1fe4197ddb7e529f1ef44e1ff94f",
    "PP-OCRv6_rec_small.onnx": "6f327246b50388f3c176ae304bd95767ea6dc0c9ae92153ef8cbe210b3c14884",
}
"""Of RapidOCR 3.10.0, as its ``MODEL_LICENSES.md`` lists them too."""

MARGIN = 16
"""Pixels around what is not black that are searched as well: text at an edge needs some room."""
WHOLE = 736
"""Pixels of a frame's shorter side in a search at full size, to which smaller frames are enlarged
(RapidOCR's own default)."""


class RapidReader:
    """The built-in reader."""

    def __init__(self, *, compute: Compute | None = None) -> None:
        self._compute = compute or Compute()
        self._lock = threading.Lock()  # the detector keeps its scale as state
        self._last: list[_Read] = []
        self.key = f"rapidocr-{version_of('rapidocr')}:{SCORE}:copy{COPY}:trimmed"

    @cached_property
    def _models(self) -> _Models:
        """Loaded on first use, because it takes a second."""
        return _Models(self._compute)

    def unload(self) -> None:
        """Free the memory of the models; they are loaded again on use."""
        with self._lock:
            self.__dict__.pop("_models", None)

    def read(self, frame: Frame) -> list[TextBox]:
        """The text in a frame, top to bottom, then left to right."""
        height, width = frame.pixels.shape[:2]
        picture = np.ascontiguousarray(frame.pixels[:, :, ::-1])  # BGR, as OpenCV orders channels
        area = _lit(picture)
        if area is None:
            return []
        with self._lock:
            read = self._recognise(picture, self._search(picture, area))
            self._last = read
        legible = [each for each in read if each.is_legible]
        boxes = [TextBox(e.text, _share(e.corners, width, height), e.score) for e in legible]
        # the detector promises no order
        return sorted(boxes, key=lambda box: (box.box[1], box.box[0]))

    def _search(self, picture: Any, area: tuple[slice, slice]) -> list[Any]:
        """The corners of each box with text."""
        lit = picture[area]
        copied = min(1.0, COPY / max(lit.shape[:2]))
        corners = self._detect(picture, area, copied)
        whole = max(1.0, WHOLE / min(picture.shape[:2]))
        # where a copy would be as large as the original, it has shown everything
        if whole > copied * 1.1 and self._small_print(picture, corners):
            corners = self._detect(picture, area, whole)
        return corners

    def _detect(self, picture: Any, area: tuple[slice, slice], scale: float) -> list[Any]:
        boxes = self._models.boxes(picture[area], scale)
        rows, columns = area
        return [each + np.array([columns.start, rows.start], np.float32) for each in boxes]

    def _small_print(self, picture: Any, corners: Sequence[Any]) -> bool:
        """Whether a low box holds text; most that do not are textures."""
        height = picture.shape[0]
        low = [each for each in corners if np.ptp(each[:, 1].clip(0, height)) < SMALL]
        # a few at once: the first that is legible settles it
        for some in batches(low, 3):
            read = self._recognise(picture, some)
            self._last = [*self._last, *read]
            if any(each.is_legible for each in read):
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
            for place, (text, score) in zip(places, self._models.texts(crops), strict=True):
                blank = read[place]
                read[place] = _Read(blank.corners, blank.patch, text, score)
        return read


class _Models:
    """RapidOCR's detector and recogniser, on sessions that leave the other cores alone."""

    def __init__(self, compute: Compute) -> None:
        import rapidocr
        from rapidocr.ch_ppocr_det import TextDetector
        from rapidocr.ch_ppocr_rec import TextRecognizer
        from rapidocr.utils.log import logger

        logger.setLevel("CRITICAL")  # it would announce every model on standard error
        folder = Path(rapidocr.__file__).parent / "models"
        # frames and lines differ in size: memory that is kept for each size would add up
        detector, recogniser = (
            load_network(checked(folder / name, sha256), compute, patterns=False, rounded=True)
            for name, sha256 in WEIGHTS_SHA256.items()
        )
        self._detector = TextDetector(_config("Det", detector))
        # with the doubles of its settings, it would compute the pixels as doubles
        self._detector.mean = list(np.asarray(self._detector.mean, np.float32))
        self._detector.std = list(np.asarray(self._detector.std, np.float32))
        self._recogniser = TextRecognizer(_config("Rec", recogniser))

    def boxes(self, picture: Any, scale: float) -> list[Any]:
        """The corners of each box with text in a picture that is searched at a scale."""
        if scale > 1:
            self._detector.limit_type = "min"
            self._detector.limit_side_len = round(min(picture.shape[:2]) * scale)
        else:
            self._detector.limit_type = "max"
            self._detector.limit_side_len = round(max(picture.shape[:2]) * scale)
        boxes = self._detector(picture).boxes
        return [] if boxes is None else [np.asarray(box, np.float32) for box in boxes]

    def texts(self, crops: Sequence[Any]) -> list[tuple[str, float]]:
        """Text and score of each line."""
        from rapidocr.ch_ppocr_rec import TextRecInput

        read = [("", 0.0)] * len(crops)
        for some in _of_similar_length([crop.shape[1] / crop.shape[0] for crop in crops]):
            output = self._recogniser(TextRecInput(img=[crops[k] for k in some]))
            for place, text, score in zip(some, output.txts or (), output.scores, strict=True):
                read[place] = (text, float(score))
        return read


def _of_similar_length(lengths: Sequence[float]) -> list[list[int]]:
    """The numbers of lines that are recognised at once: as many as :data:`AT_ONCE` allows."""
    groups: list[list[int]] = []
    for number in sorted(range(len(lengths)), key=lambda number: lengths[number]):
        # all lines of a group are padded to the longest, which comes last
        padded = max(SHORT_LINE, lengths[number])
        if groups and (len(groups[-1]) + 1) * padded <= AT_ONCE:
            groups[-1].append(number)
        else:
            groups.append([number])
    return groups


def _config(part: str, session: Any) -> Any:
    """RapidOCR's own settings for one of its models, with a session of ours."""
    import rapidocr
    from rapidocr.utils.parse_parameters import ParseParams

    settings = ParseParams.load(Path(rapidocr.__file__).parent / "config.yaml")[part]
    return _Settings({**settings, "session": session, "font_path": None})


class _Settings(dict[str, Any]):
    """Settings whose entries are attributes, too."""

    def __getattr__(self, name: str) -> Any:
        return self[name]


def _lit(picture: Any) -> tuple[slice, slice] | None:
    """The rows and columns of a picture that are not black, with a margin; ``None``: all black."""
    # by channel: the maximum over the last axis takes ten times as long; compression leaves black
    # a brightness of up to 20
    bright = np.maximum(np.maximum(picture[..., 0], picture[..., 1]), picture[..., 2]) > 32
    rows, columns = np.flatnonzero(bright.any(axis=1)), np.flatnonzero(bright.any(axis=0))
    if len(rows) == 0:
        return None
    return _widened(rows, len(bright)), _widened(columns, bright.shape[1])


def _widened(lit: Any, size: int) -> slice:
    begin, end = int(lit[0]) - MARGIN, int(lit[-1]) + 1 + MARGIN
    short = max(0, 64 - (end - begin))  # the detector needs some pixels in both directions
    return slice(max(0, begin - short // 2), min(size, end + short - short // 2))


@dataclass(frozen=True)
class _Read:
    """A box that was read, legible or not."""

    corners: Any
    patch: Any
    """What the box looks like, small and grey."""
    text: str
    score: float

    @property
    def is_legible(self) -> bool:
        """Whether it holds text, surely enough."""
        return self.score >= SCORE and bool(self.text.strip())

    def shows(self, corners: Any, patch: Any) -> bool:
        """Whether a box at these corners that looks like this holds the same text."""
        # pixels that a box may move between two frames
        if np.abs(self.corners - corners).max() > 3.0 or self.patch.shape != patch.shape:
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


def _share(corners: Any, width: int, height: int) -> tuple[float, float, float, float]:
    # boxes may reach slightly beyond the picture
    points = np.clip(np.asarray(corners, np.float64) / (width, height), 0, 1)
    left, top = points.min(axis=0)
    right, bottom = points.max(axis=0)
    return float(left), float(top), float(right), float(bottom)
