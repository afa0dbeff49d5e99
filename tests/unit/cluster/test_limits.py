"""Limits that all workers share."""

from __future__ import annotations

import threading

from support.working import alone_at_the_gate, take_turns

from longtake._util.process_pool import Processes, worker_name
from longtake.cluster.evaluation import Limits, SharedGate, shared_gates
from longtake.llm.middleware import Gate, make_gate


def test_workers_share_the_places_of_an_endpoint():
    limits = Limits()
    first = limits.enter("a", "host", 2, 0.01)
    limits.enter("b", "host", 2, 0.01)
    assert limits.enter("c", "host", 2, 0.01) is None
    assert limits.enter("c", "elsewhere", 2, 0.01) is not None
    limits.leave("a", "host", first, False, True)
    assert limits.enter("c", "host", 2, 0.01) is not None


def test_an_overload_seen_by_one_worker_slows_all():
    limits = Limits()
    entered = [limits.enter("a", "host", 4, 0.01) for _ in range(4)]
    limits.leave("a", "host", entered[0], True, False)
    for place in entered[1:]:
        limits.leave("a", "host", place, False, True)
    assert limits.enter("a", "host", 4, 0.01) is not None
    assert limits.enter("b", "host", 4, 0.01) is not None
    assert limits.enter("b", "host", 4, 0.01) is None


def test_the_places_of_a_dead_worker_are_free_again():
    limits = Limits()
    entered = limits.enter("a", "host", 1, 0.01)
    limits.forget("a")
    assert limits.enter("b", "host", 1, 0.01) is not None
    # what it may still say does not count
    limits.leave("a", "host", entered, True, False)
    assert limits.enter("c", "host", 1, 0.01) is None


def test_money_is_set_aside_before_it_is_spent():
    limits = Limits(1.0, 0.2)
    assert limits.reserve(0.5)
    assert not limits.reserve(0.5)
    limits.book(0.5, 0.1)
    assert limits.reserve(0.5)
    assert round(limits.spent(), 6) == 0.8


def test_without_a_price_per_question_the_run_ends_when_all_is_spent():
    limits = Limits(1.0)
    assert limits.reserve(0.0)
    limits.book(0.0, 1.2)
    assert not limits.reserve(0.0)
    assert Limits().reserve(1e9)


def test_models_wait_at_the_gates_of_the_cluster():
    limits = Limits()
    assert type(make_gate.get()("host", 1)) is Gate
    with shared_gates(limits):
        gate, other = make_gate.get()("host", 1), make_gate.get()("host", 1)
    assert isinstance(gate, SharedGate)
    entered = gate.enter(None)
    assert other.enter(0.01) is None
    threading.Timer(0.05, limits.forget, [worker_name()]).start()
    assert other.enter(None) is not None
    gate.leave(entered, overloaded=False, worked=True)


def test_processes_take_turns_at_an_endpoint(tmp_path):
    with Processes(2) as engine:
        lines = take_turns(engine, tmp_path / "log")
    assert len(lines) == 8
    assert alone_at_the_gate(lines)
