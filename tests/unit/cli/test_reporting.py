"""eval and report: runs of more than one benchmark in one report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from longtake.cli import eval as eval_module
from longtake.errors import RunError


def nextqa(folder: Path, video: str) -> Path:
    """Files of captioned NExT-QA with one question, as its loader takes them."""
    folder.mkdir()
    head = "video,frame_count,width,height,question,answer,qid,type,a0,a1,a2,a3,a4"
    (folder / "val.csv").write_text(
        f"{head}\n{video},90,4,4,why run,1,6,CW,fun,late,play,eat,rest\n"
    )
    (folder / "captions_1fps.json").write_text(
        json.dumps({video: ["a dog", "a dog runs", "a dog rests"]})
    )
    return folder


LAB = ("lab-captions", "--of", "seeds=0-0", "--of", "minutes=3", "--of", "questions=2")
SIMULATED = ("--model", "lab/acuity=1")


@pytest.fixture
def runs(run, tmp_path):
    """Runs of two methods on two benchmarks, and the data folder of one of them."""
    data = nextqa(tmp_path / "nextqa", "7")
    benchmarks = {"lab": LAB, "nextqa": ("nextqa-captions", "--data", data)}
    folders = {}
    for name, arguments in benchmarks.items():
        for method in ("blind", "uniform"):
            folder = tmp_path / f"{name}-{method}"
            code, _, err = run("eval", *arguments, "--method", method, *SIMULATED, "--out", folder)
            assert code == 0, err
            folders[name, method] = folder
    return folders, data


def test_runs_on_several_benchmarks_make_one_report(run, runs, tmp_path):
    folders, data = runs
    page = tmp_path / "report.html"
    given = ("--data", tmp_path, "--data", data)
    code, out, err = run("report", *folders.values(), *given, "--html", page)
    assert code == 0, err
    assert "| lab-blind − lab-uniform |" in out
    assert "| nextqa-blind − nextqa-uniform |" in out
    assert "nextqa-captions" in page.read_text(encoding="utf-8")


def test_files_that_are_not_the_runs_are_named(run, runs, tmp_path):
    folders, _ = runs
    other = nextqa(tmp_path / "other", "8")
    code, _, err = run("report", folders["nextqa", "blind"], "--data", other)
    assert code != 0
    assert "was run on other files" in err
    code, _, err = run("report", folders["nextqa", "blind"], "--data", other, "--data", tmp_path)
    assert code != 0
    assert "no --data folder holds the files of nextqa-captions" in err


def test_a_run_in_which_nothing_could_be_asked_says_why_and_exits_4(run, tmp_path):
    blind = ("--method", "blind", "--model", "http://127.0.0.1:9/v1#x")
    code, out, _ = run("eval", *LAB, *blind, "--out", tmp_path / "r")
    assert code == 4
    assert "- 2 × Unavailable: " in out
    assert "127.0.0.1:9" in out


def test_nothing_to_resume_is_said_and_noise_must_be_a_number(run, tmp_path):
    blind = ("--method", "blind", *SIMULATED)
    code, _, err = run("eval", *LAB, *blind, "--resume", "--out", tmp_path / "r")
    assert code == 0
    assert "nothing to resume" in err
    code, _, err = run("eval", "lab", "--of", "noise=nan", *blind, "--out", tmp_path / "n")
    assert code == 2
    assert "noise must be 0 or more" in err


def test_earlier_replies_are_not_used(run, tmp_path, monkeypatch):
    seen = []

    def evaluate(solver, *_, **__):
        seen.append(solver.session.casting)
        raise RunError("seen enough")

    monkeypatch.setattr(eval_module, "evaluate", evaluate)
    run("eval", *LAB, "--method", "blind", *SIMULATED, "--out", tmp_path / "r")
    assert seen[0].replies is False
