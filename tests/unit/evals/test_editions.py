"""Editions of the laboratory in experiments and reports."""

from __future__ import annotations

from longtake.evals import labelled
from longtake.evals.benchmarks import load
from longtake.evals.experiment import with_profile_model
from longtake.lab.profile import LAB_1, LAB_2
from longtake.session.casting import Casting

SMALL = {"seeds": "7", "minutes": "20", "questions": "20"}


def texts(benchmark):
    return [(item.asked.question, item.label) for item in benchmark.items]


def test_the_second_edition_is_the_default_and_the_first_can_be_had():
    default, first = load("lab", None, SMALL), load("lab", None, {**SMALL, "profile": "lab-1"})
    assert default.settings["profile_hash"] == LAB_2.hash
    assert first.settings["profile_hash"] == LAB_1.hash
    assert texts(default) != texts(first)


def test_a_run_recorded_before_there_were_editions_is_read_with_its_own_labels():
    first = load("lab", None, {**SMALL, "profile": "lab-1"})
    spec = {"name": "lab", "options": SMALL, **first.settings}
    again = load("lab", None, labelled.recorded_options(spec))
    assert texts(again) == texts(first)


def test_simulated_models_are_those_of_the_edition():
    models = ("vlm=lab/acuity=0.6", "llm=lab/profile=lab-1,seed=2")
    casting = with_profile_model(Casting(models), "videoagent", LAB_2)
    assert casting.models[0] == "lab/profile=lab-2"
    assert "vlm=lab/profile=lab-2,acuity=0.6" in casting.models
    assert "llm=lab/profile=lab-1,seed=2" in casting.models
    elsewhere = ("http://lab/x",)
    assert with_profile_model(Casting(elsewhere), "videoagent", LAB_2).models == elsewhere
    assert with_profile_model(Casting(), "videoagent", LAB_1).models == ("lab/acuity=0.8",)
