"""What a user of replay sees: recorded runs shown and run again, with scripted models."""

from __future__ import annotations

import json
import shutil

import pytest

from longtake import prompts

OPTIONS = ("--option", "red", "--option", "green", "--model", "test/obliging")
OPTIONS += ("--method", "videoagent", "--no-verify")
"""Without the check of the answer, calls and frames are those of the method alone."""
pytestmark = pytest.mark.usefixtures("test_models", "shared_cache")


@pytest.fixture
def trace(tmp_path):
    return tmp_path / "run.jsonl"


@pytest.fixture
def record(run, film, trace):
    """Records a run; returns what it printed."""

    def record(*options, ends=0):
        asked = ("ask", film, "Which colour?", *OPTIONS, "--trace", trace, "--no-cache")
        code, out, err = run(*asked, *options)
        assert code == ends, err
        assert "will contain the frames" in err
        return out

    return record


@pytest.mark.parametrize(("check", "calls"), [("--no-verify", 7), ("--verify", 8)])
def test_a_trace_is_replayed_and_rerun_without_a_model(run, film, trace, record, check, calls):
    first = record("--as", "list", check)
    assert f"{calls} calls" in first
    started = json.loads(trace.read_text().splitlines()[1])
    assert started["asks_for"] == "list"
    code, again, shown = run("replay", trace)
    # looks are shown one by one, and a trace does not know what else is in the film
    looks = ("  looked at", "  not looked at")
    told = [line for line in first.splitlines() if not line.startswith(looks)]
    assert (code, again.splitlines()) == (0, told)
    assert "videoagent/predict" in shown
    code, rerun, err = run("replay", trace, "--rerun", film)
    assert code == 0
    assert rerun.splitlines()[:4] == first.splitlines()[:4]
    assert "the same answer and evidence" in err
    assert "asks for: list" in err
    code, _, err = run("replay", film)
    assert code == 2
    assert "not a longtake trace" in err


def test_a_rerun_of_a_changed_method_is_noticed(run, film, trace, record):
    record()
    trace.write_text(trace.read_text().replace("Which colour?", "Which shape?"))
    code, _, err = run("replay", trace, "--rerun", film)
    assert code == 4
    assert "the run has changed" in err


@pytest.mark.parametrize(
    "limits",
    [
        ("--max-calls", "3"),
        ("--max-calls", "6"),
        ("--max-frames", "4"),
        ("--max-tokens", "400"),
        ("--max-seconds", "0.001"),
    ],
)
def test_a_run_that_its_budget_ended_is_rerun_to_the_same_end(run, film, trace, record, limits):
    first = record(*limits, ends=3)
    code, again, err = run("replay", trace, "--rerun", film)
    assert code == 3, err
    assert "the same answer and evidence" in err
    assert again.splitlines()[0] == first.splitlines()[0]


def test_prompts_that_stood_in_for_ours_are_in_the_trace(run, film, tmp_path, trace, record):
    own = tmp_path / "prompts"
    (own / "videoagent").mkdir(parents=True)
    ours = prompts.load("videoagent/predict").text
    (own / "videoagent" / "predict.md").write_text(f"Other words.\n{ours}")
    record("--prompts", own)
    shutil.rmtree(own)
    code, _, err = run("replay", trace, "--rerun", film)
    assert code == 0, err
    trace.write_text(trace.read_text().replace('"videoagent/predict":', '"../../predict":'))
    code, _, err = run("replay", trace, "--rerun", film)
    assert code == 2
    assert "unknown prompt '../../predict'" in err


def test_subtitles_that_were_given_are_taken_again_or_asked_for(run, film, tmp_path, trace, record):
    lines = tmp_path / "lines.srt"
    lines.write_text("1\n00:00:00,100 --> 00:00:02,000\nSomebody says something\n")
    record("--method", "uniform", "--set", "uniform.subtitles=true", "--subtitles", lines)
    assert run("replay", trace, "--rerun", film)[0] == 0
    moved = lines.rename(tmp_path / "moved.srt")
    code, _, err = run("replay", trace, "--rerun", film)
    assert code == 2
    assert "pass --subtitles FILE" in err
    code, _, err = run("replay", trace, "--rerun", film, "--subtitles", moved)
    assert code == 0, err


def test_a_trace_that_was_cut_says_that_it_has_no_answer(run, film, trace, record):
    record()
    lines = trace.read_text().splitlines(keepends=True)
    trace.write_text("".join(line for line in lines if '"answered"' not in line))
    for rerun in ((), ("--rerun", film)):
        code, _, err = run("replay", trace, *rerun)
        assert code == 2
        assert "the run ended without an answer" in err
        assert "NOT" not in err


def test_another_answer_than_the_recorded_one_is_printed_as_json_too(run, film, trace, record):
    record()
    *lines, last = trace.read_text().splitlines(keepends=True)
    trace.write_text("".join([*lines, last.replace('"choice":"A"', '"choice":"B"')]))
    code, out, err = run("replay", trace, "--rerun", film, "--json")
    assert code == 1
    assert "NOT the recorded answer" in err
    assert (json.loads(out)["choice"], json.loads(out)["as_recorded"]) == ("A", False)


def test_a_trace_from_before_is_read(run, film, trace, record):
    record()
    head, first, *rest = trace.read_text().splitlines(keepends=True)
    started = json.loads(first)
    for new in ("budget", "prompts", "subtitles"):
        del started[new]
    trace.write_text("".join([head, json.dumps(started) + "\n", *rest]))
    assert run("replay", trace, "--rerun", film)[0] == 0
