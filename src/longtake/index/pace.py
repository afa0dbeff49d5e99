"""How far work is whose steps differ in cost, judged by what nearby steps have cost.

::

    steps      . . . . . . . . . . . . . . . . . . . .     a film from beginning to end
    passes     1                     1                     each some steps from all over the film
                       2                       2
                 3         3       3               3
                   x x   x   x x x   x   x x x   x   x     the last: all the others, in order

A film that is full of text at its end would seem half done when most of the work is still ahead. So
work is done in passes, and a step that is still to do is expected to cost what the finished ones
nearest to it did.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

SPREAD = (0.05, 0.05, 0.1, 0.2)
"""Shares of the steps in each pass before the last."""
NEAREST = 4
"""Finished steps whose mean cost is expected of one that is to do."""


def passes(count: int) -> list[list[int]]:
    """The numbers from 0 to ``count`` − 1 in passes, each in ascending order."""
    rng = np.random.default_rng(0)
    left = list(range(count))
    made = []
    for share in SPREAD:
        some = min(len(left), max(1, round(count * share)))
        # one from each stretch, not always at the same place: films are cut to a rhythm
        places = [int((k + place) * len(left) / some) for k, place in enumerate(rng.random(some))]
        made.append([left[place] for place in places])
        left = [number for number in left if number not in set(made[-1])]
    return [*made, left]


class Pace:
    """The share of the expected time that is over."""

    def __init__(self, count: int, now: Callable[[], float] = time.perf_counter) -> None:
        self._now = now
        self._last = now()
        self._costs = np.full(count, np.nan)
        self._first: int | None = None

    def finished(self, number: int) -> float:
        """Note that a step has just been finished; return the share of the work that is done."""
        now = self._now()
        self._costs[number] = now - self._last
        self._last = now
        if self._first is None:
            self._first = number
        spent = float(np.nansum(self._costs))
        left = self._expected()
        # a clock that stands still says nothing: then steps are counted
        if spent + left <= 0:
            return float(np.isfinite(self._costs).mean())
        return spent / (spent + left)

    def _expected(self) -> float:
        """Seconds that the steps to do are expected to take."""
        done = np.flatnonzero(np.isfinite(self._costs))
        to_do = np.flatnonzero(np.isnan(self._costs))
        # the first step also loads the models
        done = done[done != self._first] if len(done) > 1 else done
        if len(to_do) == 0:
            return 0.0
        window = min(NEAREST, len(done))
        # the finished steps around each step to do, as many before it as after it
        begin = np.clip(np.searchsorted(done, to_do) - window // 2, 0, len(done) - window)
        total = np.concatenate(([0.0], np.cumsum(self._costs[done])))
        return float(((total[begin + window] - total[begin]) / window).sum())
