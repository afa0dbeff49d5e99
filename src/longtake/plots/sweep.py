"""Plot of a method's lead over uniform frames, by acuity and encoder noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from longtake.plots.events import check_plot_path
from longtake.replacing import replacing


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
