"""A world as footage: frames are drawn from the script, without an encoded film."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from longtake.footage.plain import PlainFootage
from longtake.lab.drawing import Painter
from longtake.lab.encoder import LabEncoder
from longtake.lab.profile import PROFILE, numbers
from longtake.lab.world import Script
from longtake.types import Frame, Line, Pixels, Segment
from longtake.video.video import sample_times


class LabFootage(PlainFootage):
    """Footage of a script. Frames equal those of the written film except for compression."""

    def __init__(
        self,
        script: Script,
        *,
        encoder: LabEncoder | None = None,
        fps: float = 1.0,
        code: bool = True,
        width: int | None = None,
    ) -> None:
        self.script = script
        self.encoder = encoder or LabEncoder()
        self._fps = fps
        self._width = width
        self._painter = Painter(script, code=code)
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[float, int | None], Frame] = OrderedDict()

    @property
    def name(self) -> str:
        """The world's name."""
        return self.script.name

    @property
    def duration(self) -> float:
        """Length in seconds."""
        return self.script.duration

    @cached_property
    def times(self) -> NDArray[np.float64]:
        """The sampling grid; one moment per second by default."""
        return sample_times(self.duration, self._fps)

    def at(self, times: Sequence[float], *, width: int | None = None) -> list[Frame]:
        """The frames at the given times."""
        return [self._frame(time, width or self._width) for time in times]

    def embeddings(self) -> NDArray[np.float32]:
        """One unit vector per moment of the grid."""
        return self._embeddings

    @cached_property
    def _embeddings(self) -> NDArray[np.float32]:
        return self.encoder.moments(self.script, [int(time) for time in self.times])

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit vector per text, in the space of :meth:`embeddings`."""
        return self.encoder.texts(texts)

    def features(self) -> NDArray[np.float32]:
        """The appearance of each moment: place, light, people, and a little noise."""
        return self._features

    @cached_property
    def _features(self) -> NDArray[np.float32]:
        dim = PROFILE.encoder.dim
        rows = np.zeros((len(self.times), dim), np.float32)
        for number, time in enumerate(self.times):
            scene = self.script.scene_at(float(time))
            look = scene.look
            parts = [("place", scene.place), ("light", look.palette), ("detail", look.variant)]
            parts += [("person", str(person)) for person in scene.people]
            content = sum(numbers("look", *part).normal(size=dim) for part in parts)
            noise = numbers("looks", self.script.name, float(time)).normal(size=dim)
            # less noise than content, as features of one scene are similar
            rows[number] = content + 0.5 * noise
        return rows

    def meanings(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit vector per text, by meaning."""
        return self.encoder.texts(texts)

    def speech(self, within: Segment | None = None) -> list[Line]:
        """The narrator's lines."""
        return _inside(self.script.subtitles(), within)

    def known_lines(self) -> tuple[list[Line], list[Line]]:
        """All spoken and on-screen lines; reading a script costs nothing, so all are known."""
        return self.speech(), self.onscreen()

    def onscreen(self, within: Segment | None = None) -> list[Line]:
        """The text on signs."""
        return _inside(self.script.readings(), within)

    def _frame(self, time: float, width: int | None) -> Frame:
        rate = PROFILE.picture.fps
        # the written film shows each drawing from its own time until the next one
        inside = min(max(time, 0.0), self.duration - 1e-3)
        shown = int(inside * rate + 1e-6) / rate
        with self._lock:  # methods fetch frames from several threads
            frame = self._kept.get((shown, width))
            if frame is None:
                frame = Frame(shown, _scaled(self._painter.frame(shown), width))
                frame.pixels.setflags(write=False)  # the same frame is returned to several callers
                self._kept[shown, width] = frame
                # 200 MB; questions about one film often look at the same frames
                if len(self._kept) > 500:
                    self._kept.popitem(last=False)
        return frame


def _scaled(pixels: Pixels, width: int | None) -> Pixels:
    height, full = pixels.shape[:2]
    if width is None or width >= full:
        return pixels
    size = (width, max(1, round(height * width / full)))
    return np.asarray(Image.fromarray(pixels).resize(size, Image.Resampling.BOX))


def _inside(lines: Sequence[Line], within: Segment | None) -> list[Line]:
    if within is None:
        return list(lines)
    start, end = within.start, within.end
    return [line for line in lines if line.segment.start < end and line.segment.end > start]
