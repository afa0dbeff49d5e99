from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
import ruptures
from hypothesis import given, settings
from hypothesis import strategies as st

from longtake.algorithms import allocate, changepoint
from longtake.algorithms.partition import PAPER, EventPartition, Samples
from longtake.algorithms.selfsimilarity import resample


def random_film(seed, events, seconds, count, dim=12):
    """Samples of a film of a few events, with noise, and pictures' cues where the seed is even."""
    random = np.random.default_rng(seed)
    times = np.sort(random.uniform(0, seconds, count))
    edges = np.sort(random.uniform(0, seconds, events - 1))
    kind = np.searchsorted(edges, times)
    rows = random.normal(size=(events, dim))[kind] + random.normal(
        size=(count, dim)
    ) * random.uniform(0, 0.5)
    if seed % 2:
        return Samples(times, rows)
    colours = np.abs(random.normal(size=(events, 3, 32)))[kind] + 0.1
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


@settings(deadline=None, max_examples=150)
@given(films, rules)
def test_blocks_cover_the_film_and_are_long_enough_and_few(samples, rule):
    duration = length(samples)
    blocks = rule(samples, duration).blocks
    assert blocks[0].start == 0
    assert blocks[-1].end == duration
    assert all(a.end == b.start for a, b in pairwise(blocks))
    assert len(blocks) <= rule.max_blocks
    if len(blocks) > 1:
        assert min(block.duration for block in blocks) >= rule.shortest(duration) - 1e-6


@settings(deadline=None, max_examples=100)
@given(films, st.floats(1e-3, 1e3))
def test_scaling_all_embeddings_changes_nothing(samples, scale):
    duration = length(samples)
    scaled = Samples(
        samples.times,
        samples.embeddings * scale,
        samples.histograms,
        samples.sharpness,
        samples.motion,
    )
    assert [c.time for c in EventPartition()(samples, duration).cuts] == [
        c.time for c in EventPartition()(scaled, duration).cuts
    ]


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 1000), st.floats(0.5, 7.99), st.integers(1, 200))
def test_a_film_shorter_than_two_blocks_is_one(seed, seconds, count):
    samples = random_film(seed, 3, seconds, count)
    for rule in (EventPartition(), EventPartition(min_contrast=0, nms="time")):
        assert len(rule(samples, seconds).blocks) == 1


@pytest.mark.parametrize("duration", [30.0, 600.0, 3600.0])
def test_a_film_without_change_has_no_cut(duration):
    times = np.linspace(0, duration, 200)
    still = np.tile(np.random.default_rng(0).normal(size=64), (200, 1))
    level = Samples(times, still, np.full((200, 3, 32), 1 / 96), np.full(200, 40.0), np.zeros(200))
    assert EventPartition()(level, duration).cuts == ()
    assert EventPartition(**PAPER)(level, duration).cuts == ()
    # what compression leaves of a still picture; measured: cosine distances of 0.002
    noisy = still + 0.06 * np.random.default_rng(1).normal(size=still.shape)
    assert EventPartition()(Samples(times, noisy), duration).cuts == ()


