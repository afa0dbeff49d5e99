"""Cores that may be used."""

import os

from longtake._util.process_pool import usable_cores


def test_cores_that_are_not_ours_do_not_count(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3, 5}, raising=False)
    assert usable_cores() == 2
    monkeypatch.delattr(os, "sched_getaffinity")
    assert usable_cores() == 16
