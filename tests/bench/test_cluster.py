"""A benchmark's questions on workers: each is asked once, and a crash costs one of them."""

import threading

import pytest
from processes import Captions
from support.working import Inline, alone_at_the_gate, take_turns

from longtake._util.process_pool import Processes, worker_name
from longtake.errors import BudgetSpent
from longtake.llm.middleware import Gate, make_gate
from longtake.types import Question
from longtake_bench.benchmarks import BenchmarkQuestion
from longtake_bench.cluster import ClusterRun, Limits, SharedGate, shared_gates
from longtake_bench.runner import Solver, answer_one


def questions(*texts, videos=("v0", "v1", "v2")):
    asked = []
    for video in videos:
        for number, text in enumerate(texts):
            asked.append(
                BenchmarkQuestion(f"{video}_{number}", video, Question(text, ("one", "two")))
            )
    return asked


def without_time(row):
    usage = {key: value for key, value in row["usage"].items() if key != "seconds"}
    return row | {"usage": usage}


def test_rows_are_those_of_one_process():
    asked = questions("Which?", "What?")
    solver = Solver("processes:FirstOption")
    rows = {row["id"]: row for row in ClusterRun(Inline(2), print)(solver, Captions(), asked)}
    for one in asked:
        expected = answer_one(solver, Captions(), one)
        assert without_time(rows[one.id]) == without_time(expected)


def test_after_a_death_only_what_has_no_row_is_asked_again(tmp_path):
    log = tmp_path / "log"
    solver = Solver("processes:FirstOption")
    session = solver.session.with_fields(solver.method, {"log": str(log)})
    solver = Solver(solver.method, session)
    asked = questions("1", "2", "3", "4", videos=("v0",))
    rows = list(ClusterRun(Inline(deaths=(3,)), print)(solver, Captions(), asked))
    assert [row["id"] for row in rows] == [one.id for one in asked]
    assert [row["status"] == "error" for row in rows] == [False, False, True, False]
    assert len(log.read_text().splitlines()) == 3


@pytest.mark.campaign
def test_a_question_that_crashes_its_worker_is_one_error():
    asked = questions("Who?", "Who crashes?", "Who else?", videos=("v0",))
    solver = Solver("support.working:Crashing")
    with Processes(1) as engine:
        rows = list(ClusterRun(engine, print)(solver, Captions(), asked))
    outcomes = {row["id"]: row["status"] for row in rows}
    assert len(rows) == len(outcomes) == 3
    assert [key for key in sorted(outcomes) if outcomes[key] == "error"] == ["v0_1"]
    errors = [row["error"] for row in rows if row["status"] == "error"]
    assert all("SIGSEGV" in error for error in errors)


def test_a_run_whose_money_is_spent_asks_nothing_more():
    asked = questions("Which?", "What?")
    run = ClusterRun(Inline(), print, max_cost=1.0, spent=1.5)
    with pytest.raises(BudgetSpent, match="6 questions left"):
        list(run(Solver("processes:FirstOption"), Captions(), asked))


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
