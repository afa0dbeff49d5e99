"""A4VL's event partition, equation by equation (appendix D), with numbers worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from longtake.algorithms import changepoint, novelty
from longtake.algorithms.partition import (
    BASE_WEIGHTS,
    LONG_RUN,
    PAPER,
    EventCut,
    EventPartition,
    Samples,
    suppress,
)
from longtake.types import Segment

# ---- appendix D: colour, sharpness, motion


def test_histograms_share_one_norm():
    red = np.zeros((2, 4, 3), np.uint8)
    red[..., 0] = 255  # hue 0, saturation 255, value 255
    red[0, 0] = 0  # black: hue 0, saturation 0, value 0
    histograms = novelty.colour_histograms(red)
    assert histograms.shape == (3, 32)
    assert histograms.sum() == pytest.approx(1)
    assert histograms[0, 0] == pytest.approx(8 / 24)
    assert histograms[1, 31] == histograms[2, 31] == pytest.approx(7 / 24)
    assert histograms[1, 0] == histograms[2, 0] == pytest.approx(1 / 24)


def test_sharpness_is_the_variance_of_the_laplacian():
    assert novelty.sharpness(np.full((5, 5), 90.0)) == 0
    ramp = np.tile(np.arange(6.0) * 10, (6, 1))  # mirrored at the ends: +20 and −20 there, 0 inside
    assert novelty.sharpness(ramp) == pytest.approx((2 * 20**2) / 6)


def test_motion_is_the_median_absolute_difference():
    before, after = np.zeros((1, 5)), np.array([[0.0, 10, 51, 200, 255]])
    assert novelty.motion(after, before) == pytest.approx(51 / 255)


def test_colour_novelty_weighs_the_channels():
    same, other = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    first = np.stack([same, same, same])
    second = np.stack([other, same, (same + other) / 2])
    expected = 0.55 * 1 + 0.35 * 0 + 0.10 * (1 - 1 / math.sqrt(2))
    assert novelty.colour_novelty(np.stack([first, second])) == pytest.approx([expected])


def test_sharpness_and_motion_novelty_are_absolute_steps():
    assert novelty.absolute_change(np.array([3.0, 1.0, 4.0])).tolist() == [2.0, 3.0]
    assert novelty.midpoints(np.array([0.0, 2.0, 6.0])).tolist() == [1.0, 4.0]


def test_embedding_novelty_is_half_previous_half_average():
    e = np.array([[2.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    # averages of raw rows before each: (2,0), (2,0), then 0.9·(2,0) + 0.1·(0,1) = (1.8, 0.1)
    to_average = 1 - 0.1 / math.hypot(1.8, 0.1)
    assert novelty.embedding_novelty(e) == pytest.approx([0.0, 1.0, (0 + to_average) / 2])


# ---- robust z, smoothing, fusion


def test_robust_z_uses_the_median_absolute_deviation():
    x = np.array([1.0, 2.0, 3.0, 4.0, 100.0])  # median 3, deviations 2 1 0 1 97, MAD 1
    assert novelty.robust_z(x) == pytest.approx((x - 3) / 1.4826)


def test_without_a_mad_the_deviation_without_that_zeros():
    spike = np.array([0.0, 0.0, 0.0, 0.0, 5.0])
    assert novelty.robust_z(spike) == pytest.approx(spike / spike.std())
    assert novelty.robust_z(np.full(4, 7.0)).tolist() == [0, 0, 0, 0]
    assert novelty.robust_z(0.3 + np.array([0, 1e-16, -1e-16, 0])).tolist() == [0, 0, 0, 0]


def test_the_moving_average_is_truncated_at_the_ends():
    x = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    assert novelty.moving_average(x, 5) == pytest.approx([2.0, 2.5, 3.0, 4.0, 4.5, 5.0])


def test_smoothing_comes_before_clipping():
    x = np.arange(11.0)
    x[5] = 1000.0
    z = novelty.moving_average(novelty.robust_z(x))
    assert novelty.normalised(x) == pytest.approx(np.clip(z, -4, 4))
    assert novelty.normalised(x)[5] == 4  # clipped first, the spike would be 4/5 of that


def test_fusion_weights_are_base_times_deviation():
    cues = {
        "colour": np.array([-1.0, 1.0]),
        "motion": np.array([-2.0, 2.0]),
        "embedding": np.array([-3.0, 3.0]),
        "sharpness": np.zeros(2),
    }
    weights = novelty.fusion_weights(cues, BASE_WEIGHTS)
    total = 0.20 * 1 + 0.30 * 2 + 0.35 * 3
    expected = {
        "colour": 0.2 / total,
        "motion": 0.6 / total,
        "embedding": 1.05 / total,
        "sharpness": 0,
    }
    assert weights == pytest.approx(expected)
    # one window covers both points: the mean of −x and x
    assert novelty.fuse(cues, BASE_WEIGHTS) == pytest.approx([0, 0])
    one = novelty.fuse(cues, BASE_WEIGHTS, window=1)
    assert one[1] == pytest.approx((0.2 * 1 + 0.6 * 2 + 1.05 * 3) / total)


def test_pooling_takes_the_maximum_of_each_bin():
    times, values = np.array([1.0, 1.2, 1.6, 2.1, 3.0]), np.array([5.0, 7.0, 1.0, 2.0, 9.0])
    centres, pooled = novelty.pool(times, values, 0.5)
    assert centres == pytest.approx([1.25, 1.75, 2.25, 2.75])
    assert pooled == pytest.approx([7.0, 1.0, 2.0, 9.0])
    _, gap = novelty.pool(np.array([0.0, 0.4, 1.4, 2.0]), np.array([1.0, 2.0, 4.0, 6.0]), 0.5)
    assert gap == pytest.approx([2.0, 3.0, 4.0, 6.0])  # nothing in [0.5, 1.0): on the line


def test_long_run_variance_of_two_averages_of_five():
    taps = np.convolve(np.ones(5), np.ones(5))
    assert pytest.approx(taps.sum() ** 2 / (taps**2).sum()) == LONG_RUN


# ---- the heads


def test_pelt_pays_for_each_cut():
    signal = np.array([0.0] * 5 + [1.0] * 5)  # one cut saves 10 · 0.25 = 2.5
    assert changepoint.pelt(signal, 2.4, 2) == [5]
    assert changepoint.pelt(signal, 2.6, 2) == []
    assert changepoint.pelt(signal, 0.1, 6) == []


def test_local_strength_is_a_difference_of_means():
    signal = np.array([1.0, 1.0, 3.0, 7.0, 9.0])
    assert changepoint.local_strength(signal, 3, 2) == pytest.approx(8 - 2)
    assert changepoint.local_strength(signal, 1, 3) == pytest.approx(
        11 / 3 - 1
    )  # clipped to one on the left


def test_shortest_block():
    assert EventPartition().shortest(30) == 4
    assert EventPartition().shortest(600) == 40
    assert EventPartition(**PAPER).shortest(15) == 2


def test_the_checkerboard_is_signed_and_tapered():
    kernel = changepoint.checkerboard(2)
    near, far = math.exp(-(0.5**2) / 2), math.exp(-(1.5**2) / 2)
    assert kernel[0] == pytest.approx([far * far, far * near, -far * near, -far * far])
    assert kernel[1, 2] == pytest.approx(-near * near)
    assert kernel.sum() == pytest.approx(0)


def test_ssm_novelty_is_highest_at_the_change():
    rows = np.array([[1.0, 0.0]] * 4 + [[0.0, 1.0]] * 4)
    similarity = changepoint.gram(rows)
    found = changepoint.ssm_novelty(similarity, 2)
    assert len(found) == 8 - 4 + 1
    positive = changepoint.checkerboard(2).clip(min=0).sum()
    assert found[2] == pytest.approx(positive)  # all within is 1, all across 0
    assert found[0] == pytest.approx(0)
    assert changepoint.ssm_contrast(similarity, 2)[2] == pytest.approx(1)
    assert changepoint.ssm_contrast(similarity, 2)[0] == pytest.approx(0)


def test_of_two_peaks_too_close_the_higher_stays():
    values = np.array([0, 3, 0, 5, 0, 0, 0, 4, 4, 0.0])
    assert changepoint.peaks(values, 3, 0.5) == [3, 7]
    assert changepoint.peaks(values, 2, 0.5) == [1, 3, 7]
    assert changepoint.peaks(values, 2, 0.8) == [3]  # the quantile is 4
    assert changepoint.peaks(np.ones(9), 1, 0.5) == []


def test_segment_cost_is_minus_the_mean_similarity():
    similarity = np.array([[1.0, 0.8, 0.1], [0.8, 1.0, 0.3], [0.1, 0.3, 1.0]])
    cost = changepoint.SegmentCost(similarity)
    assert cost(0, 1) == pytest.approx(-(1 + 1 + 0.8 + 0.8) / 4)
    assert cost(1, 2) == pytest.approx(-2.6 / 4)
    assert cost(0, 2) == pytest.approx(-5.4 / 9)
    assert cost(2, 2) == pytest.approx(-1)


def test_kts_splits_where_the_gain_is_positive():
    similarity = changepoint.gram(np.array([[1.0, 0.0]] * 3 + [[0.0, 1.0]] * 3))
    # C(0,5) = −1/2, both sides −1: the gain is 1.5 − λ
    assert changepoint.kts(similarity, lambda _: 1.49, 1) == [3]
    assert changepoint.kts(similarity, lambda _: 1.51, 1) == []
    assert changepoint.kts(similarity, lambda cost: 1.3 * abs(cost), 1) == [
        3
    ]  # λ = 0.65, then 1.3 a side
    assert changepoint.kts(similarity, lambda _: 0.0, 4) == []


@pytest.mark.parametrize("seed", range(20))
def test_a_bare_penalty_of_1_4_cannot_cut(seed):
    """With cosines 1 within and x across, the gain is 1.5 − x/2: 1.4 cuts only below x = 0.2."""
    random = np.random.default_rng(seed)
    alike = random.uniform(0.32, 0.42)  # cosine between two events
    events = np.sqrt(alike) * np.eye(5)[0] + np.sqrt(1 - alike) * np.eye(5)[1:]
    rows = np.repeat(events, 15, axis=0) + random.normal(size=(60, 5)) * 0.02
    similarity = changepoint.gram(rows)
    assert similarity.min() > 0.2
    assert changepoint.kts(similarity, lambda _: 1.4, 4) == []
    samples = Samples(np.arange(60.0), rows)
    printed = EventPartition(**PAPER)(samples, 60.0)
    assert all("kts" not in cut.heads for cut in printed.cuts)
    ours = EventPartition(max_blocks=15)(samples, 60.0)
    assert any("kts" in cut.heads for cut in ours.cuts)


# ---- merge, suppression, truncation


def cuts_at(*pairs: tuple[float, float]) -> list[EventCut]:
    return [EventCut(time, strength, ("ssm",)) for time, strength in pairs]


def test_suppression_by_strength_and_as_printed():
    found = cuts_at((5, 1.0), (12, 2.0), (18, 3.0), (30, 0.5), (97, 9.0))
    strong = suppress(found, 10, 100, by="strength")
    assert sorted(cut.time for cut in strong) == [18, 30]  # 97 is too near the end, 12 yields to 18
    printed = suppress(found, 10, 100, by="time")
    assert [cut.time for cut in printed] == [
        12,
        30,
    ]  # the first that fits stays, whatever comes after


def test_only_the_strongest_cuts_stay():
    rows = np.repeat(np.eye(6), [20, 20, 20, 20, 20, 20], axis=0)
    samples = Samples(
        np.arange(120.0), rows + 0.01 * np.random.default_rng(0).normal(size=rows.shape)
    )
    everything = EventPartition()(samples, 120.0)
    assert [round(cut.time) for cut in everything.cuts] == [20, 40, 60, 80, 100]
    two = EventPartition(max_blocks=3)(samples, 120.0)
    best = sorted(everything.cuts, key=lambda cut: -cut.strength)[:2]
    assert sorted(cut.time for cut in best) == [cut.time for cut in two.cuts]
    assert two.blocks == [
        Segment(0, two.cuts[0].time),
        Segment(two.cuts[0].time, two.cuts[1].time),
        Segment(two.cuts[1].time, 120.0),
    ]


def test_strength_as_printed_is_the_step_of_the_fused_signal():
    rows = np.repeat(np.eye(2), [30, 30], axis=0)
    samples = Samples(np.arange(60.0), rows)
    rule = EventPartition(**{**PAPER, "strength": "gamma"})
    found = rule(samples, 60.0)
    _, pooled = novelty.pool(found.times, found.fused, 1.0)
    window = changepoint.bins_of(rule.shortest(60.0), 1.0)
    centres = novelty.pool(found.times, found.fused, 1.0)[0]
    for cut in found.cuts:
        place = int(np.argmin(np.abs(centres - cut.time)))
        assert cut.strength == pytest.approx(changepoint.local_strength(pooled, place, window))
