"""Plot of a training run: loss, and recall on held-out clips."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from longtake.plots.events import check_plot_path
from longtake.plots.text import plain
from longtake.replacing import replacing


class Curves(Protocol):
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


def draw_training(curves: Curves, path: Path, *, title: str) -> None:
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
    figure.suptitle(plain(title))
    with replacing(path) as draft:
        figure.savefig(draft, dpi=110)
