"""Plot of an answer: the cited frames, above the method's scores along the film."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtake.events import ScoresSet
from longtake.plots.events import check_plot_path
from longtake.plots.text import plain, title_of
from longtake.replacing import replacing
from longtake.timecode import clock
from longtake.types import Answer, Frame

STRIPS = 6
"""Maximum number of score strips; the latest ones are drawn."""
COLUMNS = 1200
"""Horizontal resolution of a strip."""


def along(strip: ScoresSet, duration: float, columns: int = COLUMNS) -> NDArray[np.float64]:
    """Scores resampled at equal steps of the film; NaN where nothing was scored.

    A segment without length extends to the start of the next one.
    """
    pairs = sorted(zip(strip.segments, strip.values, strict=True), key=lambda pair: pair[0].start)
    starts = np.array([segment.start for segment, _ in pairs])
    ends = np.array([segment.end for segment, _ in pairs])
    values = np.array([value for _, value in pairs])
    nexts = np.append(starts[1:], duration)
    ends = np.where(ends > starts, ends, nexts)
    times = (np.arange(columns) + 0.5) * duration / columns
    at = np.searchsorted(starts, times, side="right") - 1
    scored = (at >= 0) & (times < ends[at])
    return np.where(scored, values[at], np.nan)


def draw_answer(
    answer: Answer,
    frames: Sequence[Frame],
    scores: Sequence[ScoresSet],
    duration: float,
    path: Path,
) -> None:
    """Write the plot; ``frames`` holds one frame per piece of evidence, in order."""
    check_plot_path(path)
    from matplotlib.figure import Figure

    strips = [strip for strip in scores if strip.values][-STRIPS:]
    figure = Figure(figsize=(12, 3.4 + 0.6 * len(strips)), layout="constrained")
    halves: Any = figure.subfigures(2, 1, height_ratios=[3, max(0.2, 0.6 * len(strips))])
    above, below = halves
    figure.suptitle(title_of(answer))
    _draw_evidence(above, answer, frames)
    if strips:
        _draw_strips(below, strips, answer, duration)
    with replacing(path) as draft:
        figure.savefig(draft, dpi=110)


def _draw_evidence(figure: Any, answer: Answer, frames: Sequence[Frame]) -> None:
    row = np.atleast_1d(figure.subplots(1, max(1, len(frames))))
    for axes, cited, frame in zip(row, answer.evidence, frames, strict=False):
        axes.imshow(frame.pixels)
        axes.set_title(f"[{clock(cited.segment.start)}] {cited.source}", fontsize=9)
        axes.set_xlabel(plain(cited.text[:60]), fontsize=7)
        axes.set_xticks([])
        axes.set_yticks([])


def _draw_strips(figure: Any, strips: Sequence[ScoresSet], answer: Answer, duration: float) -> None:
    from matplotlib.ticker import FuncFormatter

    rows = np.atleast_1d(figure.subplots(len(strips), 1, sharex=True))
    extent = (0, duration, 0, 1)
    for axes, strip in zip(rows, strips, strict=True):
        axes.imshow(along(strip, duration)[None], aspect="auto", extent=extent, cmap="viridis")
        axes.set_yticks([])
        label = plain(strip.label[:28])
        axes.set_ylabel(label, rotation=0, ha="right", va="center", fontsize=7)
        for cited in answer.evidence:
            axes.axvline(cited.segment.start, color="tab:red", linewidth=1)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda second, _: clock(max(0.0, second))))
