"""Calls in other processes: what a dying worker costs, and in which order items are asked for."""

import os

import pytest
from support.working import Act, Inline

from longtake._util.process_pool import Failure, Processes, run_groups
from longtake.cluster.backends import BackendAddress, parse_backend
from longtake.errors import ConfigError


@pytest.fixture(scope="module")
def ended():
    """What became of items that end in every way, on two processes."""
    groups = [["crash", "after the crash"], ["refuse", "stumble"], ["a", "b", "c"]]
    with Processes(2) as workers:
        return list(run_groups(workers, Act(), groups))


@pytest.mark.processes
def test_every_value_arrives_in_the_order_of_its_group(ended):
    assert [value for item, value in ended if item in ("a", "b", "c")] == ["a", "b", "c"]
    assert len(ended) == 7


def test_an_item_that_crashes_its_worker_is_reported_once_and_harms_no_other(ended):
    values = dict(ended)
    assert values["crash"].kind == "crashed"
    assert "SIGSEGV" in values["crash"].message
    assert values["after the crash"] == "after the crash"


def test_our_errors_keep_their_words_and_exit_code(ended):
    values = dict(ended)
    assert values["refuse"] == Failure("refused", "no such thing", 2)
    assert values["stumble"].message == "ZeroDivisionError: none left"


@pytest.mark.processes
def test_leaving_ends_workers_in_the_middle_of_a_call(tmp_path):
    log = tmp_path / "log"
    with Processes(2) as workers:
        results = run_groups(workers, Act(str(log), pause=0.2), [["a"], range(1000)])
        next(results)
    written = log.read_text()
    for line in written.splitlines():
        with pytest.raises(ProcessLookupError):
            os.kill(int(line.split()[-1]), 0)
    assert log.read_text() == written


def test_groups_run_side_by_side_and_the_next_item_is_asked_for_late():
    asked = []

    def group(name):
        for number in range(2):
            asked.append(f"{name}{number}")
            yield f"{name}{number}"

    results = run_groups(Inline(2), Act(), map(group, "abc"))
    first, _ = next(results)
    assert asked == ["a0", "b0"]
    rest = {item for item, _ in results}
    assert {first} | rest == {"a0", "a1", "b0", "b1", "c0", "c1"}


def test_engines_are_named_on_the_command_line():
    assert parse_backend("processes") == BackendAddress("processes")
    assert parse_backend("ray") == BackendAddress("ray")
    there = parse_backend("ray://head:6379?gpus=0.25&cpus=2")
    assert there == BackendAddress("ray", "ray://head:6379", cpus=2.0, gpus=0.25)
    for wrong in ("rey", "ray://", "ray?gpu=1", "ray?gpus=lots", "processes://here", "ray?cpus=-1"):
        with pytest.raises(ConfigError):
            parse_backend(wrong)
