"""What both forms of the event partition read: measurements on frames, and numbers (A4VL)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from longtake.algorithms import novelty

Floats: TypeAlias = NDArray[np.float64]

CUES = ("colour", "motion", "embedding", "sharpness")


@dataclass(frozen=True, eq=False)
class Samples:
    """Measurements on the sampled frames; without pictures there are only embeddings."""

    times: Floats
    embeddings: Floats
    """N × D."""
    histograms: Floats | None = None
    """N × 3 × K."""
    sharpness: Floats | None = None
    motion: Floats | None = None


@dataclass(frozen=True)
class PartitionNumbers:
    """The numbers of Algorithm 2."""

    max_blocks: int = 6
    """Maximum number of blocks (B)."""
    max_feature_frames: int = 200
    """Maximum number of frames sampled (F)."""
    width: int = 384
    """Width of those frames in pixels."""
    min_seconds: float = 4.0
    """A block lasts at least this long (ℓ_0) …"""
    min_share: float = 1 / 15
    """… and at least this share of the film."""
    channel_weights: tuple[float, float, float] = (0.55, 0.35, 0.10)
    """Weights of hue, saturation and value in the colour novelty (α, β, γ)."""
    decay: float = 0.9
    """Share of the average embedding that a new frame leaves (δ)."""
    window: int = 5
    """Samples of a moving average (w)."""
    clip: float = 4.0
    """Largest robust z that counts."""
    cue_weights: tuple[float, float, float, float] = (0.20, 0.30, 0.35, 0.05)
    """Weights of colour, motion, embedding and sharpness before the spread of each is taken into
    account (β_c)."""
    grids: tuple[float, ...] = (0.25, 0.5, 1.0)
    """Bin widths for PELT in seconds (Δ); widened to the spacing of the samples if narrower."""
    pelt_penalties: tuple[float, ...] = (1.0, 2.0, 4.0)
    """Penalties c in c · log(J) · σ²."""
    pelt_quantile: float = 0.7
    """Of four or more PELT cuts, those with γ below this quantile are dropped."""
    ssm_step: float = 1.0
    """Seconds between embeddings for SSM and KTS; widened like ``grids``."""
    ssm_kernel: int | None = None
    """Half-width of the checkerboard kernel in those steps (w); unset: ℓ_min."""
    ssm_sigma: float = 0.5
    """Width of its Gaussian taper (σ) as a share of that half-width."""
    ssm_quantile: float = 0.80
    """Peaks of SSM novelty must exceed this quantile."""
    kts_factor: float = 1.3
    kts_splits: int = 30
    """Maximum number of splits of the recursion."""

    def shortest(self, duration: float) -> float:
        """``ℓ_min = max(ℓ_0, L/15)``."""
        return max(self.min_seconds, duration * self.min_share)

    def raw_cues(self, samples: Samples) -> dict[str, Floats]:
        """Lines 4 and 5: the novelty of every cue that was measured."""
        embeddings = np.asarray(samples.embeddings, np.float64)
        raw = {"embedding": novelty.embedding_novelty(embeddings, self.decay)}
        if samples.histograms is not None:
            raw["colour"] = novelty.colour_novelty(samples.histograms, self.channel_weights)
        if samples.sharpness is not None:
            raw["sharpness"] = novelty.absolute_change(samples.sharpness)
        if samples.motion is not None:
            raw["motion"] = novelty.absolute_change(samples.motion)
        return raw
