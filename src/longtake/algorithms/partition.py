"""Event partition: splits a film into visually coherent blocks, without training or a question.

A4VL, Algorithm 2::

     1  sample at most F frames uniformly
     2  for each of them
     3      colour, grey picture, sharpness, motion, embedding
     4  for each but the first
     5      colour, sharpness, motion and embedding novelty
     6      midpoint τ_r
     7  robust z and short moving average of each cue
     8  fusion weights, fused novelty s(τ_r), smoothed
     9  T_PELT ← ∅
    10  for each grid width Δ
    11      pool s(τ_r) by the maximum into bins of Δ
    12      PELT with segments ≥ ℓ_min; keep strong boundaries (γ)
    13      add them to T_PELT
    14  resample the embeddings to about 1 Hz
    15  T_SSM ← strong peaks of checkerboard novelty, ℓ_min apart
    16  T_KTS ← greedy kernel segmentation
    17  T_all ← T_PELT ∪ T_SSM ∪ T_KTS
    18  suppress what is closer than ℓ_min
    19  if more than B − 1 are left
    20      keep the B − 1 strongest
    22  return the blocks between them

Lines 1 to 3 need a film and live in :mod:`longtake.index.film`; this module starts from
:class:`~longtake.algorithms.partition_numbers.Samples`.

Departures from the paper (the docs page has the measurements):

- All heads share one ℓ_min = max(4 s, L/15).
- PELT's penalty is in units of the long-run variance, and the strictest penalty of the sweep that
  still finds a cut is used.
- λ_KTS scales with the segment being split, not with the film: a constant 1.4 never cuts.
- The strength of a cut is its SSM novelty, whichever head found it, and of two cuts that are too
  close the stronger one stays, not the earlier one.
- A cut is dropped if the frames on its two sides hardly differ (``min_contrast``).
- Grids finer than the spacing of the samples are widened to it, and γ only filters four or more
  cuts.

:data:`PAPER` reverts the departures that are fields. The shared ℓ_min, the unit of PELT's penalty
and the last point remain.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from longtake.algorithms import changepoint, novelty, released_partition
from longtake.algorithms.novelty import SelfSimilarity, self_similarity
from longtake.algorithms.partition_numbers import CUES, PartitionNumbers, Samples
from longtake.errors import check_least
from longtake.types import Segment

Floats: TypeAlias = NDArray[np.float64]

LONG_RUN = 625 / 85
"""Long-run variance over variance of white noise after two moving averages of 5: (Σw)² / Σw²."""
HEADS = ("pelt", "ssm", "kts")


@dataclass(frozen=True)
class EventCut:
    """A boundary between two blocks."""

    time: float
    strength: float
    heads: tuple[str, ...]
    """The heads that found a boundary within ℓ_min/2 of this one."""


@dataclass(frozen=True)
class Partition:
    """The blocks of a film."""

    duration: float
    cuts: tuple[EventCut, ...] = ()

    @property
    def blocks(self) -> list[Segment]:
        """The blocks in time order; they cover the film and do not overlap."""
        edges = [0.0, *(cut.time for cut in self.cuts), self.duration]
        return [Segment(a, b) for a, b in pairwise(edges)]


@dataclass(frozen=True)
class EventPartition(PartitionNumbers):
    """Algorithm 2, with its parameters as fields."""

    rules: Literal["printed", "released"] = "printed"
    """The steps of Algorithm 2, or those of the authors' code. With the latter, the fields
    ``pelt_keep``, ``kts_penalty``, ``strength``, ``nms`` and ``min_contrast`` have no effect."""
    pelt_keep: Literal["fewest", "union"] = "fewest"
    """Which PELT cuts of a grid to use: the fewest that a penalty finds (at least one), or all."""
    kts_penalty: Literal["segment", "whole", "constant"] = "segment"
    """λ is ``kts_factor`` times |C| of the segment being split, times |C| of the film, or alone."""
    strength: Literal["ssm", "gamma"] = "ssm"
    """What ranks cuts: SSM novelty, or the step of the fused signal."""
    nms: Literal["strength", "time"] = "strength"
    """Of two cuts that are too close, keep the stronger or the earlier."""
    min_contrast: float = 0.05
    """A cut must make frames across it less alike than those on one side by more than this, in
    embedding or in colour (difference of mean cosines; not in the paper)."""

    def __post_init__(self) -> None:
        seconds = {"min_seconds": 1e-3, "ssm_step": 1e-3, "min_share": 0}
        check_least(self, "events", max_feature_frames=2, width=16, kts_splits=0, **seconds)

    def __call__(self, samples: Samples, duration: float) -> Partition:
        """Partition a film of ``duration`` seconds."""
        min_length = self.shortest(duration)
        if len(samples.times) < 3 or duration < 2 * min_length:
            return Partition(duration)
        if self.rules == "released":
            by_head, kept, gammas = released_partition.cuts_of(self, samples)
            near = min_length / 2
            found = [EventCut(cut, gammas[cut], _heads(cut, by_head, near)) for cut in kept]
            return Partition(duration, tuple(found))
        times = novelty.midpoints(samples.times)  # 6
        weights = dict(zip(CUES, self.cue_weights, strict=True))
        fused = novelty.rounded(novelty.fuse(self.cues(samples), weights, self.window))  # 4 to 8
        frames = self._resampled(samples, min_length)  # 14
        cuts_by_head = {
            "pelt": self._pelt(times, fused, min_length),  # 9 to 13
            "ssm": self._ssm(frames, min_length),  # 15
            "kts": self._kts(frames, min_length),  # 16
        }
        candidates: list[EventCut] = []
        for time in sorted({time for head in HEADS for time in cuts_by_head[head]}):  # 17
            # a film too short to measure the contrast of its cuts keeps them all
            contrast = frames.at(time, frames.contrast, np.inf)
            if self.min_contrast > 0 and contrast <= self.min_contrast:
                continue
            strength = self._strength(time, frames, times, fused, min_length)
            heads = _heads(time, cuts_by_head, min_length / 2)
            candidates.append(EventCut(time, strength, heads))
        apart = suppress(candidates, min_length, duration, by=self.nms)  # 18
        by_strength = sorted(apart, key=lambda cut: (-cut.strength, cut.time))
        strongest = by_strength[: self.max_blocks - 1]  # 19, 20
        cuts = tuple(sorted(strongest, key=lambda cut: cut.time))
        return Partition(duration, cuts)  # 22

    def cues(self, samples: Samples) -> dict[str, Floats]:
        """Lines 4, 5 and 7: that novelty, normalised."""
        return {
            name: novelty.normalised(novelty.rounded(values), self.window, self.clip)
            for name, values in self.raw_cues(samples).items()
        }

    def _pelt(self, times: Floats, fused: Floats, min_length: float) -> list[float]:
        """Lines 9 to 13."""
        spacing = float(np.median(np.diff(times)))
        found_times: list[float] = []
        # several grids may be widened to the same width, so each width is used once
        for width in sorted({max(width, spacing) for width in self.grids}):
            centres, pooled = novelty.pool(times, fused, width)
            size = changepoint.bins_of(min_length, width)
            variance = novelty.deviation(pooled) ** 2
            unit = float(np.log(len(pooled))) * variance * LONG_RUN
            if unit <= 0:
                continue  # a flat signal has no cut
            swept = [changepoint.pelt(pooled, c * unit, size) for c in self.pelt_penalties]
            cuts = self._strong(pooled, self._kept(swept), size)
            found_times += [float(centres[cut]) for cut in cuts]
        return found_times

    def _kept(self, swept: list[list[int]]) -> list[int]:
        """Choose among the cuts that the penalties of the sweep give."""
        if self.pelt_keep == "union":
            return sorted({cut for cuts in swept for cut in cuts})
        # an empty list does not count: the strictest penalty would always win
        return min((cuts for cuts in swept if cuts), key=len, default=[])

    def _strong(self, pooled: Floats, cuts: list[int], size: int) -> list[int]:
        """Keep the cuts whose γ reaches the quantile."""
        # quantiles of fewer cuts mean little
        if len(cuts) < 4:
            return cuts
        gammas = [changepoint.local_strength(pooled, cut, size) for cut in cuts]
        bar = float(np.quantile(gammas, self.pelt_quantile))
        return [cut for cut, gamma in zip(cuts, gammas, strict=True) if gamma >= bar]

    def _resampled(self, samples: Samples, min_length: float) -> SelfSimilarity:
        spacing = float(np.median(np.diff(samples.times)))
        step = max(self.ssm_step, spacing)
        embeddings = np.asarray(samples.embeddings, np.float64)
        return self_similarity(
            samples.times,
            embeddings,
            samples.histograms,
            step=step,
            half=self.ssm_kernel or max(2, round(min_length / step)),
            sigma=self.ssm_sigma,
        )

    def _ssm(self, frames: SelfSimilarity, min_length: float) -> list[float]:
        apart = changepoint.bins_of(min_length, frames.step)
        peaks = changepoint.peaks(frames.z, apart, self.ssm_quantile)
        return [float(frames.centres[peak]) for peak in peaks]

    def _kts(self, frames: SelfSimilarity, min_length: float) -> list[float]:
        last = len(frames.matrix) - 1
        whole = abs(float(changepoint.SegmentCost(frames.matrix)(0, last)))
        penalty = {
            "segment": lambda cost: self.kts_factor * abs(cost),
            "whole": lambda _: self.kts_factor * whole,
            "constant": lambda _: self.kts_factor,
        }[self.kts_penalty]
        size = changepoint.bins_of(min_length, frames.step)
        cuts = changepoint.kts(frames.matrix, penalty, size, max_cuts=self.kts_splits)
        return [float(frames.edges[cut]) for cut in cuts]

    def _strength(
        self, time: float, frames: SelfSimilarity, times: Floats, fused: Floats, min_length: float
    ) -> float:
        if self.strength == "ssm":
            return frames.at(time, frames.z, 0.0)
        spacing = float(np.median(np.diff(times)))
        width = max(min(self.grids), spacing)
        centres, pooled = novelty.pool(times, fused, width)
        cut = int(np.argmin(np.abs(centres - time)))
        return changepoint.local_strength(pooled, cut, changepoint.bins_of(min_length, width))


PAPER: Mapping[str, Any] = {
    "min_seconds": 2.0,
    "kts_penalty": "whole",
    "kts_factor": 1.4,
    "strength": "gamma",
    "nms": "time",
    "min_contrast": 0.0,
}
"""The algorithm as printed, as far as it can be run: ``EventPartition(**PAPER)``."""

RELEASED: Mapping[str, Any] = {
    "rules": "released",
    "channel_weights": (0.55, 0.35, 0.01),  # there, V is weighted 0.1 twice
    "pelt_penalties": tuple(5 ** (n / 8) for n in range(9)),
    "ssm_kernel": 8,
}
"""The algorithm of the authors' code."""


def suppress(
    cuts: list[EventCut], min_length: float, duration: float, *, by: Literal["strength", "time"]
) -> list[EventCut]:
    """Keep cuts at least ``min_length`` from each other and from both ends of the film.

    By strength, the stronger of two close cuts stays. By time, cuts are scanned in time order and
    each one that is far enough from the last one kept stays. The result is in the order of ``by``.
    """
    if by == "strength":
        order = sorted(cuts, key=lambda cut: (-cut.strength, cut.time))
    else:
        order = sorted(cuts, key=lambda cut: cut.time)
    kept: list[EventCut] = []
    slack = min_length - 1e-9  # a block of exactly ℓ_min is long enough, whatever the rounding
    for cut in order:
        edges = (0.0, duration, *(other.time for other in kept))
        if all(abs(cut.time - edge) >= slack for edge in edges):
            kept.append(cut)
    return kept


def _heads(time: float, cuts: Mapping[str, list[float]], reach: float) -> tuple[str, ...]:
    """The heads with a cut near a time."""
    near = {head for head in HEADS if any(abs(time - cut) <= reach for cut in cuts[head])}
    return tuple(head for head in HEADS if head in near)