def signals():
    for seed in range(200):
        random = np.random.default_rng(seed)
        count = int(random.integers(8, 90))
        steps = np.repeat(random.normal(size=4) * random.uniform(0, 3), -(-count // 4))[:count]
        yield (
            random,
            steps + random.normal(size=count),
            int(random.integers(1, 8)),
            random.uniform(0.5, 20),
        )


def by_ruptures(signal, penalty, size):
    return ruptures.Pelt(model="l2", jump=1, min_size=size).fit(signal).predict(pen=penalty)[:-1]


def price(signal, cuts, penalty):
    sides = np.split(signal, cuts)
    return sum(float(((side - side.mean()) ** 2).sum()) for side in sides) + penalty * len(cuts)


def test_pelt_finds_what_ruptures_pelt_finds():
    for _, signal, _, penalty in signals():
        assert changepoint.pelt(signal, penalty, 1) == by_ruptures(signal, penalty, 1)


def test_pelt_with_a_least_size_is_never_dearer_than_what_ruptures_finds():
    """Its pruning forgets that a start may not be used yet, so that it misses the best now and then."""
    alike = 0
    for number, (_, signal, size, penalty) in enumerate(signals()):
        ours = changepoint.pelt(signal, penalty, size)
        assert all(len(side) >= size for side in np.split(signal, ours)) or ours == [], number
        if len(signal) >= 2 * size:
            theirs = by_ruptures(signal, penalty, size)
            assert ours == theirs or price(signal, ours, penalty) < price(
                signal, theirs, penalty
            ), number
            alike += ours == theirs
    assert alike >= 190


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=9), st.integers(1, 4), st.floats(0.01, 30))
def test_pelt_is_the_cheapest_of_all_partitions(values, size, penalty):
    signal = np.array(values, float)
    places = range(1, len(signal))
    every = (cuts for n in range(len(signal)) for cuts in combinations(places, n))
    allowed = [
        c for c in every if len(c) == 0 or all(len(side) >= size for side in np.split(signal, c))
    ]
    best = min(price(signal, cuts, penalty) for cuts in allowed)
    assert price(signal, changepoint.pelt(signal, penalty, size), penalty) == pytest.approx(
        best, abs=1e-9
    )


def plain_kts(similarity, penalty, size, first=0, last=None):
    """The recursion as the paper writes it, every cost by summing."""
    last = len(similarity) - 1 if last is None else last

    def cost(a, b):
        return -similarity[a : b + 1, a : b + 1].sum() / (b - a + 1) ** 2

    best, place = 1e-9, None
    for k in range(first + size - 1, last - size + 1):
        gain = cost(first, last) - (cost(first, k) + cost(k + 1, last)) - penalty(cost(first, last))
        if gain > best + 1e-12:
            best, place = gain, k
    if place is None:
        return []
    return sorted(
        [
            *plain_kts(similarity, penalty, size, first, place),
            place + 1,
            *plain_kts(similarity, penalty, size, place + 1, last),
        ]
    )


def test_kts_finds_what_the_recursion_finds():
    found = 0
    for random, signal, size, _ in signals():
        count = min(len(signal), 40)
        rows = (
            random.normal(size=(5, 8))[np.sort(random.integers(0, 5, count))]
            + random.normal(size=(count, 8)) * 0.2
        )
        similarity = changepoint.gram(rows)
        factor = random.uniform(0.5, 2)

        def penalty(cost, factor=factor):
            return factor * abs(cost)

        cuts = changepoint.kts(similarity, penalty, size)
        assert cuts == plain_kts(similarity, penalty, size)
        found += len(cuts)
    assert found > 200  # the comparison is about something


def test_a_cap_on_splits():
    similarity = changepoint.gram(np.repeat(np.eye(4), 5, axis=0))
    assert len(changepoint.kts(similarity, lambda _: 0.0, 1, most=2)) == 2
    assert changepoint.kts(np.zeros((0, 0)), lambda _: 0.0, 1) == []


def test_resampling_averages_and_keeps_time():
    times, rows = np.array([0.0, 0.5, 1.2, 3.6]), np.array([[1.0], [3.0], [5.0], [7.0]])
    at, means = resample(times, rows, 1.0)
    assert means[:, 0].tolist() == [2.0, 5.0, 5.0, 7.0]
    assert at == pytest.approx([0.25, 1.2, 2.4, 3.6])


@settings(deadline=None, max_examples=300)
@given(
    st.lists(st.tuples(st.floats(-50, 50), st.integers(0, 60)), min_size=1, max_size=8),
    st.integers(0, 64),
    st.one_of(st.none(), st.floats(-60, 60)),
)
def test_allocation_sums_to_what_there_is(blocks, total, rho):
    logits, room = zip(*blocks, strict=True)
    share = allocate.shares(logits, rho)
    given = allocate.counts(share, total, room)
    assert all(0 <= n <= most for n, most in zip(given, room, strict=True))
    assert all(n == 0 for n, weight in zip(given, share, strict=True) if weight == 0)
    chosen = [most for most, weight in zip(room, share, strict=True) if weight > 0]
    if len(chosen) <= total:
        assert sum(given) == min(total, sum(chosen))
    if all(most >= total for most in room):
        assert sum(given) == total
