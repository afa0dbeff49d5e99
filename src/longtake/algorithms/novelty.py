"""How much a film changes from one sampled frame to the next: four cues and their fusion.

A4VL ("Training-free, query-agnostic" event partition, appendix D). ``r`` runs over the N sampled
frames. A quantity that compares a frame with the one before it has N − 1 values, at the midpoints
τ_r = (t_{r−1} + t_r)/2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from longtake.algorithms import changepoint

if TYPE_CHECKING:
    from longtake.types import Pixels


Floats: TypeAlias = NDArray[np.float64]

BINS = 32
"""Bins of a histogram per channel (K)."""


def colour_histograms(pixels: Pixels) -> Floats:
    """``h̃ = h / (Σ_k h^H[k] + Σ_k h^S[k] + Σ_k h^V[k])``: 3 × K, normalised jointly (ℓ1)."""
    from PIL import Image

    hsv = np.asarray(Image.fromarray(pixels).convert("HSV")).reshape(-1, 3)
    places = hsv.astype(np.int64) * BINS // 256
    counts = [np.bincount(places[:, channel], minlength=BINS) for channel in range(3)]
    histograms = np.asarray(counts, np.float64)
    return np.asarray(histograms / max(float(histograms.sum()), 1.0))


def grey(pixels: Pixels) -> Floats:
    """The luma of a picture, 0 to 255 (G_r)."""
    from PIL import Image

    return np.asarray(Image.fromarray(pixels).convert("L"), np.float64)


def sharpness(picture: Floats) -> float:
    """``s_r``: the variance of the Laplacian (3 × 3, edges mirrored) of a grey picture."""
    # "reflect" needs a second row and column
    mirrored = np.pad(picture, 1, mode="reflect" if min(picture.shape) > 1 else "edge")
    laplacian = (
        mirrored[:-2, 1:-1]
        + mirrored[2:, 1:-1]
        + mirrored[1:-1, :-2]
        + mirrored[1:-1, 2:]
        - 4 * mirrored[1:-1, 1:-1]
    )
    return float(laplacian.var())


def motion(picture: Floats, before: Floats) -> float:
    """``m_r = median_x |G_r(x) − G_{r−1}(x)| / 255``."""
    return float(np.median(np.abs(picture - before)) / 255)


def midpoints(times: Floats) -> Floats:
    """``τ_r = (t_{r−1} + t_r)/2``."""
    return np.asarray((times[1:] + times[:-1]) / 2)


def cosine_distance(some: Floats, others: Floats) -> Floats:
    """``1 − ⟨a, b⟩/(‖a‖‖b‖)`` row by row; 1 if either row is all zeros."""
    norms = np.linalg.norm(some, axis=-1) * np.linalg.norm(others, axis=-1)
    products = (some * others).sum(axis=-1)
    cosines = np.divide(products, norms, out=np.zeros_like(products), where=norms > 0)
    return np.asarray(1 - cosines)


def colour_novelty(histograms: Floats, weights: Sequence[float]) -> Floats:
    """``c_r^nov = α d_r^H + β d_r^S + γ d_r^V``, d being cosine distances; from N × 3 × K."""
    distances = cosine_distance(histograms[1:], histograms[:-1])
    return np.asarray(distances @ np.asarray(weights))


def absolute_change(values: Floats) -> Floats:
    """``u_r = |x_r − x_{r−1}|``: the novelty of sharpness and of motion."""
    return np.asarray(np.abs(np.diff(values)))


def embedding_novelty(embeddings: Floats, decay: float) -> Floats:
    """``u_r^emb = ½ d_r^prev + ½ d_r^ema``: distance to the previous frame and to the average.

    The average is ``ẽ_1 = e_1, ẽ_r = δ ẽ_{r−1} + (1 − δ) e_r``. It averages the raw embeddings and
    is normalised only when it is compared.
    """
    average = np.array(embeddings[:1], np.float64)
    averages = []
    for row in embeddings[1:]:
        averages.append(average[0])
        average = decay * average + (1 - decay) * row
    # reshaped, so that a single frame gives an empty matrix of the right width
    so_far = np.asarray(averages, np.float64).reshape(-1, embeddings.shape[1])
    to_previous = cosine_distance(embeddings[1:], embeddings[:-1])
    to_average = cosine_distance(embeddings[1:], so_far)
    return (to_previous + to_average) / 2


def deviation(values: Floats) -> float:
    """``1.4826 · MAD(x)``, or the standard deviation if the MAD is 0; 0 for constant values."""
    if len(values) == 0:
        return 0.0
    # a spread below this share of the values comes from arithmetic, not from the film
    tiny = 1e-9 * max(1.0, float(np.abs(values).max()))
    mad = float(np.median(np.abs(values - np.median(values))))
    # 1/Φ⁻¹(0.75): for Gaussian data, the standard deviation over the MAD
    spread = 1.4826 * mad
    if spread <= tiny:
        spread = float(values.std())
    return spread if spread > tiny else 0.0


def robust_z(values: Floats) -> Floats:
    """``z_r = (x_r − med(x)) / (1.4826 MAD(x))``; zeros for constant values."""
    spread = deviation(values)
    if spread <= 0:
        return np.zeros(len(values))
    return np.asarray((values - np.median(values)) / spread)


def moving_average(values: Floats, window: int) -> Floats:
    """``x̄_r``: the mean over ``|u − r| ≤ ⌊w/2⌋``, truncated at both ends."""
    sums = np.concatenate(([0.0], np.cumsum(values)))
    places = np.arange(len(values))
    begin = np.maximum(places - window // 2, 0)
    end = np.minimum(places + window // 2 + 1, len(values))
    return np.asarray((sums[end] - sums[begin]) / (end - begin))


def normalised(values: Floats, window: int, clip: float) -> Floats:
    """``z̄_r``: robust z of a cue, averaged over a short window and clipped."""
    return np.asarray(np.clip(moving_average(robust_z(values), window), -clip, clip))


def fusion_weights(cues: Mapping[str, Floats], base: Mapping[str, float]) -> dict[str, float]:
    """``w_c = β_c σ_c / Σ_{c'} β_{c'} σ_{c'}`` over the given cues; zeros if none varies."""
    raw = {name: base[name] * float(np.std(values)) for name, values in cues.items()}
    total = sum(raw.values())
    if total > 0:
        return {name: value / total for name, value in raw.items()}
    return dict.fromkeys(raw, 0.0)


def fuse(cues: Mapping[str, Floats], base: Mapping[str, float], window: int) -> Floats:
    """``s(τ_r) = Σ_c w_c z_r^c``, averaged over a short window again."""
    weights = fusion_weights(cues, base)
    total = np.sum([weights[name] * values for name, values in cues.items()], axis=0)
    return moving_average(np.asarray(total, np.float64), window)


def pool(times: Floats, values: Floats, width: float) -> tuple[Floats, Floats]:
    """``s_j = max{s(τ_r) : τ_r ∈ [u_j, u_{j+1})}`` with ``u_j = τ_2 + jΔ``.

    Returns the bin centres and the pooled signal. A bin without a sample, which occurs when frames
    are not evenly spaced, is interpolated between its neighbours.
    """
    span = float(times[-1] - times[0])
    bins = max(1, int(np.ceil(span / width - 1e-9)))
    place = np.clip(((times - times[0]) / width + 1e-9).astype(int), 0, bins - 1)
    pooled = np.full(bins, -np.inf)
    np.maximum.at(pooled, place, values)
    centres = times[0] + (np.arange(bins) + 0.5) * width
    held = np.isfinite(pooled)
    return centres, np.asarray(np.interp(centres, centres[held], pooled[held]))


def rounded(values: Floats) -> Floats:
    """Round a signal, so that ties do not depend on the order of summation."""
    return np.asarray(np.round(values, 10))


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
    times: Floats,
    embeddings: Floats,
    histograms: Floats | None,
    *,
    step: float,
    half: int,
    sigma: float,
) -> SelfSimilarity:
    """Resample to ``step`` seconds and compare, with a kernel of ``half`` items on each side."""
    item_times, rows = resample(times, embeddings, step)
    matrix = changepoint.gram(rows)
    contrast = changepoint.ssm_contrast(matrix, half)
    if histograms is not None:
        # a cut that shows in either embedding or colour counts, so the larger contrast does
        _, colours = resample(times, histograms.reshape(len(times), -1), step)
        colour_contrast = changepoint.ssm_contrast(changepoint.gram(colours), half)
        contrast = np.maximum(contrast, colour_contrast)
    middles = (item_times[1:] + item_times[:-1]) / 2
    edges = np.concatenate((item_times[:1], middles, item_times[-1:]))
    z = robust_z(rounded(changepoint.ssm_novelty(matrix, half, sigma)))
    return SelfSimilarity(matrix, edges, step, half, z, rounded(contrast))


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
