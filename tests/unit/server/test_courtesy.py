"""Runs let viewers go first, but never stop for them."""

from __future__ import annotations

import pytest

from longtake.server.courtesy import HOLD, LONGEST, Courtesy
from longtake.stopping import Stop


class Clock:
    """Time that passes by sleeping."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def courtesy(clock):
    return Courtesy(clock, clock.sleep)


def test_a_run_pauses_only_after_a_request(clock, courtesy):
    courtesy.pause()
    assert clock.now == 100.0
    courtesy.arrive()
    courtesy.pause()
    assert clock.now == pytest.approx(100.0 + HOLD)


def test_an_endless_flood_of_requests_costs_a_run_half_of_its_time(clock, courtesy):
    paused = 0.0
    while clock.now < 110.0:
        courtesy.arrive()
        before = clock.now
        courtesy.pause()
        paused += clock.now - before
        clock.now += 0.001  # work
    assert 0.3 < paused / 10.0 < 0.6
    assert paused > LONGEST


def test_work_inside_other_work_pauses_as_well():
    pauses = []
    outer = Stop(pause=lambda: pauses.append("now"))
    Stop(None, Stop(outer)).check()
    assert pauses == ["now"]


def test_ended_work_does_not_pause():
    stop = Stop(pause=pytest.fail)
    stop.set()
    with pytest.raises(Exception, match="cancelled"):
        stop.check()
