"""What splicing saves when a stretch is cut out of a film, beside encoding all of it.

    python benchmarks/clips.py FILM... [--share 0.9]

Cuts the middle of each film both ways, and compares processor time, size, frame times, and how far
the pictures are from the film's (mean difference of 8-bit values, over sampled frames).
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from unittest.mock import patch

import numpy as np

from longtake.evals.markdown import table
from longtake.media import clip
from longtake.media.video import Video
from longtake.types import Segment

SAMPLED = 20  # frames whose pictures are compared
HEAD = ("film", "stretch", "spliced", "CPU s", "MB", "frames", "times differ by", "pictures differ")


def timed(video: Video, stretch: Segment, path: Path) -> float:
    """Cut; returns the processor seconds."""
    began = time.process_time()
    clip.cut(video, stretch, path)
    return time.process_time() - began


def difference(video: Video, made: Video, start: float) -> float:
    """How far the pictures of a clip are from the film's."""
    # in the middle between two frames, so that rounding does not pick the neighbour
    times = made.table.times
    middles = ((times[:-1] + times[1:]) / 2)[:: max(1, len(times) // SAMPLED)].tolist()
    pairs = zip(video.frames([start + each for each in middles]), made.frames(middles), strict=True)
    gaps = []
    for theirs, ours in pairs:
        rows, columns = ours.pixels.shape[:2]
        gaps.append(np.abs(theirs.pixels[:rows, :columns].astype(int) - ours.pixels).mean())
    return float(np.mean(gaps))


def row(path: Path, share: float, folder: Path) -> list[str]:
    """One film, both ways: whole → spliced."""
    video = Video(path)
    margin = (1 - share) / 2 * video.duration
    stretch = Segment(margin, video.duration - margin)
    with patch.object(clip, "splice", return_value=False):
        whole_seconds = timed(video, stretch, folder / "whole.mp4")
    seconds = timed(video, stretch, folder / "spliced.mp4")
    whole, spliced = Video(folder / "whole.mp4"), Video(folder / "spliced.mp4")
    is_spliced = spliced.info.size != whole.info.size
    same = len(whole.table) == len(spliced.table)
    apart = np.abs(whole.table.times - spliced.table.times).max() if same else float("nan")
    differences = [difference(video, each, margin) for each in (whole, spliced)]
    return [
        path.name,
        f"{stretch.duration:.0f} s",
        "yes" if is_spliced else "no",
        f"{whole_seconds:.1f} → {seconds:.1f}",
        f"{whole.info.size / 1e6:.1f} → {spliced.info.size / 1e6:.1f}",
        f"{len(whole.table)} → {len(spliced.table)}",
        f"{1000 * apart:.1f} ms",
        f"{differences[0]:.2f} → {differences[1]:.2f}",
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("films", nargs="+", type=Path)
    parser.add_argument("--share", type=float, default=0.9, help="of each film")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = [row(path, options.share, Path(folder)) for path in options.films]
    print(table(HEAD, rows))


if __name__ == "__main__":
    main()
