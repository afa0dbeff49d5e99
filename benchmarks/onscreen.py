"""Reading on-screen text: what a search in a small copy saves, and what it misses.

    python benchmarks/onscreen.py [FILM …] [--every 2]

Every frame is read twice, with and without the copy. On drawn frames, whose text is known, and on
frames of the given films it prints the processor time of both and the lines that only one of them
found.
"""

import argparse
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from longtake.algorithms.passages import squeeze
from longtake.perception.ocr import RapidReader
from longtake.perception.runtime import Compute
from longtake.types import Frame
from longtake.video.video import Video

WORDS = ["harbour", "lantern", "ferry", "garden", "violin", "copper", "meadow", "station", "winter"]


def drawn(heights: Iterable[int]) -> list[tuple[int, Frame, str]]:
    """Frames of 720p with one line of text of each height, in several places and colours."""
    rng = np.random.default_rng(0)
    frames = []
    for height in heights:
        for number in range(8):
            noise = rng.integers(40, 90, (90, 160, 3), dtype=np.uint8)
            picture = Image.fromarray(noise).resize((1280, 720), Image.Resampling.BICUBIC)
            text = " ".join(rng.choice(WORDS, 3, replace=False))
            place = (int(rng.integers(20, 500)), int(rng.integers(20, 660)))
            shade = tuple(int(x) for x in rng.integers(180, 256, 3))
            ImageDraw.Draw(picture).text(place, text, shade, ImageFont.load_default(height))
            frames.append((height, Frame(float(number), np.asarray(picture)), text))
    return frames


class Whole(RapidReader):
    """The same reader, which searches whole frames at full size."""

    def _search(self, picture: Any, area: tuple[slice, slice]) -> list[Any]:  # noqa: ARG002
        everything = slice(0, picture.shape[0]), slice(0, picture.shape[1])
        return self._detect(picture, everything, self._scale(picture))


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("films", type=Path, nargs="*")
    parser.add_argument("--every", type=float, default=2.0, help="seconds between two frames")
    args = parser.parse_args()
    one_core = Compute(threads=1)
    readers = {"whole": Whole(compute=one_core), "copy": RapidReader(compute=one_core)}
    print("| letters of | lines | found, whole frame | found, copy first |\n|---|---|---|---|")
    frames = drawn((10, 12, 14, 16, 20, 28, 40))
    for height in sorted({height for height, _, _ in frames}):
        some = [(frame, text) for tall, frame, text in frames if tall == height]
        found = [
            sum(
                squeeze(text) in squeeze(" ".join(b.text for b in reader.read(frame)))
                for frame, text in some
            )
            for reader in readers.values()
        ]
        print(f"| {height} pixels | {len(some)} | {found[0]} | {found[1]} |", flush=True)
    print("\n| film | frames | CPU-s, whole | CPU-s, copy | lines | missed | new |")
    print("|---|---|---|---|---|---|---|")
    for film in args.films:
        print(row(film, args.every, readers), flush=True)


def row(film: Path, every: float, readers: dict[str, RapidReader]) -> str:
    """Cost and lines of one film."""
    video = Video(film)
    frames = list(video.frames(np.arange(0, video.duration, every), width=1280))
    seconds, lines = [], []
    for reader in readers.values():
        began = time.process_time()
        read = [{squeeze(box.text) for box in reader.read(frame)} for frame in frames]
        seconds.append(time.process_time() - began)
        lines.append({(i, line) for i, texts in enumerate(read) for line in texts})
    whole, copy = lines
    cells = [film.name, len(frames), f"{seconds[0]:.1f}", f"{seconds[1]:.1f}"]
    cells += [len(whole), len(whole - copy), len(copy - whole)]
    return f"| {' | '.join(map(str, cells))} |"


if __name__ == "__main__":
    main()
