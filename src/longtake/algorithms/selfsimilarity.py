"""How alike the frames of a film are to one another: what the SSM and KTS heads work on.

A4VL's event partition, line 14 of Algorithm 2: the embeddings, resampled to about 1 Hz, and their
Gram matrix. The checkerboard novelty and the contrast of every possible cut follow from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from longtake.algorithms import changepoint, novelty

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SelfSimilarity:
    """The embeddings on their grid, and what they say about every cut."""

    matrix: Floats
    """Q × Q cosines."""
    edges: Floats
    """Edge ``k`` is the time between items k − 1 and k."""
    step: float
    """Seconds between two items."""
    half: int
    """Items on one side of the checkerboard kernel (w)."""
    z: Floats
    """Robust z of the checkerboard novelty, for the cuts at ``centres``."""
    contrast: Floats
    """How much less alike frames are across a cut than on one side, for the cuts at ``centres``."""

    @property
    def centres(self) -> Floats:
        """Times of the cuts around which the whole kernel fits."""
        return self.edges[self.half : len(self.matrix) - self.half + 1]

    def at(self, time: float, values: Floats, otherwise: float) -> float:
        """Interpolate ``z`` or ``contrast`` at a time; ``otherwise`` if the kernel fits nowhere."""
        if len(values) == 0:
            return otherwise
        return float(np.interp(time, self.centres, values))


def self_similarity(
    times: Floats, embeddings: Floats, histograms: Floats | None, *, step: float, least: float
) -> SelfSimilarity:
    """Resample to ``step`` seconds and compare; the kernel spans ``least`` seconds on each side."""
    item_times, rows = resample(times, embeddings, step)
    matrix = changepoint.gram(rows)
    half = max(2, round(least / step))
    contrast = changepoint.ssm_contrast(matrix, half)
    if histograms is not None:
        # a cut that shows in either embedding or colour counts, so the larger contrast does
        _, colours = resample(times, histograms.reshape(len(times), -1), step)
        colour_contrast = changepoint.ssm_contrast(changepoint.gram(colours), half)
        contrast = np.maximum(contrast, colour_contrast)
    middles = (item_times[1:] + item_times[:-1]) / 2
    edges = np.concatenate((item_times[:1], middles, item_times[-1:]))
    z = novelty.robust_z(novelty.rounded(changepoint.ssm_novelty(matrix, half)))
    return SelfSimilarity(matrix, edges, step, half, z, novelty.rounded(contrast))


def resample(times: Floats, rows: Floats, step: float) -> tuple[Floats, Floats]:
    """Average rows in bins of ``step`` seconds; return the mean time and the mean row of each bin.

    An empty bin repeats the row before it; its time is interpolated between its neighbours.
    """
    place = np.floor((times - times[0]) / step + 1e-9).astype(int)
    count = int(place[-1]) + 1
    held = np.bincount(place, minlength=count)
    sums = np.zeros((count, rows.shape[1]))
    np.add.at(sums, place, rows)
    number = np.arange(count)
    full = held > 0
    mean_times = np.bincount(place, weights=times, minlength=count)[full] / held[full]
    # for every bin, the number of the last bin up to it that holds a sample
    last_full = np.maximum.accumulate(np.where(full, number, 0))
    means = (sums / np.maximum(held, 1)[:, None])[last_full]
    return np.asarray(np.interp(number, number[full], mean_times)), means
