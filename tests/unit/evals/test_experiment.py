"""Uniform sampling beside a method: as many frames, at most as many as fit one call."""

from __future__ import annotations

import pytest

from longtake.evals.benchmarks.lab import lab
from longtake.evals.experiment import frames_in_one_call, with_profile_model
from longtake.evals.runner import Solver, answer_one
from longtake.runner.assignment import ModelAssignment
from longtake.runner.session import Session


@pytest.fixture(scope="module")
def benchmark():
    return lab(range(1), 10, 1)


def answered(session, benchmark, frames):
    solver = Solver("uniform", session.with_fields("uniform", {"frames": frames}))
    row = answer_one(solver, benchmark.source, benchmark.items[0].asked)
    return row["status"]


def test_uniform_is_given_what_one_call_can_hold(benchmark):
    session = Session(assignment=with_profile_model(ModelAssignment(), "uniform"))
    most = frames_in_one_call(session, benchmark)
    assert answered(session, benchmark, most) == "answered"
    assert answered(session, benchmark, round(1.1 * most)) == "error"
