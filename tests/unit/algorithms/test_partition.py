from dataclasses import replace
from functools import partial
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longtake.algorithms import changepoint, sampling
from longtake.algorithms.novelty import resample
from longtake.algorithms.partition import PAPER, EventPartition
from longtake.algorithms.partition_numbers import Samples


def random_film(seed, blocks, seconds, count, dim=12):
    """Noisy samples of a film of a few blocks; an even seed adds the cues of pictures."""
    random = np.random.default_rng(seed)
    times = np.sort(random.uniform(0, seconds, count))
    edges = np.sort(random.uniform(0, seconds, blocks - 1))
    block = np.searchsorted(edges, times)
    means = random.normal(size=(blocks, dim))
    noise = random.normal(size=(count, dim))
    rows = means[block] + noise * random.uniform(0, 0.5)
    if seed % 2:
        return Samples(times, rows)
    colours = np.abs(random.normal(size=(blocks, 3, 32)))[block] + 0.1
    return Samples(times, rows, colours, random.uniform(0, 100, count), random.uniform(0, 1, count))


films = st.builds(
    random_film, st.integers(0, 10_000), st.integers(1, 9), st.floats(1, 8000), st.integers(1, 200)
)
rules = st.builds(
    EventPartition,
    max_blocks=st.integers(1, 20),
    nms=st.sampled_from(["strength", "time"]),
    strength=st.sampled_from(["ssm", "gamma"]),
    pelt_keep=st.sampled_from(["fewest", "union"]),
    kts_penalty=st.sampled_from(["segment", "whole", "constant"]),
    min_contrast=st.sampled_from([0.0, 0.05]),
)


def length(samples):
    return float(samples.times[-1]) + 0.5


@given(films, rules)
def test_blocks_cover_the_film_within_the_limits_on_length_and_number(samples, rule):
    duration = length(samples)
    blocks = rule(samples, duration).blocks
    assert blocks[0].start == 0
    assert blocks[-1].end == duration
    assert all(a.end == b.start for a, b in pairwise(blocks))
    assert len(blocks) <= rule.max_blocks
    if len(blocks) > 1:
        assert min(block.duration for block in blocks) >= rule.shortest(duration) - 1e-6


@given(films, st.floats(1e-3, 1e3))
def test_scaling_all_embeddings_changes_nothing(samples, scale):
    duration = length(samples)
    scaled = replace(samples, embeddings=samples.embeddings * scale)
    before, after = (EventPartition()(each, duration).cuts for each in (samples, scaled))
    assert [cut.time for cut in before] == [cut.time for cut in after]


@given(st.integers(0, 1000), st.floats(0.5, 7.99), st.integers(1, 200))
def test_a_film_shorter_than_two_blocks_is_one(seed, seconds, count):
    samples = random_film(seed, 3, seconds, count)
    for rule in (EventPartition(), EventPartition(min_contrast=0, nms="time")):
        assert len(rule(samples, seconds).blocks) == 1


@pytest.mark.parametrize("duration", [30.0, 600.0, 3600.0])
def test_a_static_film_has_no_cut(duration):
    times = np.linspace(0, duration, 200)
    still = np.tile(np.random.default_rng(0).normal(size=64), (200, 1))
    level = Samples(times, still, np.full((200, 3, 32), 1 / 96), np.full(200, 40.0), np.zeros(200))
    assert EventPartition()(level, duration).cuts == ()
    assert EventPartition(**PAPER)(level, duration).cuts == ()
    # compression noise of a still picture, measured as cosine distances of 0.002
    noisy = still + 0.06 * np.random.default_rng(1).normal(size=still.shape)
    assert EventPartition()(Samples(times, noisy), duration).cuts == ()


