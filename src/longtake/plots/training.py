"""How a training went: its loss, and what it finds among held-out clips."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from longtake.plots.events import check


class Curves(Protocol):
    """What is drawn, epoch by epoch."""

    @property
    def losses(self) -> Sequence[float]:
        """Mean loss."""

    @property
    def recalls(self) -> Sequence[Mapping[str, float]]:
        """Recall by k."""

    @property
    def pooled(self) -> Mapping[str, float]:
        """Recall of mean pooling, by k."""


def draw(curves: Curves, path: Path, *, title: str) -> None:
    """Write the curves; mean pooling is the dashed line of the same colour."""
    check(path)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    epochs = range(1, len(curves.losses) + 1)
    left.plot(epochs, curves.losses, marker=".", color="black")
    left.set_ylabel("loss")
    for number, k in enumerate(curves.pooled):
        right.plot(
            epochs,
            [found[k] for found in curves.recalls],
            marker=".",
            color=f"C{number}",
            label=f"recall@{k}",
        )
        right.axhline(curves.pooled[k], linestyle="--", color=f"C{number}", linewidth=1)
    right.set_ylim(0, 1)
    right.set_ylabel("recall (dashed: mean pooling)")
    right.legend()
    for axes in (left, right):
        axes.set_xlabel("epoch")
        axes.xaxis.get_major_locator().set_params(integer=True)
    figure.suptitle(title.replace("$", r"\$"))
    figure.savefig(path, dpi=110)
