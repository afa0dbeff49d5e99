"""Films whose frames show their own number, so that a test can tell which frame it was given."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import islice
from pathlib import Path

import numpy as np

from longtake.video.clip import Encoding, write_film

BITS = 12
CELL = 16


def numbered(number: int, *, width: int = 128, height: int = 96) -> np.ndarray:
    """A picture that shows ``number`` in binary as squares, on a background that drifts.

    The squares are in the upper left, most significant bit first.
    """
    picture = np.zeros((height, width, 3), dtype=np.uint8)
    picture[...] = (90 + number % 40, 110, 130 - number % 40)
    for bit in range(BITS):
        row, column = divmod(bit, 6)
        on = number >> (BITS - 1 - bit) & 1
        rows = slice(row * CELL, (row + 1) * CELL)
        columns = slice(column * CELL, (column + 1) * CELL)
        picture[rows, columns] = 255 if on else 0
    return picture


def read_number(pixels: np.ndarray) -> int:
    """The number that a picture shows; survives compression."""
    number = 0
    for bit in range(BITS):
        row, column = divmod(bit, 6)
        # compression blurs the edges of the squares
        rows = slice(row * CELL + 4, (row + 1) * CELL - 4)
        columns = slice(column * CELL + 4, (column + 1) * CELL - 4)
        number = number << 1 | int(pixels[rows, columns].mean() > 127)
    return number


def pictures(count: int) -> Iterator[np.ndarray]:
    return (numbered(i) for i in range(count))


def steady(count: int, fps: int) -> list[float]:
    return [i / fps for i in range(count)]


def jerky(count: int) -> list[float]:
    """Times of a variable frame rate: frames last 40 to 440 ms."""
    gaps = [0.04 + 0.1 * (i * 7 % 5) for i in range(count)]
    return np.round(np.cumsum([0.0, *gaps[:-1]]), 3).tolist()


X264 = {"preset": "veryfast", "bf": "3", "crf": "20"}


@dataclass(frozen=True)
class Recipe:
    """How to make a film, and its true frame times."""

    name: str
    encoding: Encoding = field(default_factory=lambda: Encoding(options=X264, gop=25))
    count: int = 120
    times: list[float] | None = None
    """Presentation times as written; the film's own clock starts at zero."""
    sound_from: float | None = None
    """Time in seconds at which the sound track begins, if there is one."""
    first: float = 0.0
    """Time in seconds at which the first picture appears."""
    after: Callable[[Path], None] | None = None

    @property
    def truth(self) -> list[float]:
        """When each frame appears."""
        times = self.times or [float(i / self.encoding.fps) for i in range(self.count)]
        return [t - times[0] + self.first for t in times]

    def make(self, folder: Path) -> Path:
        path = folder / self.name
        if not path.exists():
            sound = None
            if self.sound_from is not None:
                sound = np.sin(np.arange(16_000 * 12) * 0.1).astype(np.float32) * 0.3
            with ordinary_priority():
                write_film(
                    path,
                    pictures(self.count),
                    self.encoding,
                    times=self.times,
                    sound=sound,
                    audio_start=self.sound_from or 0.0,
                )
        return path


@contextmanager
def ordinary_priority() -> Iterator[None]:
    """Take back what SVT-AV1 does where it runs as root: it makes the thread that opens it, and all
    that this thread starts later, real-time ones, for which everything else on the machine waits.
    """
    try:
        yield
    finally:
        if hasattr(os, "sched_setscheduler"):  # Linux
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def x264(**changes: object) -> Encoding:
    return replace(Encoding(options=X264, gop=25), **changes)


def begin_film(path: Path, pictures: Iterable[np.ndarray], encoding: Encoding, **_: object) -> None:
    """In place of ``write_film`` where a film must be there, but not as long as it would be."""
    write_film(path, islice(pictures, 10), encoding)


VP8 = {"deadline": "realtime", "cpu-used": "8", "auto-alt-ref": "1", "lag-in-frames": "16"}

FILMS = [
    Recipe("plain.mp4"),
    Recipe("no_b_frames.mp4", x264(options={**X264, "bf": "0"}, gop=10)),
    Recipe(
        "open_gop.mp4",
        x264(options={**X264, "x264-params": "open-gop=1:keyint=20:scenecut=0"}, gop=20),
    ),
    Recipe("one_group.mp4", x264(gop=10_000)),
    Recipe("fragmented.mp4", x264(container={"movflags": "frag_keyframe+empty_moov"})),
    Recipe(
        "hevc.mkv",
        x264(codec="libx265", options={"preset": "ultrafast", "x265-params": "log-level=none"}),
    ),
    Recipe("vp8_hidden_frames.webm", x264(codec="libvpx", options=VP8)),
    Recipe("vp9.webm", x264(codec="libvpx-vp9", options={"deadline": "realtime", "cpu-used": "8"})),
    Recipe(
        "av1.mkv",
        x264(codec="libsvtav1", options={"preset": "8", "crf": "15", "svtav1-params": "keyint=25"}),
    ),
    Recipe(
        "mpeg2.mpg",
        x264(codec="mpeg2video", fps=Fraction(25), options={"bf": "2", "b": "3000000"}, gop=15),
        count=150,
    ),
    Recipe("broadcast.ts", x264(fps=Fraction(25)), count=250),
    Recipe("variable_rate.mkv", times=jerky(90), count=90),
    Recipe("variable_rate.mp4", times=jerky(90), count=90),
    Recipe("mjpeg.avi", x264(codec="mjpeg", options={})),
    Recipe("b_frames.avi", x264(codec="mpeg4", options={"bf": "2", "b": "3000000"}, gop=12)),
    Recipe("raw.h264", x264(fps=Fraction(25)), count=100),
    Recipe("starts_late.mkv", times=[5 + i / 10 for i in range(60)], count=60),
    Recipe(
        "sound_first.mkv",
        times=[2 + i / 10 for i in range(60)],
        count=60,
        sound_from=0.0,
        first=2.0,
    ),
    Recipe("one_frame.mp4", count=1),
]
