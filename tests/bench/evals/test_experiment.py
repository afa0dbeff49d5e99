"""Uniform sampling beside a method, and the profile of runs that are recorded."""

import pytest

from longtake.config import AnswerSettings, Settings
from longtake.errors import RunError
from longtake.runner.assignment import ModelAssignment
from longtake.runner.session import Session
from longtake_bench import report
from longtake_bench.benchmarks import load
from longtake_bench.benchmarks.lab import lab
from longtake_bench.experiment import frames_in_one_call, with_profile_model
from longtake_bench.lab.profile import PROFILE
from longtake_bench.runner import Solver, answer_one


@pytest.fixture(scope="module")
def benchmark():
    return lab(range(1), 10, 1)


def shown(session, benchmark, frames):
    """The pictures that uniform sampling of so many frames shows in its call."""
    solver = Solver("uniform", session.with_fields("uniform", {"frames": frames}))
    row = answer_one(solver, benchmark.source, benchmark.items[0].asked)
    assert row.status == "answered"
    return row.usage.frames


def test_uniform_is_given_what_one_call_can_hold(benchmark):
    assignment = with_profile_model(ModelAssignment(("lab/context=20000",)), "uniform")
    session = Session(Settings(answers=AnswerSettings(verify=False)), assignment)
    most = frames_in_one_call(session, benchmark)
    assert shown(session, benchmark, most) == most
    assert most <= shown(session, benchmark, 2 * most) < 1.2 * most


SMALL = {"seeds": "7", "minutes": "20", "questions": "20"}


@pytest.mark.parametrize("options", [SMALL, {**SMALL, "profile": "lab-3"}])
def test_options_of_a_recorded_run_name_no_profile(options):
    recorded = load("lab", None, SMALL)
    assert recorded.settings["profile_hash"] == PROFILE.hash
    spec = {"name": "lab", "options": options, **recorded.settings}
    assert report.recorded_options(spec) == SMALL


@pytest.mark.parametrize("edition", ["lab-1", "lab-2"])
def test_a_run_on_an_earlier_edition_is_refused(edition):
    with pytest.raises(RunError, match=f"{edition}; score it with the version that ran it"):
        report.recorded_options({"name": "lab", "options": SMALL, "profile": edition})


def test_simulated_models_are_those_of_the_profile():
    models = ("vlm=lab/acuity=0.6", "llm=lab/profile=lab-3,seed=2")
    assignment = with_profile_model(ModelAssignment(models), "videoagent")
    assert assignment.models[0] == "lab/profile=lab-3"
    assert "vlm=lab/profile=lab-3,acuity=0.6" in assignment.models
    assert "llm=lab/profile=lab-3,seed=2" in assignment.models
    elsewhere = ("http://lab/x",)
    assert with_profile_model(ModelAssignment(elsewhere), "videoagent").models == elsewhere
