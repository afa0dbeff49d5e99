"""Plots of accuracy with 95 % intervals (extra: report)."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from longtake._util import visible
from longtake.errors import MissingExtra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def escape_text(text: str) -> str:
    """A text that matplotlib shows as it is; it would read "$" as the start of mathematics."""
    return visible(text).replace("$", r"\$")


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
    from matplotlib.ticker import PercentFormatter

    figure = _new_figure(5, 3.6)
    axes = figure.subplots()
    axes.set_xlabel(escape_text(x_name))
    axes.set_ylim(-0.02, 1.02)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.grid(alpha=0.3)
    if diagonal:
        axes.plot([0, 1], [0, 1], linestyle="--", color="grey", linewidth=1)
    for mark in marks:
        axes.errorbar(
            mark.x,
            mark.y,
            yerr=[[mark.y - mark.low], [mark.high - mark.y]],
            marker="o",
            linestyle="",
            color=f"C{mark.colour % 10}",
            label=_legend_name(mark),
        )
    axes.set_xlim(left=0)
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
        raise MissingExtra("report", "drawing a plot") from error
    return Figure(figsize=(width, height), layout="constrained")


def _legend_name(mark: Mark) -> str:
    # matplotlib leaves names that begin with "_" out of a legend
    return escape_text(mark.name[:LONGEST_NAME]).lstrip("_")


def _draw_legend(axes: Axes) -> None:
    handles, names = axes.get_legend_handles_labels()
    by_name = dict(zip(names, handles, strict=True))
    axes.figure.legend(by_name.values(), by_name.keys(), loc="outside lower center", fontsize=8)
