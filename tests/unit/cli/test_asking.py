"""What a user of ask, compare and methods sees, with scripted models."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from films import Recipe

from longtake.cli.answers import HOW_TO_LOOK
from longtake.cli.ask import wants_first_look
from longtake.cli.compare import PAPERS, compared
from longtake.errors import MissingExtra
from longtake.perception.loader import PerceptionModels
from longtake.runner.assignment import ModelAssignment
from longtake.runner.session import Session
from longtake.types import Question

OPTIONS = ("--option", "red", "--option", "green", "--model", "test/obliging", "--no-verify")
"""Without the check of the answer, calls and frames are those of the method alone."""
pytestmark = pytest.mark.usefixtures("test_models", "shared_cache")


def test_an_answer_with_its_evidence_and_its_cost(run, film):
    code, out, err = run("ask", film, "Which colour?", *OPTIONS, "--method", "videoagent")
    assert code == 0, err
    assert out.startswith("A. red\n")
    assert "because a plain word" in out
    assert "confidence high (100%, not calibrated)" in out
    assert "  [1] 00:00:" in out
    assert "  looked at: [00:00:00] [00:00:" in out
    assert "5 frames, 7 calls" in out


def test_json(run, film):
    _, out, _ = run("ask", film, "Which colour?", *OPTIONS, "--method", "videoagent", "--json")
    answer = json.loads(out)
    assert (answer["schema"], answer["status"], answer["choice"]) == (1, "answered", "A")
    assert answer["usage"]["frames"] == len(answer["looked_at"]) == 5
    assert {"start", "end", "source", "text", "score"} == set(answer["evidence"][0])


def test_a_film_with_sound_is_asked_without_a_listener_and_that_is_said(run, tmp_path, monkeypatch):
    """As in a default install: the built-in captioner alone would have listened."""

    def missing(_):
        raise MissingExtra("speech", "speech recognition")

    monkeypatch.setattr(PerceptionModels, "listener", property(missing))
    path = Recipe("sound.mkv", sound_from=0.0).make(tmp_path)
    question = ("Which colour?", "--option", "red", "--option", "green")
    code, out, err = run("ask", path, *question, "--model", "llm=test/obliging")
    assert code == 0, err
    assert out.startswith("A. red\n")
    assert "the film's speech is left out: speech recognition needs an extra: " in err
    assert 'pip install "longtake[speech]"' in err
    path.with_suffix(".srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nHello\n")
    assert "left out" not in run("ask", path, *question, "--model", "llm=test/obliging")[2]


def test_the_command_that_an_abstention_names_works(run, film):
    method, model = re.search(r"--method (\S+) --model (\w+)", HOW_TO_LOOK).groups()
    assert model == "NAME"
    question = ("Which colour?", "--option", "red", "--option", "green")
    code, _, err = run("ask", film, *question, "--method", method, "--model", "test/obliging")
    assert code == 0, err


def test_fields_of_the_method_are_set_by_name(run, film):
    asked = ("ask", film, "Which?", *OPTIONS, "--method", "videoagent")
    _, out, _ = run(*asked, "--set", "videoagent.initial_frames=3", "--json")
    assert json.loads(out)["usage"]["frames"] == 3
    code, _, err = run(*asked, "--set", "videoagent.initial=3")
    assert code == 2
    assert "did you mean 'videoagent.initial_frames'" in err


def test_a_spent_budget_is_exit_3_with_the_best_answer_so_far(run, film):
    limited = ("--method", "videoagent", "--max-calls", "6", "--no-cache")
    code, out, _ = run("ask", film, "Which?", *OPTIONS, *limited)
    assert code == 3
    assert out.startswith("A. red\n")
    assert "best answer so far" in out


@pytest.mark.parametrize(
    ("model", "code", "says"),
    [("test/mute", 3, "could not be read"), ("test/gone", 4, "nobody answers")],
)
def test_an_abstention_is_exit_3_and_an_unreachable_model_4(run, film, model, code, says):
    ended, out, err = run("ask", film, "Which?", *OPTIONS[:4], "--model", model)
    assert (ended, says in (out if code == 3 else err)) == (code, True)
    assert (out == "") is (code == 4)


@pytest.mark.parametrize(
    ("method", "duration", "seconds", "text"),
    [
        ("videoagent", 3600.0, None, "Who?"),
        ("lookup", 60.0, None, "Who?"),
        ("lookup", 3600.0, 30.0, "Who?"),
        ("lookup", 3600.0, None, "How often is the price mentioned?"),
    ],
)
def test_short_films_other_methods_and_limited_questions_have_no_first_look(
    method, duration, seconds, text
):
    budget = SimpleNamespace(seconds=seconds)
    session = SimpleNamespace(settings=SimpleNamespace(budget=budget))
    options = SimpleNamespace(method=method, session=session)
    film = SimpleNamespace(duration=duration)
    assert not wants_first_look(options, film, Question(text))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["Which?", "--option", "only one"], "2 to 26"),
        (["Which?", *["--option", "x"] * 27], "2 to 26"),
        (["  "], "question is empty"),
        (["Which?", "--method", "videoagnt"], "did you mean 'videoagent'"),
        (["Which?", "--model", "gtp-9"], "unknown model"),
        (["Which?", "--model", "vml=test/obliging"], "unknown role"),
        (["Which?", "--max-calls", "0"], "positive and finite"),
        (["Which?", "--max-cost", "nan"], "--max-cost nan: a budget must be positive and finite"),
        (
            ["Which?", "--max-seconds", "inf"],
            "--max-seconds inf: a budget must be positive and finite",
        ),
        (["Which?", "--set", "budget.cost=nan"], "budget.cost = nan"),
        (["Which?", "--model", "test/obliging", "--prompts", "nowhere"], "no such folder"),
        (
            ["Which?", "--model", "test/obliging", "--trace", "nowhere/x.jsonl"],
            "nowhere/x.jsonl: there is no folder",
        ),
        (["Which\udcff?", "--model", "test/obliging"], "not valid UTF-8"),
        (["Which?", "--option", "a", "--option", "\udcff"], "not valid UTF-8"),
    ],
)
def test_mistakes(run, film, arguments, says):
    code, out, err = run("ask", film, *arguments)
    assert (code, out) == (2, ""), err
    assert says in err


def test_nothing_is_looked_at_for_a_file_that_cannot_be_written(run, film, monkeypatch):
    monkeypatch.setattr("longtake.cli.ask.look_through", lambda film: pytest.fail("looked"))
    assert run("ask", film, "Which?", *OPTIONS, "--trace", "nowhere/x.jsonl")[0] == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.filterwarnings("error")
def test_a_trace_that_fills_the_disk_is_said_and_the_answer_is_printed(run, film):
    code, out, err = run("ask", film, "Which colour?", *OPTIONS, "--trace", "/dev/full")
    assert code == 1
    assert out.startswith("A. red\n")
    assert "/dev/full: the trace is incomplete (No space left on device)" in err.splitlines()


def test_the_answer_is_printed_before_clips_that_fail(run, film, tmp_path, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("longtake.cli.ask.write_clips", full)
    code, out, err = run("ask", film, "Which colour?", *OPTIONS, "--clips", tmp_path / "cut")
    assert code == 1
    assert out.startswith("A. red\n")
    assert "disk is full" in err


def test_words_that_name_no_film_are_the_question(run, film):
    code, out, err = run("ask", film, "Which", "colour", "is", "it", *OPTIONS, "--json")
    assert code == 0, err
    assert json.loads(out)["question"] == "Which colour is it"
    code, out, err = run("ask", film, "gone", "Which colour is it?", *OPTIONS, "--json")
    assert '"gone: no such file"' in out


def test_an_error_tells_what_was_used(run, film):
    asked = ("ask", film, "Which?", *OPTIONS[:4], "--method", "videoagent")
    code, out, err = run(*asked, "--model", "test/leaving")
    assert (code, out) == (4, "")
    assert "ended after 5 frames, 5 calls" in err
    code, _, err = run("ask", film, "Which?", *OPTIONS[:4], "--model", "test/gone")
    assert code == 4
    assert "ended after" not in err


def test_ctrl_c_tells_what_was_used_and_loses_nothing(run, film):
    asked = ("ask", film, "Which?", *OPTIONS[:4], "--method", "videoagent")
    code, out, err = run(*asked, "--model", "test/stopped")
    assert (code, out) == (130, "")
    assert "interrupted after 5 frames, 5 calls" in err
    assert run("ask", film, "Which?", *OPTIONS)[0] == 0
    code, _, err = run(
        "compare", film, "Which?", *OPTIONS[:4], "--model", "test/stopped", "--method", "videoagent"
    )
    assert code == 130
    assert "interrupted after" in err


def test_compare_shows_one_row_a_method(run, film):
    code, out, err = run(
        "compare", film, "Which?", *OPTIONS, "--method", "blind", "--method", "uniform"
    )
    assert code == 0, err
    rows, _, explained = out.partition("\n\n")
    rows = rows.splitlines()
    assert explained.startswith("frames: pictures shown to models")
    assert [row.split()[0] for row in rows] == ["method", "blind", "uniform"]
    assert "A. red" in rows[1]


def test_a_model_may_be_named_for_a_role_that_one_of_the_methods_has(run, film):
    cast = []
    for role in ("vlm", "llm", "captioner"):
        cast += ["--model", f"{role}=test/obliging"]
    chosen = ("--method", "blind", "--method", "uniform", "--method", "videoagent")
    code, _, err = run("compare", film, "Which?", *OPTIONS[:4], *cast, *chosen)
    assert code == 0, err
    code, _, err = run("compare", film, "Which?", *OPTIONS[:4], *cast, *chosen[:4])
    assert code == 2
    assert "unknown role 'captioner'" in err


def test_without_a_model_that_sees_compare_leaves_out_methods_that_look(monkeypatch):
    assert compared(Session()) == ("lookup", "auto")
    chosen = ModelAssignment(models=("gemini-3-flash",))
    assert compared(Session(assignment=chosen)) == ("lookup", "auto", *PAPERS)


def test_compare_keeps_rows_that_failed(run, film):
    code, out, _ = run(
        "compare", film, "Which?", "--method", "blind", "--model", "test/gone", "--json"
    )
    assert code == 4
    assert json.loads(out)["results"][0]["status"] == "error"


def test_compare_shows_the_status_after_a_long_answer(run, film):
    options = ("--option", "red as a rose in the evening sun", *OPTIONS[2:])
    spent = ("--method", "videoagent", "--max-calls", "6", "--no-cache")
    _, out, _ = run("compare", film, "Which?", *options, *spent)
    assert "A. red as a rose [budget_spent] " in out


def test_compare_without_an_answer_is_exit_3_as_in_ask(run, film):
    spent = ("--method", "videoagent", "--max-calls", "2", "--no-cache", "--json")
    code, out, _ = run("compare", film, "Which?", *OPTIONS, *spent)
    assert code == 3
    assert [row["status"] for row in json.loads(out)["results"]] == ["budget_spent"]
    assert run("compare", film, "Which?", *OPTIONS, *spent, "--method", "blind")[0] == 0


def test_methods_lists_and_explains(run):
    _, out, _ = run("methods")
    assert "videoagent" in out
    _, out, _ = run("methods", "videoagent")
    assert "Most looks at the film (T)." in out
    assert "roles   llm, captioner" in out
    _, out, _ = run("methods", "--json")
    for method in json.loads(out)["methods"]:
        assert method["summary"]
        assert all(field["note"] for field in method["fields"]), method["name"]


def test_methods_that_are_compared_pay_for_themselves(run, film):
    for _ in range(2):
        _, out, _ = run(
            "compare", film, "What is paid?", *OPTIONS, "--method", "videoagent", "--json"
        )
        assert json.loads(out)["results"][0]["usage"]["calls"] == 7


def test_a_time_limit_covers_everything_but_printing(run, film, monkeypatch):
    looked_up = []
    monkeypatch.setattr("longtake.cli.answers.say_languages", lambda *_: looked_up.append(1))
    for limit, times in ((("--max-seconds", "60"), 0), ((), 1)):
        code, _, err = run("ask", film, "Which colour?", *OPTIONS, *limit)
        assert code == 0, err
        assert len(looked_up) == times
