"""A benchmark's questions on workers: each is asked once, and a crash costs one of them."""

from dataclasses import replace

import pytest
from processes import Captions
from support.working import Inline

from longtake._util.process_pool import Processes
from longtake.config import Settings
from longtake.config.entries import OpenAIEntry
from longtake.errors import BudgetSpent
from longtake.llm.catalog import ModelCatalog
from longtake.llm.middleware import sharing_limits
from longtake.types import Question
from longtake_bench.benchmarks import BenchmarkQuestion
from longtake_bench.runner import Solver, answer_one, run_all


def questions(*texts, videos=("v0", "v1", "v2")):
    asked = []
    for video in videos:
        for number, text in enumerate(texts):
            asked.append(
                BenchmarkQuestion(f"{video}_{number}", video, Question(text, ("one", "two")))
            )
    return asked


def without_time(row):
    return replace(row, usage=replace(row.usage, seconds=0.0))


def test_rows_are_those_of_one_process():
    asked = questions("Which?", "What?")
    solver = Solver("processes:FirstOption")
    rows = {row.id: row for row in run_all(solver, Captions(), asked, workers=Inline(2))}
    for one in asked:
        expected = answer_one(solver, Captions(), one)
        assert without_time(rows[one.id]) == without_time(expected)


def test_a_death_costs_one_question(tmp_path):
    log = tmp_path / "log"
    solver = Solver("processes:FirstOption")
    session = solver.session.with_fields(solver.method, {"log": str(log)})
    solver = Solver(solver.method, session)
    asked = questions("1", "2", "3", "4", videos=("v0",))
    rows = list(run_all(solver, Captions(), asked, workers=Inline(deaths=(3,))))
    assert [row.id for row in rows] == [one.id for one in asked]
    assert [row.status == "error" for row in rows] == [False, False, True, False]
    assert len(log.read_text().splitlines()) == 3


@pytest.mark.campaign
def test_a_question_that_crashes_its_worker_is_one_error():
    asked = questions("Who?", "Who crashes?", "Who else?", videos=("v0",))
    with Processes(1) as workers:
        rows = list(run_all(Solver("support.working:Crashing"), Captions(), asked, workers=workers))
    errors = {row.id: row.error for row in rows if row.status == "error"}
    assert len(rows) == 3
    assert list(errors) == ["v0_1"]
    assert "SIGSEGV" in errors["v0_1"]


def test_a_run_whose_money_is_spent_asks_nothing_more():
    asked = questions("Which?", "What?")
    solver = Solver("processes:FirstOption")
    run = run_all(solver, Captions(), asked, workers=Inline(), max_cost=1.0, spent=1.5)
    with pytest.raises(BudgetSpent, match="6 questions left"):
        list(run)


def test_what_questions_in_progress_may_cost_is_set_aside():
    session = Solver("processes:FirstOption").session
    budget = replace(session.settings.budget, cost=0.4)
    session = replace(session, settings=replace(session.settings, budget=budget))
    solver = Solver("processes:FirstOption", session)
    # two of three films can be asked at the same time
    run = run_all(solver, Captions(), questions("Which?"), workers=Inline(3), max_cost=1.0)
    assert len([next(run), next(run)]) == 2
    with pytest.raises(BudgetSpent, match="1 questions left"):
        next(run)


def test_workers_share_the_limit_of_an_endpoint():
    entry = OpenAIEntry(base_url="http://127.0.0.1:1/v1", model="m", concurrency=8)
    limits = []
    for workers in (1, 3, 20):
        token = sharing_limits.set(workers)
        limits.append(ModelCatalog(Settings(models={"m": entry}))._gate("m").max_limit)
        sharing_limits.reset(token)
    assert limits == [8, 2, 1]
