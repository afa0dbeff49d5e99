"""The strips under an answer's frames."""

from __future__ import annotations

import numpy as np

from longtake.plots import resample_scores
from longtake.tracing.events import ScoresSet
from longtake.types import Segment


def test_a_score_is_as_wide_as_its_stretch():
    strip = ScoresSet(label="share", segments=(Segment(0, 10), Segment(10, 100)), values=(1.0, 2.0))
    assert resample_scores(strip, 100.0, 10).tolist() == [1.0, *[2.0] * 9]


def test_what_was_not_scored_stays_empty_and_order_does_not_matter():
    strip = ScoresSet(
        label="observed", segments=(Segment(60, 80), Segment(20, 40)), values=(2.0, 1.0)
    )
    drawn = resample_scores(strip, 100.0, 5)
    assert np.isnan(drawn[[0, 2, 4]]).all()
    assert drawn[[1, 3]].tolist() == [1.0, 2.0]


def test_moments_reach_to_the_next():
    strip = ScoresSet(
        label="similarity",
        segments=tuple(Segment(t, t) for t in (0, 1, 2, 3)),
        values=(0.1, 0.2, 0.3, 0.4),
    )
    assert resample_scores(strip, 4.0, 4).tolist() == [0.1, 0.2, 0.3, 0.4]
