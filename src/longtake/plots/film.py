"""Plots over the time of a film: its events, an answer with the scores behind it, a belief."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtake._util import replacing, visible
from longtake._util.timecode import clock
from longtake.algorithms.partition import Partition
from longtake.errors import ConfigError, MissingExtra
from longtake.tracing.events import ScoresSet
from longtake.types import Answer, Frame, Segment

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
    figure.suptitle(escape_text(title))
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


def resample_scores(strip: ScoresSet, duration: float, columns: int = 1200) -> NDArray[np.float64]:
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

    # the latest ones, as many as can be read
    strips = [strip for strip in scores if strip.values][-6:]
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
        axes.set_xlabel(escape_text(cited.text[:60]), fontsize=7)
        axes.set_xticks([])
        axes.set_yticks([])


def _draw_strips(figure: Any, strips: Sequence[ScoresSet], answer: Answer, duration: float) -> None:
    from matplotlib.ticker import FuncFormatter

    rows = np.atleast_1d(figure.subplots(len(strips), 1, sharex=True))
    extent = (0, duration, 0, 1)
    for axes, strip in zip(rows, strips, strict=True):
        axes.imshow(
            resample_scores(strip, duration)[None], aspect="auto", extent=extent, cmap="viridis"
        )
        axes.set_yticks([])
        label = escape_text(strip.label[:28])
        axes.set_ylabel(label, rotation=0, ha="right", va="center", fontsize=7)
        for cited in answer.evidence:
            axes.axvline(cited.segment.start, color="tab:red", linewidth=1)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda second, _: clock(max(0.0, second))))


THUMBNAILS = 12
"""Number of pictures in the strip."""


@dataclass(frozen=True)
class BeliefHistory:
    """A search, as recorded in a trace."""

    segments: tuple[Segment, ...]
    belief: NDArray[np.float64]
    """One row per step; the first is the belief before any observation."""
    observed: tuple[tuple[Segment, float], ...]
    """The observed scene and its score, step by step."""
    anchors: frozenset[Segment]
    selected: tuple[Segment, ...]


def read_belief_history(scores: Sequence[ScoresSet]) -> BeliefHistory | None:
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
    return BeliefHistory(
        steps[0].segments,
        np.array([event.values for event in steps], np.float64),
        tuple(observed),
        frozenset(anchors),
        tuple(selected),
    )


def draw_belief(
    search: BeliefHistory, answer: Answer, strip: Sequence[Frame], duration: float, path: Path
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


def _edges(search: BeliefHistory) -> list[float]:
    return [segment.start for segment in search.segments] + [search.segments[-1].end]


def _draw_steps(axes: Any, search: BeliefHistory) -> Any:
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


def _draw_final(axes: Any, search: BeliefHistory, answer: Answer) -> None:
    for segment in search.selected:
        axes.axvspan(segment.start, segment.end, color="tab:orange", alpha=0.35, linewidth=0)
    axes.stairs(search.belief[-1], _edges(search), color="black", fill=False)
    for cited in answer.evidence:
        axes.axvline(cited.segment.middle, color="tab:red", linewidth=1)
    axes.set_ylabel("belief at the end")
    axes.set_xlabel("shaded: selected for the answer; red: cited")


def escape_text(text: str) -> str:
    """A text that matplotlib shows as it is; it would read "$" as the start of mathematics."""
    return visible(text).replace("$", r"\$")


def title_of(answer: Answer) -> str:
    """The title of a plot about an answer."""
    letter = f"{answer.choice}. " if answer.choice else ""
    return escape_text(f"{letter}{answer.text}"[:120]) or "(no answer)"
