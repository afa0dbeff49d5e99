"""Estimates of what is left to do."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from longtake.index import tasks
from longtake.index.tasks import NEIGHBOURS, PROBES, OnscreenTask

OPENING, SHOT = 0.5, 0.1
"""Seconds to begin somewhere in a film, and to read a shot from there on."""


class Shots:
    """Shots that are read on a clock of their own."""

    def __init__(self, count):
        self.left, self.clock = list(range(count)), 10.0  # which includes loading the models

    def missing(self):
        return list(self.left)

    def build(self, within):
        read = [row for row in self.left if within.start <= row < within.end]
        self.left = [row for row in self.left if row not in read]
        self.clock += OPENING + SHOT * len(read)


def estimated(monkeypatch, count):
    layer = Shots(count)
    monkeypatch.setattr(tasks.time, "perf_counter", lambda: layer.clock)
    film = SimpleNamespace(
        words=SimpleNamespace(readable=layer),
        settings=SimpleNamespace(perception=SimpleNamespace(reader=True)),
        pictures=SimpleNamespace(has=lambda _: True),
        times=np.arange(count, dtype=float),
    )
    return OnscreenTask(film).estimate(), layer


def test_shots_are_estimated_from_neighbours_all_over_the_film(monkeypatch):
    told, layer = estimated(monkeypatch, 1000)
    assert len(layer.left) == 1000 - 1 - PROBES * NEIGHBOURS
    # a shot that is read alone takes six times as long as one in a row
    usual = SHOT + OPENING / NEIGHBOURS
    assert told == pytest.approx(usual * len(layer.left))
    read = np.setdiff1d(np.arange(1000), layer.left)[1:]
    parts = read // (1000 // PROBES)
    assert [list(parts).count(part) for part in range(PROBES)] == [NEIGHBOURS] * PROBES


@pytest.mark.parametrize("count", [1, 2, 5, 13, 14])
def test_few_shots_are_estimated_too(monkeypatch, count):
    told, layer = estimated(monkeypatch, count)
    assert told == pytest.approx((SHOT + OPENING / NEIGHBOURS) * len(layer.left), abs=1e-9)
