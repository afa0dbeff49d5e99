"""Probabilities from signals, with numbers made by hand."""

import math

import pytest

from longtake.algorithms.calibration import (
    auroc,
    brier,
    chance_error,
    expected_error,
    log_odds,
    logistic,
    probability,
    reliability,
    surest,
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
    assert reliability(stated, right)[1] == (pytest.approx(0.9), pytest.approx(2 / 3), 3)
    assert expected_error([], []) == 0.0
    assert expected_error([1.0], [True]) == 0.0


def test_exact_probabilities_have_an_error_by_chance_that_shrinks_with_answers():
    assert chance_error([1.0] * 9) == 0.0
    assert 0.1 < chance_error([0.5] * 4) < 0.3
    assert chance_error([0.5] * 400) < 0.05


def test_measures_by_hand():
    stated, right = [0.9, 0.8, 0.4, 0.4], [True, False, True, False]
    assert brier(stated, right) == pytest.approx((0.01 + 0.64 + 0.36 + 0.16) / 4)
    # of four pairs two are in order, one is a tie
    assert auroc(stated, right) == pytest.approx((2 + 0.5) / 4)
    assert auroc([0.5], [True]) == 0.5
    assert [surest(stated, right, share) for share in (0.25, 0.5, 1.0)] == [1.0, 0.5, 0.5]


def test_log_odds_of_certainty_are_finite():
    assert log_odds(0.5) == 0
    assert math.isfinite(log_odds(1.0))
    assert math.isfinite(log_odds(0.0))
