"""Plots (extra: plot).

Over the time of a film: its events, an answer with the scores behind it, a belief. Of results:
accuracy with 95 % intervals, a sweep of the laboratory, a training.
"""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from longtake._util import replacing, visible
from longtake._util.timecode import clock
from longtake.algorithms.partition import Partition
from longtake.errors import ConfigError, MissingExtra
from longtake.tracing.events import ScoresSet
from longtake.types import Answer, Frame, Segment

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
    shown = [*(name for name in CUES if name in partition.cues), "fused"]
    figure = _new_figure(12, 2.2 + 1.1 * len(shown))
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
    _show_clock(strip)
    figure.suptitle(escape_text(title))
    _save(figure, path)


def _save(figure: Figure, path: Path) -> None:
    with replacing(path) as draft:
        figure.savefig(draft, dpi=110)


def _show_clock(axes: Any) -> None:
    """Write the times of the film under a plot."""
    from matplotlib.ticker import FuncFormatter

    axes.xaxis.set_major_formatter(FuncFormatter(lambda second, _: clock(max(0.0, second))))


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
    # the latest ones, as many as can be read
    strips = [strip for strip in scores if strip.values][-6:]
    figure = _new_figure(12, 3.4 + 0.6 * len(strips))
    halves: Any = figure.subfigures(2, 1, height_ratios=[3, max(0.2, 0.6 * len(strips))])
    above, below = halves
    figure.suptitle(title_of(answer))
    _draw_evidence(above, answer, frames)
    if strips:
        _draw_strips(below, strips, answer, duration)
    _save(figure, path)


def _draw_evidence(figure: Any, answer: Answer, frames: Sequence[Frame]) -> None:
    row = np.atleast_1d(figure.subplots(1, max(1, len(frames))))
    for axes, cited, frame in zip(row, answer.evidence, frames, strict=False):
        axes.imshow(frame.pixels)
        axes.set_title(f"[{clock(cited.segment.start)}] {cited.source}", fontsize=9)
        axes.set_xlabel(escape_text(cited.text[:60]), fontsize=7)
        axes.set_xticks([])
        axes.set_yticks([])


def _draw_strips(figure: Any, strips: Sequence[ScoresSet], answer: Answer, duration: float) -> None:
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
        _show_clock(axes)


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
    from matplotlib.ticker import MaxNLocator

    count = len(search.belief)
    figure = _new_figure(13, 3.6 + 0.28 * count)
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
    _show_clock(final)
    _save(figure, path)


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


LONGEST_NAME = 40
"""Characters of a name that fit into a legend or beside bars."""


@dataclass(frozen=True)
class Mark:
    """A proportion with its interval, drawn at ``x``; marks of one name share a colour."""

    x: float
    y: float
    low: float
    high: float
    name: str
    colour: int = 0
    """Number of the colour in matplotlib's cycle of ten."""


def scatter(marks: Sequence[Mark], *, x_name: str, diagonal: bool = False) -> Figure:
    """Proportions against a quantity; ``diagonal`` draws the line from (0, 0) to (1, 1)."""
    figure, axes = _accuracy_axes(x_name)
    if diagonal:
        axes.plot([0, 1], [0, 1], linestyle="--", color="grey", linewidth=1)
    for mark in marks:
        _draw_marks(axes, [mark], joined=False)
    axes.set_xlim(left=0)
    _draw_legend(axes)
    return figure


def curves(lines: Sequence[Sequence[Mark]], *, x_name: str) -> Figure:
    """Proportions against a quantity; the marks of a line are joined."""
    figure, axes = _accuracy_axes(x_name)
    # budgets differ by factors
    axes.set_xscale("log")
    for line in lines:
        _draw_marks(axes, line, joined=True)
    _draw_legend(axes)
    return figure


