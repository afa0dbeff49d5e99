"""Plot of an event partition: four cues, the fused signal, the cuts, one thumbnail per block."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from longtake.algorithms.partition import Partition
from longtake.errors import ConfigError, MissingExtra
from longtake.plots.text import plain
from longtake.replacing import replacing
from longtake.timecode import clock
from longtake.types import Frame, Segment

CUES = ("colour", "motion", "sharpness", "embedding")


def check_plot_path(path: Path) -> None:
    """Raise if a plot cannot be written to a path; called before any work is done."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
    except ImportError as error:
        raise MissingExtra("plot", "drawing a plot") from error
    known = set(FigureCanvasAgg.get_supported_filetypes())
    if path.suffix.removeprefix(".").lower() not in known:
        endings = ", ".join(sorted(known))
        raise ConfigError(f"{path}: a plot is a file such as out.png; known endings: {endings}")


def draw_events(
    partition: Partition, thumbnails: Sequence[Frame], path: Path, *, title: str = ""
) -> None:
    """Write the plot; ``thumbnails`` holds one frame per block, in order."""
    check_plot_path(path)
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter

    shown = [*(name for name in CUES if name in partition.cues), "fused"]
    figure = Figure(figsize=(12, 2.2 + 1.1 * len(shown)), layout="constrained")
    rows = figure.subplots(len(shown) + 1, 1, sharex=True, height_ratios=[1] * len(shown) + [2])
    for axes, name in zip(rows, shown, strict=False):
        is_fused = name == "fused"
        values = partition.fused if is_fused else partition.cues[name]
        colour = "black" if is_fused else "tab:blue"
        axes.plot(partition.times, values, color=colour, linewidth=1)
        axes.set_ylabel(name, rotation=0, ha="right", va="center")
    # cuts cross all rows, so that each can be compared with every cue
    for axes in rows:
        for cut in partition.cuts:
            axes.axvline(cut.time, color="tab:red", linewidth=1)
    strip = rows[-1]
    for number, (block, frame) in enumerate(zip(partition.blocks, thumbnails, strict=True)):
        strip.axvspan(block.start, block.end, ymax=0.12, color=f"C{number % 10}")
        _thumbnail(strip, block, frame, partition.duration)
    strip.set_yticks([])
    strip.set_xlim(0, partition.duration)
    strip.xaxis.set_major_formatter(FuncFormatter(lambda second, _: clock(max(0.0, second))))
    figure.suptitle(plain(title))
    with replacing(path) as draft:
        figure.savefig(draft, dpi=110)


def _thumbnail(axes: Any, block: Segment, frame: Frame, duration: float) -> None:
    from matplotlib.offsetbox import AnnotationBbox, OffsetImage

    block_width = 720 * block.duration / max(duration, 1e-9)  # in points
    height, width = frame.pixels.shape[:2]
    zoom = min(0.95 * block_width / width, 110.0 / width, 75.0 / height)
    picture = OffsetImage(frame.pixels, zoom=zoom)
    centre, units = (block.middle, 0.58), ("data", "axes fraction")
    axes.add_artist(AnnotationBbox(picture, centre, xycoords=units, frameon=False))
