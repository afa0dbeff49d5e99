"""Plot of a search: belief along the film, step by step, below a strip of thumbnails.

::

    thumbnails    |▒▒|▓▓|░░|▒▒|▓▓|░░|
    step 0        ░░░▒▒▒░░░░░░▒▒░░░░
    step 1        ░░▓▓▓▲░░░░░░▒▒░░░░     ▲ an anchor, ● any other observed scene
    step 2        ░░▓▓▓▓░░░●░░▒▒░░░░
    at the end    ▁▁▃██▃▁▁▂▁▁▁▂▂▁▁▁▁     selected scenes shaded, cited ones marked

The data comes from the :class:`~longtake.events.ScoresSet` events of a trace: ``belief`` after each
step, ``observed`` with one scene each, ``anchors``, ``selected``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtake.events import ScoresSet
from longtake.plots.events import check_plot_path
from longtake.plots.text import title_of
from longtake.replacing import replacing
from longtake.timecode import clock
from longtake.types import Answer, Frame, Segment

THUMBNAILS = 12
"""Number of pictures in the strip."""


@dataclass(frozen=True)
class Search:
    """A search, as recorded in a trace."""

    segments: tuple[Segment, ...]
    belief: NDArray[np.float64]
    """One row per step; the first is the belief before any observation."""
    observed: tuple[tuple[Segment, float], ...]
    """The observed scene and its score, step by step."""
    anchors: frozenset[Segment]
    selected: tuple[Segment, ...]


def read_search(scores: Sequence[ScoresSet]) -> Search | None:
    """The search recorded in a trace; ``None`` if there is none."""
    by_label: dict[str, list[ScoresSet]] = defaultdict(list)
    for event in scores:
        by_label[event.label].append(event)
    steps = by_label["belief"]
    if not steps:
        return None
    observed = [(event.segments[0], event.values[0]) for event in by_label["observed"]]
    anchors = [segment for event in by_label["anchors"] for segment in event.segments]
    selected = [segment for event in by_label["selected"] for segment in event.segments]
    return Search(
        steps[0].segments,
        np.array([event.values for event in steps], np.float64),
        tuple(observed),
        frozenset(anchors),
        tuple(selected),
    )


def draw_belief(
    search: Search, answer: Answer, strip: Sequence[Frame], duration: float, path: Path
) -> None:
    """Write the plot; ``strip`` holds frames spread evenly over the film."""
    check_plot_path(path)
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    count = len(search.belief)
    figure = Figure(figsize=(13, 3.6 + 0.28 * count), layout="constrained")
    rows: Any = figure.subplots(3, 1, sharex=True, height_ratios=[1.1, max(1.5, 0.28 * count), 1.4])
    pictures, heat, final = rows
    figure.suptitle(title_of(answer))
    _draw_pictures(pictures, strip, duration)
    mesh = _draw_steps(heat, search)
    figure.colorbar(mesh, ax=heat, label="belief", pad=0.01)
    _draw_final(final, search, answer)
    final.set_xlim(0, duration)
    whole_minutes = MaxNLocator(nbins=9, steps=[1, 1.2, 1.8, 3, 6, 10])
    final.xaxis.set_major_locator(whole_minutes)
    final.xaxis.set_major_formatter(FuncFormatter(lambda second, _: clock(max(0.0, second))))
    with replacing(path) as draft:
        figure.savefig(draft, dpi=110)


def _draw_pictures(axes: Any, strip: Sequence[Frame], duration: float) -> None:
    for number, frame in enumerate(strip):
        width = duration / len(strip)
        extent = (number * width, (number + 1) * width, 0, 1)
        axes.imshow(frame.pixels, extent=extent, aspect="auto")
    axes.set_yticks([])


def _edges(search: Search) -> list[float]:
    return [segment.start for segment in search.segments] + [search.segments[-1].end]


def _draw_steps(axes: Any, search: Search) -> Any:
    from matplotlib.ticker import MaxNLocator

    rows = np.arange(len(search.belief) + 1) - 0.5
    mesh = axes.pcolormesh(_edges(search), rows, search.belief, cmap="viridis", vmin=0.0)
    for number, (segment, _) in enumerate(search.observed, start=1):
        # anchors are observed first; a later visit to one of them is an ordinary observation
        is_anchor = segment in search.anchors and number <= len(search.anchors)
        marker = "^" if is_anchor else "o"
        style = {"color": "tab:red", "markeredgecolor": "white", "markersize": 7}
        axes.plot(segment.middle, number, marker, **style)
    axes.set_ylabel("step (▲ anchor, ● observed)")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.invert_yaxis()
    return mesh


def _draw_final(axes: Any, search: Search, answer: Answer) -> None:
    for segment in search.selected:
        axes.axvspan(segment.start, segment.end, color="tab:orange", alpha=0.35, linewidth=0)
    axes.stairs(search.belief[-1], _edges(search), color="black", fill=False)
    for cited in answer.evidence:
        axes.axvline(cited.segment.middle, color="tab:red", linewidth=1)
    axes.set_ylabel("belief at the end")
    axes.set_xlabel("shaded: selected for the answer; red: cited")
