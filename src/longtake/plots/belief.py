"""A search as a picture: belief along the film, step by step, over a strip of thumbnails.

::

    thumbnails    |▒▒|▓▓|░░|▒▒|▓▓|░░|
    step 0        ░░░▒▒▒░░░░░░▒▒░░░░
    step 1        ░░▓▓▓▲░░░░░░▒▒░░░░     ▲ an anchor, ● any other scene that was looked at
    step 2        ░░▓▓▓▓░░░●░░▒▒░░░░
    at the end    ▁▁▃██▃▁▁▂▁▁▁▂▂▁▁▁▁     selected scenes shaded, cited ones marked

It is read off the :class:`~longtake.events.ScoresSet` events of a trace: ``belief`` after each step, ``observed`` one
scene each, ``anchors``, ``selected``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtake.events import ScoresSet
from longtake.plots.events import check
from longtake.timecode import clock
from longtake.types import Answer, Frame, Segment

THUMBNAILS = 12
"""Pictures in the strip."""


@dataclass(frozen=True)
class Search:
    """What a trace tells of a search."""

    segments: tuple[Segment, ...]
    belief: NDArray[np.float64]
    """A row per step, the first before anything was looked at."""
    observed: tuple[tuple[Segment, float], ...]
    """The scene and its score, step by step."""
    anchors: frozenset[Segment]
    selected: tuple[Segment, ...]


def read(scores: Sequence[ScoresSet]) -> Search | None:
    """The search in a trace; ``None`` where there is none."""
    steps = [one for one in scores if one.label == "belief"]
    if not steps:
        return None

    def scenes(label: str) -> list[Segment]:
        return [segment for one in scores if one.label == label for segment in one.segments]

    looks = [(one.segments[0], one.values[0]) for one in scores if one.label == "observed"]
    return Search(
        steps[0].segments,
        np.array([one.values for one in steps], np.float64),
        tuple(looks),
        frozenset(scenes("anchors")),
        tuple(scenes("selected")),
    )


def draw(
    search: Search, answer: Answer, strip: Sequence[Frame], duration: float, path: Path
) -> None:
    """Write the plot; ``strip`` are frames spread evenly over the film."""
    check(path)
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    count = len(search.belief)
    figure = Figure(figsize=(13, 3.6 + 0.28 * count), layout="constrained")
    rows: Any = figure.subplots(3, 1, sharex=True, height_ratios=[1.1, max(1.5, 0.28 * count), 1.4])
    pictures, heat, final = rows
    said = f"{answer.choice}. {answer.text}" if answer.choice else answer.text or "(no answer)"
    figure.suptitle(said.replace("$", r"\$")[:120])
    for number, frame in enumerate(strip):
        wide = duration / len(strip)
        pictures.imshow(
            frame.pixels, extent=(number * wide, (number + 1) * wide, 0, 1), aspect="auto"
        )
    pictures.set_yticks([])
    edges = [segment.start for segment in search.segments] + [search.segments[-1].end]
    mesh = heat.pcolormesh(
        edges, np.arange(count + 1) - 0.5, search.belief, cmap="viridis", vmin=0.0
    )
    figure.colorbar(mesh, ax=heat, label="belief", pad=0.01)
    for at, (segment, _) in enumerate(search.observed, start=1):
        anchor = segment in search.anchors and at <= len(search.anchors)
        heat.plot(
            segment.middle,
            at,
            "^" if anchor else "o",
            color="tab:red",
            markeredgecolor="white",
            markersize=7,
        )
    heat.set_ylabel("step (▲ anchor, ● observed)")
    heat.yaxis.set_major_locator(MaxNLocator(integer=True))
    heat.invert_yaxis()
    for segment in search.selected:
        final.axvspan(segment.start, segment.end, color="tab:orange", alpha=0.35, linewidth=0)
    final.stairs(search.belief[-1], edges, color="black", fill=False)
    for cited in answer.evidence:
        final.axvline(cited.segment.middle, color="tab:red", linewidth=1)
    final.set_ylabel("belief at the end")
    final.set_xlabel("shaded: selected for the answer; red: cited")
    final.set_xlim(0, duration)
    final.xaxis.set_major_locator(
        MaxNLocator(nbins=9, steps=[1, 1.2, 1.8, 3, 6, 10])
    )  # whole minutes
    final.xaxis.set_major_formatter(FuncFormatter(lambda second, _: clock(max(0.0, second))))
    figure.savefig(path, dpi=110)
