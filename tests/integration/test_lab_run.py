"""lab run: evaluation on worlds with known truth; compare: every method on one question."""

import json
from dataclasses import replace

import pytest
from support.server import Send, serve

from longtake import cli
from longtake.cli.compare import PAPERS
from longtake.config import AnswerSettings, Settings
from longtake.errors import ModelError
from longtake.runner.assignment import ModelAssignment
from longtake.runner.session import Session
from longtake.server.app import serving
from longtake_bench import experiment
from longtake_bench.benchmarks.lab import lab
from longtake_bench.lab.film import make_world, write_world
from longtake_bench.lab.profile import parse
from longtake_bench.runner import Solver, answer_one, score
from longtake_bench.simulated_server import SimulatedService


def solve_all(benchmark, method, model, **fields):
    # these tests are about methods; the check would double their time
    settings = replace(Settings(), answers=AnswerSettings(verify=False))
    session = Session(settings, assignment=ModelAssignment((model,))).with_fields(method, fields)
    solver = Solver(method, session)
    return score(
        benchmark,
        {i.asked.id: answer_one(solver, benchmark.source, i.asked) for i in benchmark.items},
    )


@pytest.fixture(scope="module")
def worlds():
    return lab([0, 1], 10, 12)


def test_the_command_prints_one_object(capsys):
    line = "lab run --method videoagent --minutes 3 --worlds 2 --questions 2 --json"
    code = cli.run(line.split())
    out, err = capsys.readouterr()
    assert code == 0, err
    result = json.loads(out)
    wanted = "schema profile method questions accuracy interval by_type frames calls tokens"
    wanted += " critical_path_s uniform lead"
    assert set(wanted.split()) <= result.keys()
    assert result["profile"].startswith("lab-3:")
    assert result["questions"] == 4
    assert result["uniform"]["frames"] == round(result["frames"])


