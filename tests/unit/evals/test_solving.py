"""One question in one process: its result and its trace."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from processes import Captions

from longtake.evals.benchmarks import BenchmarkQuestion
from longtake.evals.benchmarks.lab import LabSource
from longtake.evals.runner import Solver, answer_one, file_name
from longtake.runner.assignment import ModelAssignment
from longtake.runner.session import Session
from longtake.types import GIVEN, Question

TOPIC = Question("What is this film mostly about?", ("kitchen", "garden", "office", "travel"))


def test_plain_names_stay_as_they_are():
    for identity in ("q0", "7_6", "001-1", "plotQA_0.json"):
        assert file_name(identity) == identity


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("a/b", "a_b"),
        ("a/b", "a b"),
        ("x" * 120, "x" * 121),
        ("x" * 130 + "1", "x" * 130 + "2"),
        ("é", "è"),
        ("", "_"),
        (".", ".."),
    ],
)
def test_different_identities_have_different_file_names(first, second):
    assert file_name(first) != file_name(second)


@given(st.text(st.characters(), max_size=300))
def test_a_file_name_is_always_valid(identity):
    name = file_name(identity)
    assert name.isascii()
    assert 0 < len(name) < 140
    assert not name.startswith(".")
    assert "/" not in name
    assert "\0" not in name


def test_a_result_tells_frames_and_rounds():
    session = Session(assignment=ModelAssignment(("lab/acuity=0.8",)))
    solver = Solver("videoagent", session)
    row = answer_one(solver, LabSource(captions=True), BenchmarkQuestion("q", "3:5", TOPIC))
    assert row["usage"]["frames"] == 0  # captions are read, not shown
    assert row["seen"] >= 5
    assert 1 <= row["rounds"] <= 3


def test_traces_of_similar_identities_do_not_overwrite_each_other(tmp_path):
    solver = Solver("processes:FirstOption", traces=tmp_path)
    question = Question("Which?", ("one", "two"))
    for identity in ("a/b", "a_b"):
        row = answer_one(solver, Captions(), BenchmarkQuestion(identity, "v0", question))
        assert row["status"] in GIVEN
    names = [path.name for path in sorted(tmp_path.iterdir())]
    assert len(names) == 2
    assert names[1] == "a_b.jsonl"
    assert names[0].startswith("a_b-")
