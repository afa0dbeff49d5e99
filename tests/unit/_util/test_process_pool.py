"""Tasks on workers: results as they come, and what a dying worker costs."""

import os
import time

import pytest
from support.working import Count, Inline, collect

from longtake._util.process_pool import (
    Notice,
    Processes,
    TaskFailed,
    TaskFinished,
    TaskValue,
    WorkerPool,
)
from longtake.cluster.backends import BackendAddress, parse_backend
from longtake.errors import ConfigError, LongtakeError


@pytest.fixture(scope="module")
def ended():
    """What became of tasks that end in every way, on two processes."""
    good = [Count(f"good {number}") for number in range(3)]
    ways = [Count(how, ends=1, how=how) for how in ("crash", "refuse", "stumble")]
    with Processes(2) as engine, WorkerPool(engine) as pool:
        return collect(pool, *ways, *good)


@pytest.mark.processes
def test_every_value_arrives(ended):
    values, _ = ended
    for number in range(3):
        assert values[f"good {number}"] == [0, 1, 2]


def test_a_task_that_crashes_its_worker_is_reported_once_and_harms_no_other(ended):
    values, failures = ended
    assert values["crash"] == [0]
    assert failures["crash"].done == 1
    assert failures["crash"].failure.kind == "crashed"
    assert "SIGSEGV" in failures["crash"].failure.message


def test_our_errors_keep_their_words_and_exit_code(ended):
    failure = ended[1]["refuse"].failure
    assert (failure.kind, failure.message, failure.exit_code) == ("refused", "no such thing", 2)
    assert ended[1]["stumble"].failure.message == "ZeroDivisionError: none left"


@pytest.mark.processes
def test_leaving_ends_workers_in_mid_task(tmp_path):
    log = tmp_path / "log"
    with Processes(1) as engine, WorkerPool(engine) as pool:
        pool.submit(Count("endless", numbers=tuple(range(1000)), log=str(log)))
        next(report for report in pool.reports() if isinstance(report, TaskValue))
    worker = int(log.read_text().split()[-1])
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)
    written = log.read_text()
    time.sleep(0.05)
    assert log.read_text() == written


def test_a_worker_that_dies_fails_its_task_and_not_the_next():
    # steps 1 and 2 give two values; with the third the worker dies
    engine = Inline(deaths=(3,))
    with WorkerPool(engine) as pool:
        values, failures = collect(pool, Count("a", tuple(range(5))), Count("b", (0,)))
    assert values == {"a": [0, 1], "b": [0]}
    assert failures["a"].done == 2
    assert failures["a"].failure.kind == "crashed"
    assert engine.started == 2


def test_a_restarted_worker_computes_no_value_twice():
    with WorkerPool(Inline(restarts=(3,))) as pool:
        values, failures = collect(pool, Count("a", tuple(range(5))))
    assert values == {"a": [0, 1, 2, 3, 4]}
    assert not failures


def test_workers_that_die_before_they_can_work_end_the_run():
    class Stillborn(Inline):
        def start(self):
            worker = super().start()
            worker._message = None
            return worker

    with WorkerPool(Stillborn()) as pool, pytest.raises(LongtakeError, match="before they can"):
        collect(pool, Count("a"))


def test_notes_reach_the_user():
    with WorkerPool(Inline()) as pool:
        pool.submit(Count("a", ends=0, how="stumble"))
        assert Notice("stumbled: over a stone") in list(pool.reports())


def test_tasks_may_be_added_on_the_way():
    order = []
    with WorkerPool(Inline()) as pool:
        pool.submit(Count("a", (0,)), Count("b", (0,)), Count("c", (0,)))
        for report in pool.reports():
            if isinstance(report, TaskFinished):
                order.append(report.task.name)
                if report.task.name == "a":
                    pool.submit(Count("d", (0,)), Count("e", (0,)), first=True)
    assert order == ["a", "d", "e", "b", "c"]


def test_no_more_workers_than_tasks():
    engine = Inline(workers=8)
    with WorkerPool(engine) as pool:
        assert not any(isinstance(report, TaskFailed) for report in pool.reports())
        collect(pool, Count("a"), Count("b"))
    assert engine.started == 2


def test_engines_are_named_on_the_command_line():
    assert parse_backend("processes") == BackendAddress("processes")
    assert parse_backend("ray") == BackendAddress("ray")
    there = parse_backend("ray://head:6379?gpus=0.25&cpus=2")
    assert there == BackendAddress("ray", "ray://head:6379", cpus=2.0, gpus=0.25)
    for wrong in ("rey", "ray://", "ray?gpu=1", "ray?gpus=lots", "processes://here", "ray?cpus=-1"):
        with pytest.raises(ConfigError):
            parse_backend(wrong)
