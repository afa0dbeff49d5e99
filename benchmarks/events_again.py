"""Whether event partition finds the same cuts in a re-encoded film, with the built-in features.

    python benchmarks/events_again.py [FILM...] [--films 10] [--minutes 3] [--first-seed 1000]

Without films, worlds of the laboratory are drawn. Each film is re-encoded at a lower quality (x264,
crf 36) with a keyframe every 15 frames. A cut stays if the re-encoded film has one within half the
shortest block; additional cuts are counted, too.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import av
import numpy as np

from longtake.algorithms.partition import EventPartition
from longtake.config import Settings
from longtake.index.blocks import partition
from longtake.index.film import Film
from longtake.index.store import Store
from longtake.lab.film import FILM, make_world, write_world
from longtake.media.writer import Encoding, write_film

WORSE = {"preset": "ultrafast", "crf": "36"}


def pictures(path: Path) -> Iterator[np.ndarray]:
    """Every frame in order, cropped to even sides, as the encoder requires."""
    with av.open(str(path)) as container:
        container.streams.video[0].thread_type = "AUTO"
        for frame in container.decode(video=0):
            pixels = frame.to_ndarray(format="rgb24")
            yield pixels[: pixels.shape[0] // 2 * 2, : pixels.shape[1] // 2 * 2]


def reencoded(path: Path, folder: Path) -> Path:
    """The film at a lower quality."""
    with av.open(str(path)) as container:
        rate = container.streams.video[0].average_rate or Fraction(25)
    worse = folder / f"worse_{path.stem}.mp4"
    write_film(worse, pictures(path), Encoding(fps=Fraction(rate), gop=15, options=WORSE))
    return worse


def compared(path: Path, folder: Path) -> tuple[int, int, int]:
    """The number of cuts in a film, of those that stay, and of new ones."""
    rule = EventPartition()
    store = Store(folder / "cache")
    first = partition(Film(path, store, Settings()), rule)
    second = partition(Film(reencoded(path, folder), store, Settings()), rule)
    reach = rule.shortest(first.duration) / 2
    times = [cut.time for cut in first.cuts]
    others = [cut.time for cut in second.cuts]
    kept = sum(any(abs(a - b) <= reach for b in others) for a in times)
    return len(times), kept, max(0, len(others) - len(times))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="*", type=Path, metavar="FILM")
    parser.add_argument("--films", type=int, default=10)
    parser.add_argument("--minutes", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=1000)
    options = parser.parse_args()
    total = np.zeros(3, int)
    with tempfile.TemporaryDirectory() as name:
        for number in range(len(options.paths) or options.films):
            folder = Path(name) / str(number)
            folder.mkdir()
            if options.paths:
                path = options.paths[number]
            else:
                write_world(make_world(options.first_seed + number, options.minutes, 1), folder)
                path = folder / FILM
            cuts, kept, new = compared(path, folder)
            label = path.name if options.paths else f"world {options.first_seed + number}"
            print(f"{label:<36} {kept} of {cuts} cuts stay, {new} more", flush=True)
            total += cuts, kept, new
    cuts, kept, new = total.tolist()
    stay, net = kept / max(1, cuts), (kept - new) / max(1, cuts)
    print(f"in all {kept} of {cuts} cuts stay ({stay:.0%}), {new} more; net {net:.0%}")


if __name__ == "__main__":
    main()
