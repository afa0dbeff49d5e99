"""Joins real clips into one film of any length, for the benchmarks of indexing.

The clips follow one another again and again. Each time round they are placed, scaled and lit
differently, so that no two passes look alike.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
from PIL import Image, ImageEnhance

from longtake.media.audio import listen
from longtake.media.video import Video
from longtake.media.writer import Encoding, write_film

WIDTH, HEIGHT, FPS, RATE = 1280, 720, 24, 16_000
PIECE = 20.0
"""Seconds of film that one process encodes at a time."""
ENCODING = Encoding(
    fps=Fraction(FPS), gop=120, options={"preset": "veryfast", "crf": "23", "threads": "1"}
)


@dataclass(frozen=True)
class Placed:
    """A clip's place in the joined film."""

    clip: Path
    number: int
    """How often the clip came before, which decides how it is varied."""
    start: float
    end: float


def timeline(clips: Sequence[Path], seconds: float) -> list[Placed]:
    """The clips one after another until the film is long enough."""
    lengths = {clip: Video(clip).duration for clip in clips}
    placed: list[Placed] = []
    start = 0.0
    while start < seconds:
        clip = clips[len(placed) % len(clips)]
        # whole seconds keep sound and pictures together
        end = start + max(1.0, float(int(lengths[clip])))
        placed.append(Placed(clip, len(placed) // len(clips), start, end))
        start = end
    return placed


def join(placed: Sequence[Placed], path: Path) -> None:
    """Write the film, its pictures encoded on all cores."""
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        pieces = list(_pieces(placed, Path(folder)))
        with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            for number, _ in enumerate(pool.map(_encode, pieces), 1):
                print(f"joined {number} of {len(pieces)} pieces", file=sys.stderr)
        sound = Path(folder) / "sound.mp4"
        # one black picture, since the writer takes its size from the first
        black = [np.zeros((16, 16, 3), np.uint8)]
        write_film(sound, black, ENCODING, sound=_sound(placed))
        part = path.with_suffix(".part.mp4")
        _concatenate([piece.path for piece in pieces], sound, part)
        part.rename(path)


@dataclass(frozen=True)
class _Piece:
    """A stretch of a placed clip, in seconds of the clip, and the file for its pictures."""

    place: Placed
    start: float
    end: float
    path: Path


def _pieces(placed: Sequence[Placed], folder: Path) -> Iterator[_Piece]:
    count = 0
    for place in placed:
        length = place.end - place.start
        for start in np.arange(0.0, length, PIECE).tolist():
            yield _Piece(place, start, min(start + PIECE, length), folder / f"{count}.mp4")
            count += 1


def _encode(piece: _Piece) -> None:
    write_film(piece.path, _pictures(piece), ENCODING)


def _pictures(piece: _Piece) -> Iterator[Any]:
    video = Video(piece.place.clip)
    times = piece.start + np.arange(round((piece.end - piece.start) * FPS)) / FPS
    times = np.minimum(times, video.duration - 1e-3)
    for frame in video.frames(times, width=WIDTH):
        yield _varied(frame.pixels, piece.place.number)


def _varied(pixels: Any, number: int) -> Any:
    """A picture that fills the frame, another place, size and light for each number."""
    picture = Image.fromarray(pixels)
    # a little smaller each time round, so that passes differ; small print must stay legible
    factor = min(WIDTH / picture.width, HEIGHT / picture.height)
    factor *= (1.0, 0.93, 0.87, 0.97, 0.9, 0.83)[number % 6]
    size = (round(picture.width * factor), round(picture.height * factor))
    picture = picture.resize(size, Image.Resampling.BILINEAR)
    picture = ImageEnhance.Brightness(picture).enhance((1.0, 0.9, 1.05, 0.95, 0.85)[number % 5])
    canvas = Image.new("RGB", (WIDTH, HEIGHT))
    across, down = ((1, 1), (0, 0), (2, 2), (2, 0), (0, 2))[number % 5]
    canvas.paste(picture, ((WIDTH - size[0]) * across // 2, (HEIGHT - size[1]) * down // 2))
    return np.asarray(canvas)


def _sound(placed: Sequence[Placed]) -> Any:
    sound = np.zeros(round(placed[-1].end * RATE), np.float32)
    for place in placed:
        video = Video(place.clip)
        if not video.info.audio:
            continue
        heard = [part.samples for part in listen(place.clip, origin=video.origin)]
        samples = np.concatenate([np.zeros(0, np.float32), *heard])
        samples = samples[: round((place.end - place.start) * RATE)]
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