def signals(count=200):
    for seed in range(count):
        random = np.random.default_rng(seed)
        length = int(random.integers(8, 90))
        levels = random.normal(size=4) * random.uniform(0, 3)
        steps = np.repeat(levels, -(-length // 4))[:length]
        signal = steps + random.normal(size=length)
        min_size = int(random.integers(1, 8))
        yield random, signal, min_size, random.uniform(0.5, 20)


def by_ruptures(signal, penalty, size):
    # it imports much of SciPy, which every process that collects the tests would wait for
    import ruptures

    return ruptures.Pelt(model="l2", jump=1, min_size=size).fit(signal).predict(pen=penalty)[:-1]


def price(signal, cuts, penalty):
    sides = np.split(signal, cuts)
    return sum(float(((side - side.mean()) ** 2).sum()) for side in sides) + penalty * len(cuts)


def test_pelt_agrees_with_ruptures_and_with_a_minimum_size_is_never_worse():
    """Ruptures prunes starts before ``min_size`` allows them, so it sometimes misses the best."""
    alike = 0
    for number, (_, signal, size, penalty) in enumerate(signals(12)):
        assert changepoint.pelt(signal, penalty, 1) == by_ruptures(signal, penalty, 1)
        ours = changepoint.pelt(signal, penalty, size)
        assert all(len(side) >= size for side in np.split(signal, ours)) or ours == [], number
        if len(signal) >= 2 * size:
            theirs = by_ruptures(signal, penalty, size)
            alike += ours == theirs
            worse = price(signal, theirs, penalty)
            assert ours == theirs or price(signal, ours, penalty) < worse, number
    assert alike >= 11


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=9), st.integers(1, 4), st.floats(0.01, 30))
def test_pelt_finds_the_cheapest_of_all_partitions(values, size, penalty):
    signal = np.array(values, float)
    places = range(1, len(signal))
    prices = [price(signal, (), penalty)]
    for count in range(1, len(signal)):
        for cuts in combinations(places, count):
            if all(len(side) >= size for side in np.split(signal, cuts)):
                prices.append(price(signal, cuts, penalty))
    found = changepoint.pelt(signal, penalty, size)
    assert price(signal, found, penalty) == pytest.approx(min(prices), abs=1e-9)


def plain_kts(similarity, penalty, size, first=0, last=None):
    """The recursion as in the paper, with every cost summed directly."""
    last = len(similarity) - 1 if last is None else last

    def cost(a, b):
        return -similarity[a : b + 1, a : b + 1].sum() / (b - a + 1) ** 2

    best, place = 1e-9, None
    whole = cost(first, last)
    for k in range(first + size - 1, last - size + 1):
        gain = whole - (cost(first, k) + cost(k + 1, last)) - penalty(whole)
        if gain > best + 1e-12:
            best, place = gain, k
    if place is None:
        return []
    before = plain_kts(similarity, penalty, size, first, place)
    after = plain_kts(similarity, penalty, size, place + 1, last)
    return sorted([*before, place + 1, *after])


def test_kts_agrees_with_the_plain_recursion():
    compared = 0
    for random, signal, size, _ in signals():
        count = min(len(signal), 40)
        means = random.normal(size=(5, 8))
        block = np.sort(random.integers(0, 5, count))
        rows = means[block] + random.normal(size=(count, 8)) * 0.2
        similarity = changepoint.gram(rows)
        penalty = partial(lambda factor, cost: factor * abs(cost), random.uniform(0.5, 2))
        cuts = changepoint.kts(similarity, penalty, size)
        assert cuts == plain_kts(similarity, penalty, size)
        compared += len(cuts)
    assert compared > 200  # the comparison is not vacuous


def test_kts_limits_the_number_of_splits():
    similarity = changepoint.gram(np.repeat(np.eye(4), 5, axis=0))
    assert len(changepoint.kts(similarity, lambda _: 0.0, 1, max_cuts=2)) == 2
    assert changepoint.kts(np.zeros((0, 0)), lambda _: 0.0, 1) == []


def test_resampling_averages_rows_and_times():
    times, rows = np.array([0.0, 0.5, 1.2, 3.6]), np.array([[1.0], [3.0], [5.0], [7.0]])
    at, means = resample(times, rows, 1.0)
    assert means[:, 0].tolist() == [2.0, 5.0, 5.0, 7.0]
    assert at == pytest.approx([0.25, 1.2, 2.4, 3.6])


@settings(max_examples=300)
@given(
    st.lists(st.tuples(st.floats(-50, 50), st.integers(0, 60)), min_size=1, max_size=8),
    st.integers(0, 64),
    st.one_of(st.none(), st.floats(-60, 60)),
)
def test_allocation_uses_all_frames_that_fit(blocks, total, rho):
    logits, room = zip(*blocks, strict=True)
    share = sampling.shares(logits, rho)
    given = sampling.counts(share, total, room)
    assert all(0 <= n <= most for n, most in zip(given, room, strict=True))
    assert all(n == 0 for n, weight in zip(given, share, strict=True) if weight == 0)
    chosen = [most for most, weight in zip(room, share, strict=True) if weight > 0]
    if len(chosen) <= total:
        assert sum(given) == min(total, sum(chosen))
    if all(most >= total for most in room):
        assert sum(given) == total
