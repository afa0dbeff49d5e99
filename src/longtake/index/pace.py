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

What a step costs is counted in CPU seconds, which depend on the step alone. How long a CPU second
takes depends on what else runs: recognising speech beside it, for example, until that is finished.
So the last steps tell at which speed the others will go.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

SPREAD = (0.05, 0.05, 0.1, 0.2)
"""Shares of the steps in each pass before the last."""
NEAREST = 4
"""Finished steps whose mean cost is expected of one that is to do."""
RECENT = 0.1
"""Share of the steps whose speed is expected of those to do; they are the last ones finished."""
FEWEST = 4
"""Steps that tell the speed even if that is more than the share."""

_beside: ContextVar[Callable[[], float]] = ContextVar("beside", default=lambda: 0.0)
"""CPU seconds of threads that do other work."""


def own_cpu() -> float:
    """CPU seconds of this process, without those of work ``beside``."""
    return time.process_time() - _beside.get()()


@contextmanager
def beside(cpu: Callable[[], float]) -> Iterator[None]:
    """Leave the CPU seconds of some other threads out of ``own_cpu``."""
    token = _beside.set(cpu)
    try:
        yield
    finally:
        _beside.reset(token)


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

    def __init__(
        self,
        count: int,
        *,
        now: Callable[[], float] = time.perf_counter,
        work: Callable[[], float] = own_cpu,
    ) -> None:
        self._now, self._work = now, work
        self._began = now()
        self._seen = [(self._began, work())]
        """Time and work so far, at the beginning and after each step."""
        self._costs = np.full(count, np.nan)
        self._first: int | None = None

    def finished(self, number: int) -> float:
        """Note that a step has just been finished; return the share of the work that is done."""
        self._seen.append((self._now(), self._work()))
        self._costs[number] = max(0.0, self._seen[-1][1] - self._seen[-2][1])
        if self._first is None:
            self._first = number
        spent = self._seen[-1][0] - self._began
        left = self._expected() * self._speed()
        # a clock that stands still says nothing: then steps are counted
        if spent + left <= 0:
            return float(np.isfinite(self._costs).mean())
        return spent / (spent + left)

    def _speed(self) -> float:
        """Seconds that a unit of work has taken lately."""
        done = len(self._seen) - 1
        some = min(done, max(FEWEST, round(RECENT * len(self._costs))))
        # the first step also loads the models
        if some == done > 1:
            some -= 1
        (time_before, work_before), (time_after, work_after) = self._seen[-some - 1], self._seen[-1]
        work = work_after - work_before
        return (time_after - time_before) / work if work > 0 else 1.0

    def _expected(self) -> float:
        """The work of the steps that are to do."""
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
