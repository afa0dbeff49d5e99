"""Uniform sampling beside a method: as many frames, at most as many as fit one call."""

from __future__ import annotations

import pytest

from longtake.config import AnswerSettings, Settings
from longtake.evals.benchmarks.lab import lab
from longtake.evals.experiment import frames_in_one_call, with_profile_model
from longtake.evals.runner import Solver, answer_one
from longtake.runner.assignment import ModelAssignment
from longtake.runner.session import Session


@pytest.fixture(scope="module")
def benchmark():
    return lab(range(1), 10, 1)


def shown(session, benchmark, frames):
    """The pictures that uniform sampling of so many frames shows in its call."""
    solver = Solver("uniform", session.with_fields("uniform", {"frames": frames}))
    row = answer_one(solver, benchmark.source, benchmark.items[0].asked)
    assert row["status"] == "answered"
    return row["usage"]["frames"]


def test_uniform_is_given_what_one_call_can_hold(benchmark):
    assignment = with_profile_model(ModelAssignment(), "uniform")
    session = Session(Settings(answers=AnswerSettings(verify=False)), assignment)
    most = frames_in_one_call(session, benchmark)
    assert shown(session, benchmark, most) == most
    assert most <= shown(session, benchmark, 2 * most) < 1.2 * most
