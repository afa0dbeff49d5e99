import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longtake.algorithms.question_kinds import COUNTING, HEARING, ORDER, READING, negated
from longtake.algorithms.scene_graph import FrameRule


@pytest.mark.parametrize(
    ("count", "uniform", "chosen"),
    [
        (10, 2, [0, 20, 21, 22, 23, 50, 53, 56, 59, 99]),
        (5, 1, [49, 50, 53, 56, 59]),  # frames of the best package come first
    ],
)
def test_uniform_frames_then_four_of_each_package(count, uniform, chosen):
    apart = np.eye(100, dtype=np.float32)  # nothing in common
    packages = [(50, 60), (20, 24)]
    assert FrameRule()(apart, packages, np.zeros(100), count=count, uniform=uniform) == chosen


def test_near_duplicates_are_skipped_then_admitted_up_to_the_relaxed_limit():
    rows = np.zeros((8, 3), np.float32)
    for row, cosine in enumerate([1.0, 0.93, 0.96, 0.5]):
        rows[row] = [cosine, np.sqrt(1 - cosine**2), 0]
    rows[4:] = [0, 0, 1]
    rule = FrameRule()
    # 0, then 3; 1 is too close to 0 in the first pass (0.93) but not in the second; 2 (0.96) is
    assert rule(rows, [(0, 4)], np.zeros(8), count=2, uniform=0) == [0, 3]
    assert rule(rows, [(0, 4)], np.zeros(8), count=3, uniform=0) == [0, 1, 3]
    assert rule(rows, [(0, 4)], np.zeros(8), count=4, uniform=0) == [0, 1, 3, 4]


def test_remaining_frames_are_chosen_by_diversity_and_relevance():
    rows = np.array([[1, 0, 0], [0.8, 0.6, 0], [0.6, 0.8, 0], [0.6, 0, 0.8]], np.float32)
    # 0.7·(1 − cosine) + 0.3·relevance: 0.44, 0.28, 0.28
    assert FrameRule()(rows, [(0, 1)], np.array([0, 1.0, 0, 0]), count=2, uniform=0) == [0, 1]
    assert FrameRule()(rows, [(0, 1)], np.zeros(4), count=2, uniform=0) == [0, 2]


def test_if_all_frames_are_alike_the_rest_is_spread_evenly():
    rows = np.ones((101, 1), np.float32)
    assert FrameRule()(rows, [(40, 50)], np.zeros(101), count=5, uniform=1) == [0, 33, 50, 67, 100]


@settings(max_examples=80)
@given(
    st.integers(1, 80),
    st.integers(1, 40),
    st.integers(0, 40),
    st.integers(0, 2**32 - 1),
    st.booleans(),
)
def test_exactly_as_many_frames_as_asked_for(length, count, uniform, seed, alike):
    random = np.random.default_rng(seed)
    rows = random.normal(size=(length, 4)) + 10 * alike
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    edges = np.unique(np.concatenate([[0, length], random.integers(0, length + 1, 4)]))
    spans = [(int(a), int(b)) for a, b in itertools.pairwise(edges)]
    chosen = FrameRule()(rows, spans, random.random(length), count=count, uniform=uniform)
    assert len(chosen) == len(set(chosen)) == min(count, length)
    assert chosen == sorted(chosen)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("How many dogs are there?", {COUNTING}),
        ("What happens after the dog barks?", {ORDER}),
        ("What is written on the wall?", {READING}),
        ("What does the narrator mention?", {HEARING}),
        ("Where is the dog?", set()),
    ],
)
def test_kinds_of_questions(text, kinds):
    assert {kind for kind in (COUNTING, ORDER, READING, HEARING) if kind.search(text)} == kinds


@pytest.mark.parametrize(
    ("text", "odd"),
    [
        ("Which of these is NOT shown?", True),
        ("Which item doesn't appear in the film?", True),
        ("All of these happen except which?", True),
        ("Which statement is incorrect?", True),
        ("Why does the man not eat?", False),
        ("Which dog barks? It does not matter when.", False),
        ("What is in the knot?", False),
    ],
)
def test_negated_questions(text, odd):
    assert negated(text) is odd
