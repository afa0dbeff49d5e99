"""Run as a program: use films as the commands do, in a process that may crash.

``python exercise.py FOLDER SECONDS PATH...`` or ``python exercise.py FOLDER SECONDS SEED-SEED``.
Each case is announced on a line of its own before it begins, so that whoever started the process
knows which film killed it. Errors in our own words are fine; anything else is printed as a failure.
"""

import faulthandler
import json
import resource
import sys
import traceback
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from attack.damage import make

from longtake.config import MediaSettings
from longtake.errors import LongtakeError
from longtake.types import Segment
from longtake.video.audio import RATE, listen
from longtake.video.subtitles import embedded_subtitles
from longtake.video.video import Video

MEMORY = 6 * 2**30
"""Address space of the process: a header must not be able to claim more."""


def use(path: Path) -> None:
    """Ask a film for everything that it can give."""
    video = Video(path, limits=MediaSettings(workers=2))
    grid = video.grid(1.0)
    # a damaged rate may stretch a few frames over hours, but a grid has no more than its seconds
    assert 0 < len(grid) <= video.duration + 1, f"{len(grid)} moments"
    assert (grid[1:] > grid[:-1]).all()
    frames = list(islice(video.sample(1.0, width=64), 40))
    frames += video.at([0.0, video.duration / 2, video.duration])
    for frame in frames:
        assert frame.pixels.ndim == 3
        assert frame.pixels.size
    if video.info.audio:
        for within in (None, Segment(0.0, 10.0)):
            sounds = listen(path, origin=video.origin, within=within, slice_seconds=5.0)
            heard = [len(sound.samples) for sound in islice(sounds, 20)]
            assert all(0 < count <= 5 * RATE for count in heard)
    if video.info.subtitles:
        embedded_subtitles(path, origin=video.origin)


def cases(folder: Path, names: list[str]) -> Iterator[Path]:
    """The films: by path, or made from a range of seeds."""
    for name in names:
        first, dash, last = name.partition("-")
        if dash and first.isdecimal():
            yield from (make(seed, folder) for seed in range(int(first), int(last)))
        else:
            yield Path(name)


def main(folder: Path, seconds: float, names: list[str]) -> None:
    """Use each film; says which one it is at, and what went wrong."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for path in cases(folder, names):
        print(json.dumps({"case": str(path)}), flush=True)
        faulthandler.dump_traceback_later(seconds, exit=True)
        try:
            use(path)
        except LongtakeError as error:
            print(json.dumps({"refused": str(error)}), flush=True)
        except Exception:  # noqa: BLE001 - whatever it is, it is a finding
            print(json.dumps({"failure": traceback.format_exc()}), flush=True)
        faulthandler.cancel_dump_traceback_later()


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3:])
