"""Joins real clips into one film of any length, or repeats one, for other benchmarks.

The clips follow one another again and again. Each is encoded once; further passes are copies of
its packets, so a repeated shot has the same pixels as the first time.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
from PIL import Image, ImageOps

from longtake.video.audio import listen
from longtake.video.clip import Encoding, write_film
from longtake.video.video import Video

WIDTH, HEIGHT, RATE = 1280, 720, 16_000


@dataclass(frozen=True)
class Placed:
    """A clip's place in the joined film."""

    clip: Path
    start: float
    end: float

    @property
    def seconds(self) -> float:
        """How long it is."""
        return self.end - self.start


def timeline(clips: Sequence[Path], seconds: float) -> list[Placed]:
    """The clips one after another until the film is long enough."""
    lengths = {clip: Video(clip).duration for clip in clips}
    placed: list[Placed] = []
    start = 0.0
    while start < seconds:
        clip = clips[len(placed) % len(clips)]
        # whole seconds keep sound and pictures together
        end = start + max(1.0, float(int(lengths[clip])))
        placed.append(Placed(clip, start, end))
        start = end
    return placed


def distinct(placed: Sequence[Placed]) -> float:
    """Seconds of the film that show something new; the others repeat an earlier pass."""
    return sum({place.clip: place.seconds for place in placed}.values())


def join(
    placed: Sequence[Placed], path: Path, *, fps: int = 24, gop: int = 120, sound: bool = True
) -> None:
    """Write the film: its first pass is encoded, the others are copies of its packets."""
    first = [place for place in placed if place.end <= distinct(placed)]
    part = path.with_suffix(".part.mp4")
    encoding = Encoding(fps=Fraction(fps), gop=gop, options={"preset": "veryfast"})
    pictures = (picture for place in first for picture in _pictures(place, fps))
    write_film(part, pictures, encoding, sound=_sound(first) if sound else None)
    repeat(part, path, placed[-1].end)
    part.unlink()


def _pictures(place: Placed, fps: int) -> Iterator[Any]:
    video = Video(place.clip)
    times = np.arange(round(place.seconds * fps)) / fps
    info = video.info
    width = min(WIDTH, HEIGHT * info.width // info.height)
    for frame in video.frames(np.minimum(times, video.duration - 1e-3), width=width):
        yield _filling(frame.pixels)


def _filling(pixels: Any) -> Any:
    """A picture as large as the frame allows, in its middle."""
    picture = Image.fromarray(pixels)
    size = ImageOps.contain(picture, (WIDTH, HEIGHT), Image.Resampling.BILINEAR)
    return np.asarray(ImageOps.pad(size, (WIDTH, HEIGHT)))


def _sound(placed: Sequence[Placed]) -> Any:
    sound = np.zeros(round(placed[-1].end * RATE), np.float32)
    for place in placed:
        video = Video(place.clip)
        if not video.info.audio:
            continue
        heard = [part.samples for part in listen(place.clip, origin=video.origin)]
        samples = np.concatenate([np.zeros(0, np.float32), *heard])
        samples = samples[: round(place.seconds * RATE)]
        first = round(place.start * RATE)
        sound[first : first + len(samples)] = samples
    return sound


def repeat(film: Path, path: Path, seconds: float) -> None:
    """Write a film over and over, its packets copied, until it is long enough."""
    with av.open(str(path), "w") as target:
        streams: dict[int, Any] = {}
        offset = 0.0
        while offset < seconds:
            with av.open(str(film)) as source:
                for stream in source.streams:
                    if stream.type in ("video", "audio") and stream.index not in streams:
                        streams[stream.index] = target.add_stream_from_template(stream)
                assert source.duration is not None
                # sound may begin before the pictures and end after them: such packets are left out
                length = math.ceil(source.duration / 1e6 - 0.1)
                for packet in source.demux():
                    if packet.dts is None or packet.stream.index not in streams:
                        continue
                    within = 0 <= packet.pts * packet.time_base < length
                    if packet.stream.type == "audio" and not within:
                        continue
                    shift = round(offset / packet.time_base)
                    packet.dts, packet.pts = packet.dts + shift, packet.pts + shift
                    packet.stream = streams[packet.stream.index]
                    target.mux(packet)
                offset += length
