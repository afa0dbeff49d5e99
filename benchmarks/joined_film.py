"""Joins real clips into one film of any length, or repeats one, for other benchmarks.

The clips follow one another again and again. Each is encoded once; further passes are copies of
its packets, so a repeated shot has the same pixels as the first time.
"""

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
from PIL import Image

from longtake.video.audio import listen
from longtake.video.clip import Encoding, write_film
from longtake.video.video import Video

WIDTH, HEIGHT, FPS, RATE = 1280, 720, 24, 16_000
PIECE = 20.0
"""Seconds of film that one process encodes at a time."""
PERIOD = 300.0
"""Seconds between two stretches from which clips are sampled."""
ENCODING = Encoding(
    fps=Fraction(FPS), gop=120, options={"preset": "veryfast", "crf": "23", "threads": "1"}
)


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


def sampled(placed: Sequence[Placed], share: float) -> list[Placed]:
    """Whole clips from all over the film, about a share of it: those that begin at certain times.

    Long and short clips are as likely to be among them.
    """
    return [place for place in placed if place.start % PERIOD < share * PERIOD]


def join(placed: Sequence[Placed], path: Path) -> None:
    """Write the film, its pictures encoded on all cores; what is encoded survives a killed run."""
    folder = path.with_suffix(".pieces")
    folder.mkdir(exist_ok=True)
    pieces = list(_pieces(placed, folder))
    to_do = sorted({piece for piece in pieces if not piece.path.exists()}, key=str)
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for number, _ in enumerate(pool.map(_encode, to_do), 1):
            print(f"joined {number} of {len(to_do)} pieces", file=sys.stderr)
    sound = folder / "sound.mp4"
    # one black picture, since the writer takes its size from the first
    black = [np.zeros((16, 16, 3), np.uint8)]
    write_film(sound, black, ENCODING, sound=_sound(placed))
    part = path.with_suffix(".part.mp4")
    _concatenate([piece.path for piece in pieces], sound, part)
    part.rename(path)
    shutil.rmtree(folder)


@dataclass(frozen=True)
class _Piece:
    """A stretch of a clip, in seconds of the clip, and the file for its pictures."""

    clip: Path
    start: float
    end: float
    path: Path


def _pieces(placed: Sequence[Placed], folder: Path) -> Iterator[_Piece]:
    for place in placed:
        for start in np.arange(0.0, place.seconds, PIECE).tolist():
            path = folder / f"{place.clip.name}-{start:.0f}.mp4"
            yield _Piece(place.clip, start, min(start + PIECE, place.seconds), path)


def _encode(piece: _Piece) -> None:
    part = piece.path.with_suffix(".part.mp4")
    write_film(part, _pictures(piece), ENCODING)
    part.rename(piece.path)


def _pictures(piece: _Piece) -> Iterator[Any]:
    video = Video(piece.clip)
    times = piece.start + np.arange(round((piece.end - piece.start) * FPS)) / FPS
    times = np.minimum(times, video.duration - 1e-3)
    info = video.info
    for frame in video.frames(times, width=min(WIDTH, HEIGHT * info.width // info.height)):
        yield _filling(frame.pixels)


def _filling(pixels: Any) -> Any:
    """A picture as large as the frame allows, in its middle."""
    high, wide = pixels.shape[:2]
    if (wide, high) == (WIDTH, HEIGHT):
        return pixels
    factor = min(WIDTH / wide, HEIGHT / high)
    size = (round(wide * factor), round(high * factor))
    if size != (wide, high):
        pixels = np.asarray(Image.fromarray(pixels).resize(size, Image.Resampling.BILINEAR))
    canvas = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    left, top = (WIDTH - size[0]) // 2, (HEIGHT - size[1]) // 2
    canvas[top : top + size[1], left : left + size[0]] = pixels
    return canvas


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


def _concatenate(pictures: Sequence[Path], sound: Path, path: Path) -> None:
    """Copy the packets of all pictures, one file after another, and of the sound."""
    with av.open(str(path), "w") as target, av.open(str(sound)) as heard:
        with av.open(str(pictures[0])) as first:
            video = target.add_stream_from_template(first.streams.video[0])
        audio = target.add_stream_from_template(heard.streams.audio[0])
        samples = heard.demux(heard.streams.audio[0])
        offset = Fraction(0)
        for piece in pictures:
            with av.open(str(piece)) as source:
                offset += _copy(source, video, target, offset)
            # sound follows its pictures, so that a reader never has to seek for it
            for packet in samples:
                if packet.dts is None:
                    continue
                packet.stream = audio
                target.mux(packet)
                if packet.pts * packet.time_base >= offset:
                    break


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
                for packet in source.demux():
                    if packet.dts is None or packet.stream.index not in streams:
                        continue
                    shift = round(offset / packet.time_base)
                    packet.dts, packet.pts = packet.dts + shift, packet.pts + shift
                    packet.stream = streams[packet.stream.index]
                    target.mux(packet)
                # a little more than the film, since sound and picture do not end together
                offset += source.duration / 1e6 + 0.1


def _copy(source: Any, video: Any, target: Any, offset: Fraction) -> Fraction:
    """Copy a piece's pictures, shifted; returns how long it is."""
    count = 0
    for packet in source.demux(source.streams.video[0]):
        if packet.dts is None:
            continue
        shift = round(offset / packet.time_base)
        packet.pts, packet.dts = packet.pts + shift, packet.dts + shift
        packet.stream = video
        target.mux(packet)
        count += 1
    return Fraction(count, FPS)
