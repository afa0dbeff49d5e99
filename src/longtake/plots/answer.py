"""An answer as a picture: the cited frames with their times, over what the method scored along the film."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtake.events import ScoresSet
from longtake.plots.events import check
from longtake.timecode import clock
from longtake.types import Answer, Frame

STRIPS = 6
"""Most strips of scores that are drawn, the latest ones."""
COLUMNS = 1200
"""Steps of a film in a strip."""


def along(strip: ScoresSet, duration: float, columns: int = COLUMNS) -> NDArray[np.float64]:
    """Scores at equal steps of the film, each as long as its stretch; not a number where nothing was scored.

    Moments without a length reach to the next one.
    """
    order = sorted(range(len(strip.values)), key=lambda place: strip.segments[place].start)
    starts = np.array([strip.segments[place].start for place in order])
    nexts = np.append(starts[1:], duration)
    ends = np.array([strip.segments[place].end for place in order])
    ends = np.where(ends > starts, ends, nexts)
    times = (np.arange(columns) + 0.5) * duration / columns
    at = np.searchsorted(starts, times, side="right") - 1
    values = np.array([strip.values[place] for place in order])
    return np.where((at >= 0) & (times < ends[at]), values[at], np.nan)


def draw(
    answer: Answer,
    frames: Sequence[Frame],
    scores: Sequence[ScoresSet],
    duration: float,
    path: Path,
) -> None:
    """Write the plot; ``frames`` are one per piece of evidence, in order."""
    check(path)
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter

    strips = [strip for strip in scores if strip.values][-STRIPS:]
    figure = Figure(figsize=(12, 3.4 + 0.6 * len(strips)), layout="constrained")
    parts: Any = figure.subfigures(2, 1, height_ratios=[3, max(0.2, 0.6 * len(strips))])
    above, below = parts
    said = f"{answer.choice}. {answer.text}" if answer.choice else answer.text or "(no answer)"
    figure.suptitle(said.replace("$", r"\$")[:120])
    for axes, cited, frame in zip(
        np.atleast_1d(above.subplots(1, max(1, len(frames)))), answer.evidence, frames, strict=False
    ):
        axes.imshow(frame.pixels)
        axes.set_title(f"[{clock(cited.segment.start)}] {cited.source}", fontsize=9)
        axes.set_xlabel(cited.text.replace("$", r"\$")[:60], fontsize=7)
        axes.set_xticks([])
        axes.set_yticks([])
    if strips:
        for axes, strip in zip(
            np.atleast_1d(below.subplots(len(strips), 1, sharex=True)), strips, strict=True
        ):
            axes.imshow(
                along(strip, duration)[None],
                aspect="auto",
                extent=(0, duration, 0, 1),
                cmap="viridis",
            )
            axes.set_yticks([])
            axes.set_ylabel(
                strip.label.replace("$", r"\$")[:28],
                rotation=0,
                ha="right",
                va="center",
                fontsize=7,
            )
            for cited in answer.evidence:
                axes.axvline(cited.segment.start, color="tab:red", linewidth=1)
            axes.xaxis.set_major_formatter(FuncFormatter(lambda second, _: clock(max(0.0, second))))
    figure.savefig(path, dpi=110)
