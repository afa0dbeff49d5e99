"""Plots of results: accuracy with 95 % intervals, a sweep of the laboratory, a training."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from longtake._util import replacing
from longtake.errors import MissingExtra
from longtake.plots.film import check_plot_path, escape_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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
    from matplotlib.figure import Figure

    rows = sorted({cell["acuity"] for cell in cells})
    columns = sorted({cell["noise"] for cell in cells})
    leads = np.full((len(rows), len(columns)), np.nan)
    figure = Figure(figsize=(2 + 1.6 * len(columns), 1.5 + 0.9 * len(rows)), layout="constrained")
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
    with replacing(path) as draft:
        figure.savefig(draft, dpi=110)


class TrainingCurves(Protocol):
    """The values to draw, epoch by epoch."""

    @property
    def losses(self) -> Sequence[float]:
        """Mean loss."""

    @property
    def recalls(self) -> Sequence[Mapping[str, float]]:
        """Recall by k."""

    @property
    def pooled(self) -> Mapping[str, float]:
        """Recall of mean pooling, by k."""


def draw_training(curves: TrainingCurves, path: Path, *, title: str) -> None:
    """Write the curves; dashed lines of the same colour are mean pooling."""
    check_plot_path(path)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    epochs = range(1, len(curves.losses) + 1)
    left.plot(epochs, curves.losses, marker=".", color="black")
    left.set_ylabel("loss")
    for number, k in enumerate(curves.pooled):
        colour = f"C{number}"
        values = [recall[k] for recall in curves.recalls]
        right.plot(epochs, values, marker=".", color=colour, label=f"recall@{k}")
        right.axhline(curves.pooled[k], linestyle="--", color=colour, linewidth=1)
    right.set_ylim(0, 1)
    right.set_ylabel("recall (dashed: mean pooling)")
    right.legend()
    for axes in (left, right):
        axes.set_xlabel("epoch")
        axes.xaxis.get_major_locator().set_params(integer=True)
    figure.suptitle(escape_text(title))
    with replacing(path) as draft:
        figure.savefig(draft, dpi=110)
