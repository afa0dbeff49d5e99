from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtake.evals.benchmarks import BenchmarkQuestion, LabelledQuestion
from longtake.evals.scoring import (
    Difference,
    accuracy,
    clustered_error,
    correct,
    mcnemar,
    paired,
    wilson,
)
from longtake.types import Question

CHOICE = LabelledQuestion(BenchmarkQuestion("q", "v", Question("?", ("a", "b"))), "B")
WORDS = LabelledQuestion(BenchmarkQuestion("q", "v", Question("?")), "the red umbrella")


def test_nothing_answered_is_wrong():
    assert correct(CHOICE, "B", "")
    assert not correct(CHOICE, "A", "")
    assert not correct(CHOICE, None, "b")


def test_words_are_compared_without_case_articles_and_marks():
    assert correct(WORDS, None, "It is a Red Umbrella.")
    assert not correct(WORDS, None, "a blue umbrella")
    assert not correct(WORDS, None, "")


def test_items_without_labels_cannot_be_scored():
    with pytest.raises(ValueError, match="no public label"):
        correct(
            LabelledQuestion(BenchmarkQuestion("q", "v", Question("?", ("a", "b"))), None), "A", ""
        )


def test_clustered_error_by_hand():
    values = np.array([1.0, 1.0, 0.0, 0.0])
    # clusters {1, 1} and {0, 0}: sums of residuals are 1 and −1
    assert clustered_error(values, ["x", "x", "y", "y"]) == pytest.approx(math.sqrt(2 / 1 * 2) / 4)
    # singletons: the ordinary standard error with n − 1
    assert clustered_error(values, list("abcd")) == pytest.approx(math.sqrt(4 / 3 * 1.0) / 4)
    assert clustered_error(values, ["x"] * 4) is None


def test_questions_that_stand_and_fall_together_say_less():
    right = [True] * 10 + [False] * 10
    together = accuracy(right, ["a"] * 10 + ["b"] * 10)
    apart = accuracy(right, [str(i) for i in range(20)])
    assert together.value == apart.value == 0.5
    assert together.high - together.low > apart.high - apart.low


def test_few_videos_that_agree_by_chance_do_not_give_certainty():
    rate = accuracy([True, False, False] * 2, ["a"] * 3 + ["b"] * 3)
    assert (rate.low, rate.high) == pytest.approx(wilson(2, 6))


def test_wilson_by_hand():
    low, high = wilson(5, 10)
    assert (low, high) == (pytest.approx(0.2366, abs=1e-4), pytest.approx(0.7634, abs=1e-4))
    assert wilson(0, 10)[0] == 0.0
    assert wilson(0, 10)[1] == pytest.approx(0.2775, abs=1e-4)


def test_mcnemar_by_hand():
    assert mcnemar(0, 0) == 1.0
    assert mcnemar(1, 9) == pytest.approx(2 * (1 + 10) / 1024)
    assert mcnemar(5, 5) == 1.0


@given(
    st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 5)), min_size=1, max_size=60)
)
def test_a_paired_difference_is_antisymmetric_and_inside_its_interval(rows):
    first, second = [r[0] for r in rows], [r[1] for r in rows]
    videos = [str(r[2]) for r in rows]
    one, two = paired(first, second, videos), paired(second, first, videos)
    assert one.value == pytest.approx(-two.value)
    assert one.p == two.p
    assert one.low <= one.high
    assert paired(first, first, videos).value == 0.0


def test_no_questions_give_no_difference_and_no_nan():
    assert paired([], [], []) == Difference(0.0, -1.0, 1.0, 0, 0, 1.0)
