"""A method's lead over uniform frames, over acuity and noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from longtake.plots.events import check


def draw(cells: Sequence[Mapping[str, Any]], path: Path, *, title: str) -> None:
    """Write the grid; each cell has ``acuity``, ``noise`` and ``lead`` with ``value``, ``low`` and ``high``."""
    check(path)
    from matplotlib.figure import Figure

    rows, columns = (sorted({cell[name] for cell in cells}) for name in ("acuity", "noise"))
    leads = np.full((len(rows), len(columns)), np.nan)
    figure = Figure(figsize=(2 + 1.6 * len(columns), 1.5 + 0.9 * len(rows)), layout="constrained")
    axes = figure.subplots()
    for cell in cells:
        row, column, lead = rows.index(cell["acuity"]), columns.index(cell["noise"]), cell["lead"]
        leads[row, column] = 100 * lead["value"]
        text = f"{100 * lead['value']:+.1f}\n[{100 * lead['low']:+.1f}, {100 * lead['high']:+.1f}]"
        axes.text(column, row, text, ha="center", va="center", fontsize=8)
    reach = max(1.0, float(np.nanmax(np.abs(leads))))
    axes.imshow(leads, cmap="RdYlGn", vmin=-reach, vmax=reach, aspect="auto", origin="lower")
    axes.set_xticks(range(len(columns)), [f"{value:g}" for value in columns])
    axes.set_yticks(range(len(rows)), [f"{value:g}" for value in rows])
    axes.set_xlabel("encoder noise")
    axes.set_ylabel("acuity")
    figure.suptitle(title)
    figure.savefig(path, dpi=110)
