"""The event partition of A4VL's released code, step by step beside :mod:`~.partition`.

It is another algorithm than the printed one, under the same names (``EventPartition.rules``):

- Line 7: cues are smoothed, with zeros beyond the ends, before z; the MAD has no substitute.
- Line 11: an empty bin is 0, and the last part of a bin is dropped.
- Line 12: PELT with a Gaussian kernel, at every fifth bin, and pruned; the fewest cuts that keep
  ℓ_min win, often none. Then a single cut if the two ends of the film differ.
- Line 15: the kernel is off centre by half an item; where it does not fit, novelty is 0 and counts.
  Peaks clipped to one height are lost. Over 600 items, two means are compared instead.
- Line 16: KTS on the samples themselves; a cut is the time of the last sample before it.
- Lines 17 to 20: close cuts are dropped in time order, and nothing keeps the last block from being
  short. The strongest cuts are kept by γ on a grid of half a second.

Times are float32, as there.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from longtake.algorithms import changepoint, novelty
from longtake.algorithms.partition_numbers import CUES, PartitionNumbers, Samples

Floats: TypeAlias = NDArray[np.float64]
Times: TypeAlias = NDArray[np.float32]

MAX_BINS = 256
"""Most bins of a grid."""
STRIDE = 5
"""Bins from one place of a cut to the next."""
DRIFT = 0.5
"""Least difference between the two ends of a film that have no cut between them."""
MANY = 600
"""From more items on, novelty compares means."""


def cuts_of(
    rule: PartitionNumbers, samples: Samples
) -> tuple[dict[str, list[float]], list[float], dict[float, float]]:
    """The cuts of each head, those that are left, and the strength of each."""
    times = np.asarray(samples.times, np.float32)
    shortest = float(rule.shortest(float(times[-1])))
    middles = (times[1:] + times[:-1]) / np.float32(2)
    signal = fused(rule, samples)
    most = min(MAX_BINS, len(signal))
    by_head = {
        "pelt": [
            cut
            for width in rule.grids
            for cut in pelt_cuts(rule, *pool(middles, signal, width, most), shortest)
        ],
        "ssm": novelty_peaks(rule, times, samples.embeddings, shortest),
        "kts": kts_cuts(rule, times, samples.embeddings, shortest),
    }
    apart: list[float] = []
    for cut in sorted({cut for cuts in by_head.values() for cut in cuts}):
        if cut - (apart[-1] if apart else -1e-9) >= shortest:
            apart.append(cut)
    centres, pooled = pool(middles, signal, 0.5, most)
    z, step = clipped(rule, robust_z(pooled)), step_of(centres)
    window = max(4, round(shortest / step) // 2)
    strength = {}
    for cut in apart:
        place = int(np.argmin(np.abs(centres - np.float32(cut))))
        strength[cut] = changepoint.local_strength(z, place, window)
    # in float32, where the quotient of a film from its beginning is whole
    share = times[-1] / np.float32(rule.max_blocks)
    kept = max(0, int(np.floor((times[-1] - times[0]) / share)) - 1)
    if len(apart) > kept:
        order = np.argsort([strength[cut] for cut in apart])
        apart = sorted(apart[place] for place in order[len(apart) - kept :])
    return by_head, apart, strength


def robust_z(values: Floats) -> Floats:
    """Deviations from the median by the MAD plus 1e-9: huge if hardly anything varies."""
    middle = np.median(values)
    return np.asarray(
        (values - middle) / (1.4826 * (np.median(np.abs(values - middle)) + 1e-9)), np.float64
    )


def clipped(rule: PartitionNumbers, values: Floats) -> Floats:
    """Values within the largest z that counts."""
    return np.clip(values, -rule.clip, rule.clip)


def moving_average(values: Floats, window: int) -> Floats:
    """The mean of ``window`` values, with zeros beyond the ends."""
    return np.convolve(values, np.full(window, 1 / window), mode="same")


def fused(rule: PartitionNumbers, samples: Samples) -> Floats:
    """Lines 4 to 8."""
    cues = {}
    for name, values in rule.raw_cues(samples).items():
        cues[name] = clipped(rule, robust_z(moving_average(values, rule.window)))
    base = dict(zip(CUES, rule.cue_weights, strict=True))
    weights = {name: base[name] * (float(z.std()) + 1e-6) for name, z in cues.items()}
    total = sum(weights.values())
    signal = np.sum([weights[name] / total * z for name, z in cues.items()], axis=0)
    return moving_average(signal, rule.window)


def pool(times: Times, values: Floats, width: float, most: int) -> tuple[Times, Floats]:
    """Line 11: bin centres and the highest value in each bin."""
    first, last = float(times[0]), float(times[-1])
    count = int(np.ceil(max(last - first, 1e-6) / width))
    if count > most:
        edges = np.linspace(first, last, most + 1, dtype=np.float32)
    else:
        edges = np.arange(first, last + 1e-6, width, dtype=np.float32)
    if len(edges) < 3:
        return np.zeros(0, np.float32), np.zeros(0)
    place = np.digitize(times, edges) - 1
    pooled = np.zeros(len(edges) - 1)
    for number in range(len(pooled)):
        if (place == number).any():
            pooled[number] = values[place == number].max()
    return np.float32(0.5) * (edges[:-1] + edges[1:]), pooled


def step_of(times: Times) -> float:
    """The usual distance of two times."""
    return max(float(np.median(np.diff(times))), 1e-3)


def pelt_cuts(rule: PartitionNumbers, times: Times, values: Floats, shortest: float) -> list[float]:
    """Line 12, for one grid."""
    if len(values) < 5 or times[-1] - times[0] < 2 * shortest:
        return []
    z = clipped(rule, robust_z(values))
    size = max(3, round(shortest / step_of(times)))
    swept = swept_cuts(rule, z, size)
    lengths = []
    for cuts in swept:
        edges = np.array([0, *cuts, len(z)])
        lengths.append(float((times[edges[1:] - 1] - times[edges[:-1]]).min()))
    fitting = [cuts for cuts, length in zip(swept, lengths, strict=True) if length >= shortest]
    cuts = min(fitting, key=len) if fitting else swept[int(np.argmax(lengths))]
    if cuts:
        window = max(4, size // 2)
        gammas = [changepoint.local_strength(z, cut, window) for cut in cuts]
        bar = np.quantile(gammas, rule.pelt_quantile) if len(cuts) >= 4 else min(gammas)
        cuts = [cut for cut, gamma in zip(cuts, gammas, strict=True) if gamma >= bar]
    else:
        cuts = single_cut(z, size)
    return [float(times[cut]) for cut in cuts]


def swept_cuts(rule: PartitionNumbers, z: Floats, size: int) -> list[list[int]]:
    """The cuts for each penalty."""
    unit = float(np.mean(np.clip(z, -3, 3) ** 2)) * float(np.log(max(3, len(z))))
    cost = changepoint.SegmentCost(gaussian_kernel(np.asarray(z, np.float32)))
    return [pruned_pelt(cost, len(z), max(1e-3, c * unit), size) for c in rule.pelt_penalties]


def gaussian_kernel(values: NDArray[np.float32]) -> Floats:
    """exp(−γd²), with γ one over the median of d²; the exponent is clipped to 0.01 … 100."""
    signal = values.astype(np.float64)
    squares = np.subtract.outer(signal, signal) ** 2
    median = float(np.median(squares[np.triu_indices(len(signal), 1)]))
    kernel = np.exp(-np.clip(squares / (median or 1.0), 1e-2, 1e2))
    np.fill_diagonal(kernel, 1.0)
    return np.asarray(kernel)


def pruned_pelt(cost: changepoint.SegmentCost, n: int, penalty: float, size: int) -> list[int]:
    """PELT at every fifth place.

    Starts that can no longer win are pruned before ``size`` lets their successors begin, so that
    the result is not always the best one.
    """
    total, before = np.full(n + 1, np.inf), {0: 0}
    total[0] = 0.0
    starts = np.zeros(0, np.int64)
    for end in [*range(-(-size // STRIDE) * STRIDE, n, STRIDE), n]:
        starts = np.append(starts, (end - size) // STRIDE * STRIDE)
        starts = starts[np.isfinite(total[starts])]
        spread = (end - starts) * (1 + cost(starts, end - 1))
        sums = total[starts] + spread + penalty
        best = int(np.argmin(sums))
        total[end], before[end] = sums[best], int(starts[best])
        starts = starts[sums <= total[end] + penalty]
    cuts = []
    while (n := before[n]) > 0:
        cuts.append(n)
    return sorted(cuts)


def single_cut(z: Floats, size: int) -> list[int]:
    """The cut between the most different means, if the ends of the film differ."""
    quarter = max(1, len(z) // 4)
    if len(z) < 2 * size + 1 or abs(z[-quarter:].mean() - z[:quarter].mean()) < DRIFT:
        return []
    sums, places = np.cumsum(z), np.arange(size, len(z) - size)
    left, right = sums[places] / places, (sums[-1] - sums[places]) / (len(z) - places)
    return [size + int(np.argmax(np.abs(right - left)))]


def novelty_peaks(
    rule: PartitionNumbers, times: Times, embeddings: Floats, shortest: float
) -> list[float]:
    """Lines 14 and 15."""
    first, last = float(times[0]), float(times[-1])
    most = min(2400, max(128, 4 * len(times)))
    step = max(rule.ssm_step, (last - first) / most)
    edges = np.arange(first, last + step + 1e-9, step, dtype=np.float32)
    centres = np.float32(0.5) * (edges[:-1] + edges[1:])
    if len(centres) < 12:
        return []
    place = np.digitize(times, edges) - 1
    rows: list[Floats] = []
    for number in range(len(centres)):
        inside = embeddings[place == number]
        # the first bin holds the first sample
        rows.append(np.asarray(inside.mean(axis=0), np.float64) if len(inside) else rows[-1])
    half = rule.ssm_kernel or max(2, round(shortest / step))
    if len(centres) <= MANY:
        values = checkerboard_novelty(np.array(rows), half, rule.ssm_sigma)
    else:
        values = mean_novelty(np.array(rows), half)
    z = clipped(rule, robust_z(values))
    apart = max(3, round(shortest / step_of(centres)))
    bar = float(np.quantile(z, rule.ssm_quantile))
    peaks: list[int] = []
    for i in range(1, len(z) - 1):
        high = z[i] > z[i - 1] and z[i] > z[i + 1] and z[i] >= bar
        if high and (not peaks or i - peaks[-1] >= apart):
            peaks.append(i)
    return [float(centres[peak]) for peak in peaks]


def checkerboard_novelty(rows: Floats, half: int, sigma: float) -> Floats:
    """The novelty at every item, in standard deviations."""
    found = np.zeros(len(rows))
    if len(rows) < 2 * half + 2:
        return found
    offsets = np.arange(-half, half)  # the middle lies on an item, not between two
    taper = np.exp(-(offsets**2) / (2 * (half * sigma) ** 2)) * np.where(offsets < 0, -1.0, 1.0)
    kernel, similarity = np.outer(taper, taper), changepoint.gram(rows)
    for i in range(half, len(rows) - half):
        found[i] = float((similarity[i - half : i + half, i - half : i + half] * kernel).sum())
    return np.asarray((found - found.mean()) / (found.std() + 1e-9))


def mean_novelty(rows: Floats, half: int) -> Floats:
    """How unlike the means of the items on both sides are, in standard deviations."""
    found = np.zeros(len(rows))
    if len(rows) < 2 * half + 2:
        return found
    sums = np.concatenate((np.zeros((1, rows.shape[1])), np.cumsum(rows, axis=0)))
    at = np.arange(half, len(rows) - half)
    distance = novelty.cosine_distance(sums[at] - sums[at - half], sums[at + half] - sums[at])
    found[at] = (distance - distance.mean()) / (distance.std() + 1e-9)
    return found


def kts_cuts(
    rule: PartitionNumbers, times: Times, embeddings: Floats, shortest: float
) -> list[float]:
    """Line 16."""
    similarity = changepoint.gram(np.asarray(embeddings, np.float64))

    def ends(a: int, b: int) -> NDArray[np.int64]:
        """The last items of left parts: both parts last from there to their own end."""
        k = np.arange(a + 1, b)
        return np.asarray(
            k[(times[k] - times[a] >= shortest) & (times[b] - times[k] >= shortest)], np.int64
        )

    whole = abs(float(changepoint.SegmentCost(similarity)(0, len(similarity) - 1)))
    penalty = max(1e-6, rule.kts_factor * whole)
    cuts = changepoint.kts(similarity, lambda _: penalty, ends=ends, max_cuts=rule.kts_splits)
    return [float(times[cut - 1]) for cut in cuts]
