"""A benchmark's questions on workers: each is asked once, and a crash costs one of them."""

from __future__ import annotations

import pytest
from processes import Captions
from support.working import Inline

from longtake._util.process_pool import Processes
from longtake.cluster.evaluation import ClusterRun
from longtake.errors import BudgetSpent
from longtake.evals.benchmarks import BenchmarkQuestion
from longtake.evals.runner import Solver, answer_one
from longtake.types import Question


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