def bars(groups: Sequence[tuple[str, Sequence[Mark]]]) -> Figure:
    """Proportions as horizontal bars, one row per mark, in named groups."""
    rows = sum(len(marks) for _, marks in groups)
    figure = _new_figure(7, 1 + 0.22 * rows + 0.12 * len(groups))
    axes = figure.subplots()
    y = 0.0
    for name, marks in groups:
        middle = y + (len(marks) - 1) / 2
        axes.text(-0.02, middle, escape_text(name[:LONGEST_NAME]), ha="right", va="center")
        for mark in marks:
            axes.barh(y, mark.y, color=f"C{mark.colour % 10}", label=_legend_name(mark))
            axes.plot([mark.low, mark.high], [y, y], color="black", linewidth=1)
            axes.text(1.02, y, f"{mark.y:.0%}", va="center", fontsize=8)
            y += 1
        y += 0.6  # space between groups
    axes.set_xlim(0, 1)
    axes.invert_yaxis()
    axes.set_yticks([])
    axes.set_xticks([0, 0.5, 1], ["0%", "50%", "100%"])
    _draw_legend(axes)
    return figure


def as_svg(figure: Figure) -> bytes:
    """A figure as an SVG file; the same figure gives the same bytes."""
    from matplotlib import rc_context

    file = io.BytesIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "longtake"}):
        figure.savefig(file, format="svg", metadata={"Date": None})
    return file.getvalue()


def _new_figure(width: float, height: float) -> Figure:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra("plot", "drawing a plot") from error
    return Figure(figsize=(width, height), layout="constrained")


def _accuracy_axes(x_name: str) -> tuple[Figure, Axes]:
    from matplotlib.ticker import PercentFormatter

    figure = _new_figure(5, 3.6)
    axes = figure.subplots()
    axes.set_xlabel(escape_text(x_name))
    axes.set_ylim(-0.02, 1.02)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.grid(alpha=0.3)
    return figure, axes


def _draw_marks(axes: Axes, marks: Sequence[Mark], *, joined: bool) -> None:
    x = [mark.x for mark in marks]
    y = [mark.y for mark in marks]
    below = [mark.y - mark.low for mark in marks]
    above = [mark.high - mark.y for mark in marks]
    axes.errorbar(
        x,
        y,
        yerr=[below, above],
        marker="o",
        linestyle="-" if joined else "",
        color=f"C{marks[0].colour % 10}",
        label=_legend_name(marks[0]),
    )


def _legend_name(mark: Mark) -> str:
    # matplotlib leaves names that begin with "_" out of a legend
    return escape_text(mark.name[:LONGEST_NAME]).lstrip("_")


def _draw_legend(axes: Axes) -> None:
    handles, names = axes.get_legend_handles_labels()
    by_name = dict(zip(names, handles, strict=True))
    axes.figure.legend(by_name.values(), by_name.keys(), loc="outside lower center", fontsize=8)


def draw_sweep(cells: Sequence[Mapping[str, Any]], path: Path, *, title: str) -> None:
    """Write the grid.

    Each cell has ``acuity``, ``noise``, and ``lead`` with ``value``, ``low`` and ``high``.
    """
    check_plot_path(path)
    rows = sorted({cell["acuity"] for cell in cells})
    columns = sorted({cell["noise"] for cell in cells})
    leads = np.full((len(rows), len(columns)), np.nan)
    figure = _new_figure(2 + 1.6 * len(columns), 1.5 + 0.9 * len(rows))
    axes = figure.subplots()
    for cell in cells:
        row, column = rows.index(cell["acuity"]), columns.index(cell["noise"])
        lead, low, high = (100 * cell["lead"][name] for name in ("value", "low", "high"))
        leads[row, column] = lead
        text = f"{lead:+.1f}\n[{low:+.1f}, {high:+.1f}]"
        axes.text(column, row, text, ha="center", va="center", fontsize=8)
    # symmetric limits, so that a lead of zero has the neutral colour
    reach = max(1.0, float(np.nanmax(np.abs(leads))))
    axes.imshow(leads, cmap="RdYlGn", vmin=-reach, vmax=reach, aspect="auto", origin="lower")
    axes.set_xticks(range(len(columns)), [f"{value:g}" for value in columns])
    axes.set_yticks(range(len(rows)), [f"{value:g}" for value in rows])
    axes.set_xlabel("encoder noise")
    axes.set_ylabel("acuity")
    figure.suptitle(title)
    _save(figure, path)