SMALL = ("lab", "run", "--minutes", "2", "--worlds", "1", "--questions", "2", "--workers", "1")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--method", "nosuch"], "unknown method 'nosuch'"),
        (["--model", "nosuch"], "unknown model 'nosuch'"),
        (["--model", "vml=lab/acuity=1"], "unknown role 'vml'"),
        (["--model", "http://far.invalid/v1#x", "--offline"], "--offline forbids"),
        (["--encoded", "nosuch"], "no such file"),
        (["--prompts", "nosuch"], "no such folder"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_runs(run, arguments, says):
    code, out, err = run(*SMALL, *arguments)
    assert (code, out) == (2, ""), err
    assert says in err


def test_that_every_question_failed_is_no_result_and_says_why(run):
    with serve(lambda _: Send(status=403)) as served:
        model = f"{served.url}#closed"
        code, out, err = run(*SMALL, "--method", "blind", "--model", model)
    assert (code, out) == (4, "")
    assert f"blind: every question ended in an error (2 × ModelError: {model}: " in err


def test_the_host_that_pictures_go_to_is_named(run, monkeypatch):
    def unasked(*_, **__):
        raise ModelError("x", "unavailable", "not asked here")

    monkeypatch.setattr(experiment, "evaluate", unasked)
    _, _, err = run(*SMALL, "--model", "http://far.invalid/v1#x")
    assert "will be sent to far.invalid" in err


def test_prompts_are_passed_on(run, tmp_path, monkeypatch):
    given = []

    def unasked(solver, *_, **__):
        given.append(solver.session.prompts)
        raise ModelError("x", "unavailable", "not asked here")

    monkeypatch.setattr(experiment, "evaluate", unasked)
    run(*SMALL, "--method", "blind", "--prompts", tmp_path)
    assert given == [tmp_path]


def test_more_frames_see_more(worlds):
    rates = [
        solve_all(worlds, "uniform", "lab/acuity=1", frames=n).accuracy.value for n in (4, 128)
    ]
    assert rates[1] > rates[0] + 0.1


def test_blind_is_at_chance(worlds):
    assert solve_all(worlds, "blind", "lab/acuity=1").accuracy.low < 0.25


def test_a_search_finds_what_uniform_frames_miss(worlds):
    """Many questions, so that the difference is no chance."""
    searched = solve_all(worlds, "videoagent", "lab/acuity=0.8")
    plain = solve_all(worlds, "uniform", "lab/acuity=0.8", frames=round(searched.mean("frames")))
    assert searched.mean("frames") < 15
    assert searched.accuracy.value > plain.accuracy.value


@pytest.fixture(scope="module")
def films(tmp_path_factory, lend_models):
    """A folder with the film of a world of two minutes, the shortest that has questions."""
    folder = tmp_path_factory.mktemp("films")
    write_world(make_world(4, 2), folder / "4_2")
    lend_models(folder / "cache")
    return folder


@pytest.fixture
def one_index(films, monkeypatch):
    monkeypatch.setenv("LONGTAKE_CACHE", str(films / "cache"))


@pytest.mark.campaign
@pytest.mark.usefixtures("one_index")
@pytest.mark.parametrize("method", ["uniform", "videoagent"])
def test_the_film_and_its_script_give_the_same_answers(films, method):
    """Slow: a film of two minutes is made and indexed."""
    drawn, encoded = lab([4], 2, 6), lab([4], 2, 6, films=films)
    here, there = (solve_all(benchmark, method, "lab/acuity=0.8") for benchmark in (drawn, encoded))
    assert [row.choice for row in there.rows] == [row.choice for row in here.rows]
    assert [row.text for row in there.rows] == [row.text for row in here.rows]


def test_symphony_ends_whatever_replies_look_like_and_however_the_server_fails():
    benchmark = lab([4], 10, 3)
    ends = {"answered", "unsupported", "abstained", "not_credible"}
    spoilt = solve_all(benchmark, "symphony", "lab/acuity=0.8,json_faults=0.3")
    assert {row.status for row in spoilt.rows} <= ends
    with serving(SimulatedService(parse("acuity=0.8"), fail_rate=0.1).app()) as url:
        failing = solve_all(benchmark, "symphony", f"{url}#lab/acuity=0.8")
    assert {row.status for row in failing.rows} <= ends
    whole = solve_all(benchmark, "symphony", "lab/acuity=0.8")
    assert [row.choice for row in failing.rows] == [
        row.choice for row in whole.rows
    ]  # asked again, not given up


def test_worlds_without_questions_are_refused_in_words(run):
    few = ("--first-seed", 33, "--minutes", 1, "--worlds", 1, "--questions", 1, "--workers", 1)
    code, out, err = run("lab", "run", "--method", "blind", *few)
    assert (code, out) == (2, "")
    assert "have no questions" in err


# simulated models see the pictures themselves; reading and listening would take longer than they do
BLIND = ("--set", "perception.reader=false", "--set", "perception.listener=none")
# enough to part two minutes into blocks
FEW = ("--set", "a4vl.events.max_feature_frames=40")
SIMULATED = ("--model", "lab/acuity=1", "--no-verify", *BLIND, *FEW)


@pytest.mark.campaign
@pytest.mark.usefixtures("one_index")
def test_all_methods_side_by_side(films, run):
    asked = next(asked for asked in make_world(4, 2).questions if asked.kind == "needle")
    options = [word for option in asked.question.options for word in ("--option", option)]
    film = films / "4_2" / "film.mp4"
    code, out, err = run("compare", film, asked.question.text, *options, *SIMULATED, "--json")
    assert code == 0, err
    rows = {row["method"]: row for row in json.loads(out)["results"]}
    assert set(rows) == {"lookup", "auto", *PAPERS}
    # lookup sees no pictures, so it abstains if the answer is neither said nor written
    looking = [row for name, row in rows.items() if name != "lookup"]
    assert {row["status"] for row in looking} == {"answered"}
    right = {name for name, row in rows.items() if row["choice"] == asked.answer}
    assert "auto" in right, rows
    for name in right:
        assert all(0 <= cited["start"] <= 120 for cited in rows[name]["evidence"])
