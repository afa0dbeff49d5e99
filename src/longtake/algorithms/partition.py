"""Event partition: a film as a few visually coherent blocks, without training and without a question.

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

Lines 1 to 3 need a film and live in :mod:`longtake.index.blocks`; here :class:`Samples` come in.

Departures (the docs page has the measurements). One ℓ_min = max(4 s, L/15) for all heads. PELT's penalty is in
units of the long-run variance; of the sweep, the strictest penalty that still finds a cut counts. λ_KTS follows
the segment being split: a bare 1.4 can hardly ever be exceeded. Strength is the SSM novelty, whichever head found
the cut, and of two that are too close the stronger stays, not the earlier. A cut across which frames hardly differ
(``min_contrast``) is none. Grids narrower than the distance of samples are widened to it, and γ chooses among four
cuts or more. :data:`PAPER` undoes what is a field; one ℓ_min, the unit of PELT's penalty and the last two stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from longtake.algorithms import changepoint, novelty
from longtake.errors import check_least
from longtake.types import Segment

Floats: TypeAlias = NDArray[np.float64]

BASE_WEIGHTS: Mapping[str, float] = {
    "colour": 0.20,
    "motion": 0.30,
    "embedding": 0.35,
    "sharpness": 0.05,
}
"""Of the cues, before their own spread is taken into account (β_c)."""
LONG_RUN = 625 / 85
"""Long-run variance of white noise over its variance, after two moving averages of five: (Σ w)² / Σ w²."""
HEADS = ("pelt", "ssm", "kts")
_DIGITS = 10  # cues are rounded to this, so that equal stays equal whatever the order of summation


@dataclass(frozen=True, eq=False)
class Samples:
    """Sampled frames in numbers; without pictures there are embeddings alone."""

    times: Floats
    embeddings: Floats
    """N × D."""
    histograms: Floats | None = None
    """N × 3 × K."""
    sharpness: Floats | None = None
    motion: Floats | None = None


@dataclass(frozen=True)
class Cut:
    """A boundary between two blocks."""

    time: float
    strength: float
    heads: tuple[str, ...]
    """Those that found a boundary here or within ℓ_min/2."""


@dataclass(frozen=True, eq=False)
class Partition:
    """A film in blocks, and the signals that led to them."""

    duration: float
    cuts: tuple[Cut, ...] = ()
    times: Floats = field(default_factory=lambda: np.zeros(0))
    """The midpoints τ_r."""
    cues: Mapping[str, Floats] = field(default_factory=dict)
    """The normalised cues on them."""
    fused: Floats = field(default_factory=lambda: np.zeros(0))

    @property
    def blocks(self) -> list[Segment]:
        """The blocks, in time order: they cover the film and do not overlap."""
        edges = [0.0, *(cut.time for cut in self.cuts), self.duration]
        return [Segment(a, b) for a, b in pairwise(edges)]


@dataclass(frozen=True, eq=False)
class _Embedded:
    """The embeddings on their grid of about 1 Hz (line 14)."""

    similarity: Floats
    edges: Floats
    """Edge ``k`` is the time between items k − 1 and k."""
    step: float
    half: int
    z: Floats
    contrast: Floats

    @property
    def centres(self) -> Floats:
        """Times of the cuts that the kernel fits around."""
        return self.edges[self.half : len(self.similarity) - self.half + 1]

    def at(self, time: float, values: Floats, otherwise: float) -> float:
        return float(np.interp(time, self.centres, values)) if len(values) else otherwise


@dataclass(frozen=True)
class EventPartition:
    """Algorithm 2, its numbers as fields."""

    max_blocks: int = 6
    """Most blocks (B)."""
    max_feature_frames: int = 200
    """Most frames looked at (F)."""
    width: int = 384
    """Width of those frames in pixels."""
    min_seconds: float = 4.0
    """A block lasts at least this long (ℓ_0) …"""
    min_share: float = 1 / 15
    """… and at least this share of the film."""
    grids: tuple[float, ...] = (0.25, 0.5, 1.0)
    """Bin widths for PELT in seconds (Δ); widened to the sample step where that is longer."""
    pelt_penalties: tuple[float, ...] = (1.0, 2.0, 4.0)
    """Penalties c in c · log(J) · σ²."""
    pelt_keep: Literal["fewest", "union"] = "fewest"
    """Of the penalties that cut at all the one with the fewest cuts, or the cuts of all of them."""
    pelt_quantile: float = 0.7
    """Of four or more PELT cuts, those with γ below this quantile are dropped."""
    ssm_step: float = 1.0
    """Seconds between embeddings for SSM and KTS; widened likewise."""
    ssm_quantile: float = 0.80
    """Peaks of SSM novelty lie above this quantile."""
    kts_penalty: Literal["segment", "whole", "constant"] = "segment"
    """λ is ``kts_factor`` times |C| of the segment being split, times |C| of the film, or ``kts_factor`` itself."""
    kts_factor: float = 1.3
    kts_splits: int = 30
    """Most splits of the recursion."""
    strength: Literal["ssm", "gamma"] = "ssm"
    """What ranks cuts: SSM novelty, or the step of the fused signal."""
    nms: Literal["strength", "time"] = "strength"
    """Of two cuts that are too close the stronger stays, or the earlier."""
    min_contrast: float = 0.05
    """A cut is dropped where frames across it are less alike than those on one side by no more than this, in embedding
    and in colour (mean cosine; ours)."""

    def __post_init__(self) -> None:
        check_least(
            self,
            "events",
            max_blocks=1,
            max_feature_frames=2,
            width=16,
            min_seconds=1e-3,
            min_share=0,
            ssm_step=1e-3,
            kts_splits=0,
        )

    def __call__(self, samples: Samples, duration: float) -> Partition:
        """The blocks of a film of ``duration`` seconds."""
        least = self.shortest(duration)
        if len(samples.times) < 3 or duration < 2 * least:
            return Partition(duration)
        cues = {  # 4 to 7
            name: novelty.normalised(np.round(values, _DIGITS))
            for name, values in self._novelties(samples).items()
        }
        times, fused = (
            novelty.midpoints(samples.times),
            np.round(novelty.fuse(cues, BASE_WEIGHTS), _DIGITS),
        )  # 6, 8
        embedded = self._embedded(samples, least)  # 14
        found = {
            "pelt": self._pelt(times, fused, least),  # 9 to 13
            "ssm": self._ssm(embedded, least),  # 15
            "kts": self._kts(embedded, least),  # 16
        }
        everything = sorted({time for head in HEADS for time in found[head]})  # 17
        cuts = [
            Cut(
                time,
                self._strength(time, embedded, times, fused, least),
                _voters(time, found, least / 2),
            )
            for time in everything
            if self.min_contrast <= 0
            or embedded.at(time, embedded.contrast, np.inf) > self.min_contrast
        ]
        cuts = suppress(cuts, least, duration, by=self.nms)  # 18
        cuts = sorted(cuts, key=lambda cut: (-cut.strength, cut.time))[
            : self.max_blocks - 1
        ]  # 19, 20
        return Partition(
            duration, tuple(sorted(cuts, key=lambda cut: cut.time)), times, cues, fused
        )  # 21, 22

    def shortest(self, duration: float) -> float:
        """``ℓ_min = max(ℓ_0, L/15)``."""
        return max(self.min_seconds, duration * self.min_share)

    def _novelties(self, samples: Samples) -> dict[str, Floats]:
        found = {"embedding": novelty.embedding_novelty(np.asarray(samples.embeddings, np.float64))}
        if samples.histograms is not None:
            found["colour"] = novelty.colour_novelty(samples.histograms)
        if samples.sharpness is not None:
            found["sharpness"] = novelty.absolute_change(samples.sharpness)
        if samples.motion is not None:
            found["motion"] = novelty.absolute_change(samples.motion)
        return found

    def _pelt(self, times: Floats, fused: Floats, least: float) -> list[float]:
        step = float(np.median(np.diff(times)))
        found: list[float] = []
        for width in sorted({max(width, step) for width in self.grids}):
            centres, pooled = novelty.pool(times, fused, width)
            size = changepoint.bins_of(least, width)
            unit = float(np.log(len(pooled))) * novelty.deviation(pooled) ** 2 * LONG_RUN
            if unit <= 0:
                continue  # a level signal
            tried = [changepoint.pelt(pooled, c * unit, size) for c in self.pelt_penalties]
            cuts = self._kept(tried)
            gammas = [changepoint.local_strength(pooled, cut, size) for cut in cuts]
            if len(cuts) >= 4:
                bar = float(np.quantile(gammas, self.pelt_quantile))
                cuts = [cut for cut, gamma in zip(cuts, gammas, strict=True) if gamma >= bar]
            found += [float(centres[cut]) for cut in cuts]
        return found

    def _kept(self, tried: list[list[int]]) -> list[int]:
        if self.pelt_keep == "union":
            return sorted({cut for cuts in tried for cut in cuts})
        # were no cut at all counted, the strictest penalty would always win and there were nothing to sweep
        return min((cuts for cuts in tried if cuts), key=len, default=[])

    def _embedded(self, samples: Samples, least: float) -> _Embedded:
        step = max(self.ssm_step, float(np.median(np.diff(samples.times))))
        times, rows = resample(samples.times, np.asarray(samples.embeddings, np.float64), step)
        similarity = changepoint.gram(rows)
        half = max(2, round(least / step))
        middles = (times[1:] + times[:-1]) / 2
        edges = np.concatenate((times[:1], middles, times[-1:]))
        raw = np.round(changepoint.ssm_novelty(similarity, half), _DIGITS)
        contrast = changepoint.ssm_contrast(similarity, half)
        if samples.histograms is not None:
            colours = resample(
                samples.times, samples.histograms.reshape(len(samples.times), -1), step
            )[1]
            contrast = np.maximum(
                contrast, changepoint.ssm_contrast(changepoint.gram(colours), half)
            )
        return _Embedded(
            similarity, edges, step, half, novelty.robust_z(raw), np.round(contrast, _DIGITS)
        )

    def _ssm(self, embedded: _Embedded, least: float) -> list[float]:
        apart = changepoint.bins_of(least, embedded.step)
        return [
            float(embedded.centres[place])
            for place in changepoint.peaks(embedded.z, apart, self.ssm_quantile)
        ]

    def _kts(self, embedded: _Embedded, least: float) -> list[float]:
        similarity = embedded.similarity
        whole = abs(float(changepoint.SegmentCost(similarity)(0, len(similarity) - 1)))
        penalty = {
            "segment": lambda cost: self.kts_factor * abs(cost),
            "whole": lambda _: self.kts_factor * whole,
            "constant": lambda _: self.kts_factor,
        }[self.kts_penalty]
        size = changepoint.bins_of(least, embedded.step)
        cuts = changepoint.kts(similarity, penalty, size, most=self.kts_splits)
        return [float(embedded.edges[cut]) for cut in cuts]

    def _strength(
        self, time: float, embedded: _Embedded, times: Floats, fused: Floats, least: float
    ) -> float:
        if self.strength == "ssm":
            return embedded.at(time, embedded.z, 0.0)
        width = max(min(self.grids), float(np.median(np.diff(times))))
        centres, pooled = novelty.pool(times, fused, width)
        cut = int(np.argmin(np.abs(centres - time)))
        return changepoint.local_strength(pooled, cut, changepoint.bins_of(least, width))


PAPER: Mapping[str, Any] = {
    "min_seconds": 2.0,
    "pelt_keep": "union",
    "kts_penalty": "constant",
    "kts_factor": 1.4,
    "strength": "gamma",
    "nms": "time",
    "min_contrast": 0.0,
}
"""The printed text, where it can be executed: ``EventPartition(**PAPER)``."""


def resample(times: Floats, rows: Floats, step: float) -> tuple[Floats, Floats]:
    """Rows averaged in bins of ``step`` seconds, with the mean time of each bin's samples.

    An empty bin repeats the row before it; its time lies on the line between its neighbours.
    """
    place = np.floor((times - times[0]) / step + 1e-9).astype(int)
    count = int(place[-1]) + 1
    held = np.bincount(place, minlength=count)
    sums = np.zeros((count, rows.shape[1]))
    np.add.at(sums, place, rows)
    number = np.arange(count)
    full = held > 0
    mean_times = np.bincount(place, weights=times, minlength=count)[full] / held[full]
    last_full = np.maximum.accumulate(np.where(full, number, 0))
    means = (sums / np.maximum(held, 1)[:, None])[last_full]
    return np.asarray(np.interp(number, number[full], mean_times)), means


def suppress(
    cuts: list[Cut], least: float, duration: float, *, by: Literal["strength", "time"]
) -> list[Cut]:
    """Cuts no closer than ``least`` to one another, to the start and to the end; in order of ``by``.

    By strength the stronger of two stays. By time they are scanned in order and each is kept that is far
    enough from the last one kept.
    """
    order = sorted(
        cuts, key=lambda cut: (-cut.strength, cut.time) if by == "strength" else (cut.time, 0.0)
    )
    kept: list[Cut] = []
    slack = least - 1e-9
    for cut in order:
        edges = (0.0, duration, *(other.time for other in kept))
        if all(abs(cut.time - edge) >= slack for edge in edges):
            kept.append(cut)
    return kept


def _voters(time: float, found: Mapping[str, list[float]], reach: float) -> tuple[str, ...]:
    return tuple(head for head in HEADS if any(abs(time - other) <= reach for other in found[head]))
