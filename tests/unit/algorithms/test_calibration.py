"""Probabilities from signals, with numbers made by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtake.algorithms.calibration import (
    expected_error,
    log_odds,
    logistic,
    pooled,
    probability,
    reliability,
)


def test_without_signals_the_probability_is_the_share_of_right_answers():
    weights = logistic([{}] * 8, [True] * 6 + [False] * 2)
    assert probability(weights, {}) == pytest.approx(0.75, abs=1e-3)


def test_a_signal_that_goes_with_right_answers_raises_the_probability():
    rows = [{"supported": 1.0}] * 40 + [{}] * 40
    right = [True] * 36 + [False] * 4 + [True] * 10 + [False] * 30
    weights = logistic(rows, right, ridge=0.01)
    assert probability(weights, {"supported": 1.0}) == pytest.approx(0.9, abs=0.04)
    assert probability(weights, {}) == pytest.approx(0.25, abs=0.04)
    assert probability(weights, {"unknown": 9.0}) == probability(weights, {})


def test_data_that_a_signal_separates_gives_finite_weights():
    weights = logistic([{"x": 1.0}, {"x": -1.0}] * 20, [True, False] * 20)
    assert all(math.isfinite(value) for value in weights.values())
    assert probability(weights, {"x": 1.0}) > 0.9
    assert logistic([], []) == {"bias": 0.0}


def test_the_expected_error_weighs_bins_by_their_answers():
    # three answers at 0.9 of which two are right, one at 0.2 that is wrong
    stated, right = [0.9, 0.9, 0.9, 0.2], [True, True, False, False]
    expected = 3 / 4 * abs(2 / 3 - 0.9) + 1 / 4 * 0.2
    assert expected_error(stated, right) == pytest.approx(expected)
    assert [each.count for each in reliability(stated, right)] == [1, 3]
    assert expected_error([], []) == 0.0
    assert expected_error([1.0], [True]) == 0.0


def test_votes_are_pooled_by_bayes_rule():
    # A: 0.6 · 0.1, B: 0.4/3 · 0.7, each of the others: 0.4/3 · 0.1, with 0.3/3 = 0.1
    shares = pooled([("A", 0.6), ("B", 0.7)], 4)
    total = 0.6 * 0.1 + 0.4 / 3 * 0.7 + 2 * 0.4 / 3 * 0.1
    assert shares["A"] == pytest.approx(0.06 / total)
    assert shares["B"] == pytest.approx(0.4 / 3 * 0.7 / total)
    assert pooled([("A", 0.5)], 2)["A"] == pytest.approx(0.5)


@given(st.lists(st.tuples(st.sampled_from("ABCD"), st.floats(0, 1)), min_size=1, max_size=6))
def test_pooled_shares_are_probabilities_and_agreement_never_hurts(votes):
    shares = pooled(votes, 4)
    assert all(0 <= share <= 1 for share in shares.values())
    assert sum(shares.values()) <= 1 + 1e-9
    first = votes[0][0]
    assert pooled([*votes, (first, 0.6)], 4)[first] >= shares[first] - 1e-9


def test_log_odds_of_certainty_are_finite():
    assert log_odds(0.5) == 0
    assert math.isfinite(log_odds(1.0))
    assert math.isfinite(log_odds(0.0))
