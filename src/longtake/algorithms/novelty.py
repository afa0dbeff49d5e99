"""How much a film changes from one sampled frame to the next: four cues and their fusion.

A4VL ("Training-free, query-agnostic" event partition, appendix D). ``r`` runs over the N sampled
frames. A quantity that compares a frame with the one before it has N − 1 values, at the midpoints
τ_r = (t_{r−1} + t_r)/2.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from longtake.algorithms import changepoint

if TYPE_CHECKING:
    from longtake.types import Pixels


Floats: TypeAlias = NDArray[np.float64]

BINS = 32
"""Bins in the histogram of a colour channel (K)."""
CHANNEL_WEIGHTS = (0.55, 0.35, 0.10)
"""Weights of hue, saturation and value in the colour novelty (α, β, γ)."""
MAD_TO_DEVIATION = 1.4826
"""1/Φ⁻¹(0.75): for Gaussian data, the standard deviation over the median absolute deviation."""
DIGITS = 10
"""Decimals to which signals are rounded, so that ties do not depend on the order of summation."""
_ROUNDING = 1e-9  # a spread below this share of the values comes from arithmetic, not from the film


def colour_histograms(pixels: Pixels, bins: int = BINS) -> Floats:
    """``h̃ = h / (Σ_k h^H[k] + Σ_k h^S[k] + Σ_k h^V[k])``: 3 × K, normalised jointly (ℓ1)."""
    from PIL import Image

    hsv = np.asarray(Image.fromarray(pixels).convert("HSV")).reshape(-1, 3)
    places = hsv.astype(np.int64) * bins // 256
    counts = [np.bincount(places[:, channel], minlength=bins) for channel in range(3)]
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


def colour_novelty(histograms: Floats, weights: Sequence[float] = CHANNEL_WEIGHTS) -> Floats:
    """``c_r^nov = α d_r^H + β d_r^S + γ d_r^V``, d being cosine distances; from N × 3 × K."""
    distances = cosine_distance(histograms[1:], histograms[:-1])
    return np.asarray(distances @ np.asarray(weights))


def absolute_change(values: Floats) -> Floats:
    """``u_r = |x_r − x_{r−1}|``: the novelty of sharpness and of motion."""
    return np.asarray(np.abs(np.diff(values)))


def embedding_novelty(embeddings: Floats, decay: float = 0.9) -> Floats:
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
    tiny = _ROUNDING * max(1.0, float(np.abs(values).max()))
    mad = float(np.median(np.abs(values - np.median(values))))
    spread = MAD_TO_DEVIATION * mad
    if spread <= tiny:
        spread = float(values.std())
    return spread if spread > tiny else 0.0


def robust_z(values: Floats) -> Floats:
    """``z_r = (x_r − med(x)) / (1.4826 MAD(x))``; zeros for constant values."""
    spread = deviation(values)
    if spread <= 0:
        return np.zeros(len(values))
    return np.asarray((values - np.median(values)) / spread)


def moving_average(values: Floats, window: int = 5) -> Floats:
    """``x̄_r``: the mean over ``|u − r| ≤ ⌊w/2⌋``, truncated at both ends."""
    sums = np.concatenate(([0.0], np.cumsum(values)))
    places = np.arange(len(values))
    begin = np.maximum(places - window // 2, 0)
    end = np.minimum(places + window // 2 + 1, len(values))
    return np.asarray((sums[end] - sums[begin]) / (end - begin))


def normalised(values: Floats, *, window: int = 5, clip: float = 4.0) -> Floats:
    """``z̄_r``: robust z of a cue, averaged over a short window and clipped to ±``clip``."""
    return np.asarray(np.clip(moving_average(robust_z(values), window), -clip, clip))


def fusion_weights(cues: Mapping[str, Floats], base: Mapping[str, float]) -> dict[str, float]:
    """``w_c = β_c σ_c / Σ_{c'} β_{c'} σ_{c'}`` over the given cues; zeros if none varies."""
    raw = {name: base[name] * float(np.std(values)) for name, values in cues.items()}
    total = sum(raw.values())
    if total > 0:
        return {name: value / total for name, value in raw.items()}
    return dict.fromkeys(raw, 0.0)


def fuse(cues: Mapping[str, Floats], base: Mapping[str, float], *, window: int = 5) -> Floats:
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
    """Round a signal to :data:`DIGITS` decimals."""
    return np.asarray(np.round(values, DIGITS))


T = TypeVar("T", bound=Hashable)

K = 60
"""The constant of reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009)."""


def reciprocal_rank(
    rankings: Sequence[Sequence[T]], *, k: int = K, weights: Sequence[float] | None = None
) -> list[tuple[T, float]]:
    """Score items by ``Σ weight / (k + rank)`` over the rankings that contain them, best first.

    Ranks start at 1. Only ranks are used, since scores of different sources cannot be compared. An
    item counts once per ranking, at its best rank. Ties keep the order of first appearance.
    """
    if weights is None:
        weights = [1.0] * len(rankings)
    if len(weights) != len(rankings):
        raise ValueError(f"{len(weights)} weights for {len(rankings)} rankings")
    scores: dict[T, float] = {}
    for ranking, weight in zip(rankings, weights, strict=True):
        for rank, item in enumerate(dict.fromkeys(ranking), start=1):
            scores[item] = scores.get(item, 0.0) + weight / (k + rank)
    return sorted(scores.items(), key=lambda pair: -pair[1])


def by_moment(
    rankings: Mapping[str, Sequence[float]], *, apart: float = 2.0, k: int = K
) -> list[tuple[float, float, dict[str, float]]]:
    """Fuse rankings of *times*: hits of different sources within ``apart`` seconds add up.

    Returns ``(time, score, {source: its time})``, best first. The time is that of the best-ranked
    hit. Each source contributes only its best hit to a moment; its later hits nearby are absorbed.
    """
    hits: list[tuple[int, str, float]] = []
    for source, times in rankings.items():
        hits += [(rank, source, time) for rank, time in enumerate(times, start=1)]
    moments: list[_Moment] = []
    for rank, source, time in sorted(hits):
        near = [moment for moment in moments if abs(moment.time - time) <= apart]
        if near:
            nearest = min(near, key=lambda moment: abs(moment.time - time))
            # hits come by rank, so the first one of a source is its best
            nearest.members.setdefault(source, (rank, time))
        else:
            moments.append(_Moment(time, {source: (rank, time)}))
    fused = [(moment.time, moment.score(k), moment.times) for moment in moments]
    return sorted(fused, key=lambda entry: (-entry[1], entry[0]))


@dataclass(frozen=True)
class _Moment:
    """Hits that lie close together in time: rank and time by source."""

    time: float
    members: dict[str, tuple[int, float]]

    def score(self, k: int) -> float:
        return sum(1 / (k + rank) for rank, _ in self.members.values())

    @property
    def times(self) -> dict[str, float]:
        return {source: time for source, (_, time) in self.members.items()}


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
    z = robust_z(rounded(changepoint.ssm_novelty(matrix, half)))
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
