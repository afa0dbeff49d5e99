"""Films that are damaged or odd: seeded, so that a finding can be repeated."""

import random
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from films import VP8, X264, Recipe, numbered, x264

from longtake.video.clip import Encoding, write_film

COUNT = 24
"""Frames in a film: damage finds its place sooner in a small file."""


def _small(name: str, encoding: Encoding, **more: object) -> Recipe:
    return Recipe(name, encoding, count=COUNT, **more)


BASES = (
    _small("plain.mp4", x264(gop=8)),
    _small("fragmented.mp4", x264(gop=8, container={"movflags": "frag_keyframe+empty_moov"})),
    _small("sound.mkv", x264(gop=8), sound_from=0.0),
    _small("sound.mp4", x264(gop=8), sound_from=0.0),
    _small("vp8.webm", x264(codec="libvpx", options=VP8)),
    _small("vp9.webm", x264(codec="libvpx-vp9", options={"deadline": "realtime"})),
    _small("broadcast.ts", x264(fps=Fraction(25))),
    _small("mpeg2.mpg", x264(codec="mpeg2video", fps=Fraction(25), options={"bf": "2"}, gop=8)),
    _small("mpeg4.avi", x264(codec="mpeg4", options={"bf": "2"}, gop=8)),
    _small("mjpeg.avi", x264(codec="mjpeg", options={})),
    _small("raw.h264", x264(fps=Fraction(25), options={**X264, "bf": "0"})),
    _small("flash.flv", x264(codec="flv", options={}, gop=8)),
    _small("windows.wmv", x264(codec="wmv2", options={}, gop=8)),
    _small("lossless.nut", x264(codec="ffv1", options={})),
    _small("hevc.mkv", x264(codec="libx265", options={"x265-params": "log-level=none"})),
)


def base(chance: random.Random, folder: Path) -> Path:
    """One of the sound films, made once per folder."""
    return chance.choice(BASES).make(folder)


def damaged(data: bytes, chance: random.Random) -> bytes:
    """The same file with one to three kinds of damage."""
    for _ in range(chance.choice([1, 1, 2, 3])):
        data = chance.choice(DAMAGES)(data, chance)
    return data


def _place(data: bytes | bytearray, chance: random.Random) -> int:
    """Anywhere, but headers and indexes more often than chance has it."""
    edge = min(len(data), 600)
    near = chance.choice([len(data), edge, edge])
    place = chance.randrange(max(1, near))
    return place if chance.random() < 0.7 else max(0, len(data) - 1 - place)


def truncate(data: bytes, chance: random.Random) -> bytes:
    """Cut the end off."""
    return data[: _place(data, chance)]


def flip_bits(data: bytes, chance: random.Random) -> bytes:
    """Flip single bits."""
    changed = bytearray(data)
    for _ in range(min(len(changed), chance.choice([1, 4, 30, 300]))):
        changed[_place(changed, chance)] ^= 1 << chance.randrange(8)
    return bytes(changed)


def blot(data: bytes, chance: random.Random) -> bytes:
    """Overwrite a block with zeros, ones or noise."""
    start, size = _place(data, chance), chance.choice([4, 64, 2000, 20_000])
    size = min(size, len(data) - start)
    ink = chance.choice([bytes(size), b"\xff" * size, chance.randbytes(size)])
    return data[:start] + ink + data[start + size :]


def cut_out(data: bytes, chance: random.Random) -> bytes:
    """Remove a block."""
    start = _place(data, chance)
    return data[:start] + data[start + chance.choice([1, 7, 500, 5000]) :]


def repeat(data: bytes, chance: random.Random) -> bytes:
    """Insert a copy of a block somewhere else."""
    start, size = _place(data, chance), chance.choice([8, 500, 5000])
    goal = _place(data, chance)
    return data[:goal] + data[start : start + size] + data[goal:]


def lie(data: bytes, chance: random.Random) -> bytes:
    """Put an extreme number where a length, a rate or a time may be."""
    if len(data) < 8:
        return data
    numbers = (0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1)
    raw = chance.choice(numbers).to_bytes(8, chance.choice(["big", "little"]))
    start = min(_place(data, chance), len(data) - 8)
    size = chance.choice([1, 2, 4, 8])
    return data[:start] + raw[-size:] + data[start + size :]


DAMAGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    truncate,
    flip_bits,
    blot,
    cut_out,
    repeat,
    lie,
)


def odd(chance: random.Random, path: Path) -> None:
    """Write a film that is sound and strange: times, sizes, shapes, rates."""
    count = chance.choice([1, 2, 5, COUNT])
    width, height = chance.choice([(128, 96), (2, 2), (16, 2), (2, 64), (34, 18), (1000, 4)])
    encoding = x264(
        gop=chance.choice([1, 5, 1000]),
        rotation=chance.choice([0, 0, 90, 180, 270]),
        fps=chance.choice([Fraction(10), Fraction(1, 100), Fraction(1000), Fraction(30_000, 1001)]),
        pixel_aspect=chance.choice([Fraction(1), Fraction(1, 250), Fraction(255, 1)]),
    )
    big = numbered(chance.randrange(4000), width=max(width, 128), height=max(height, 96))
    pictures = [big[:height, :width]] * count
    sound = np.zeros(16_000, np.float32) if chance.random() < 0.4 else None
    late = chance.choice([0.0, 0.0, 5.0, 86_400.0])
    times = _times(chance, count) if chance.random() < 0.6 else None
    write_film(path, pictures, encoding, times=times, sound=sound, audio_start=late)


def _times(chance: random.Random, count: int) -> list[float]:
    """Ascending times with jumps: of seconds, days, years or a thousand of them."""
    jumps = (0.1, 0.1, 0.1, 3.0, 70.0, 4000.0, 86_400.0, 3.5e7, 3.2e10)
    times = [chance.choice([0.0, 0.0, 7.0, 90_000.0])]
    while len(times) < count:
        times.append(times[-1] + chance.choice(jumps))
    return times


def make(seed: int, folder: Path) -> Path:
    """Make the film of a seed: damaged in three cases of four, odd otherwise."""
    chance = random.Random(seed)
    if chance.random() < 0.25:
        path = folder / f"odd{seed}{chance.choice(['.mkv', '.mp4', '.nut'])}"
        try:
            odd(chance, path)
        except (av.error.FFmpegError, OverflowError):
            path.write_bytes(b"")  # the muxer refuses it; an empty file is a case as well
        return path
    sound = base(chance, folder)
    path = folder / f"damaged{seed}{sound.suffix}"
    path.write_bytes(damaged(sound.read_bytes(), chance))
    return path
