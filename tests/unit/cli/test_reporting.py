"""eval and report: runs of more than one benchmark in one report."""

from __future__ import annotations

import json
import math
import re
import shutil
from pathlib import Path

import pytest
from support.server import Send, serve
from support.working import Inline

from longtake import cli
from longtake.errors import RunError
from longtake.runner.assignment import BUILT_IN_METHOD, ONE_MODEL_METHOD
from longtake_bench.cli import eval as eval_module
from longtake_bench.leaderboard import spec_hash


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
READER = (
    *("--model", "reader", "--set", "models.reader.backend=scripted"),
    *("--set", f"models.reader.replies={json.dumps(['A'] * 50)}"),
)
"""A model for real captions, which simulated ones cannot read."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Runs of two methods on two benchmarks, and the data folder of one of them."""
    base = tmp_path_factory.mktemp("runs")
    data = nextqa(base / "nextqa", "7")
    benchmarks = {"lab": (*LAB, *SIMULATED), "nextqa": ("nextqa-captions", "--data", data, *READER)}
    folders = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LONGTAKE_CACHE", str(base / "cache"))
        patch.setattr("longtake_bench.runner.Processes", Inline)
        for name, arguments in benchmarks.items():
            for method in ("blind", "uniform"):
                folder = base / f"{name}-{method}"
                line = ("eval", *arguments, "--method", method, "--out", folder)
                assert cli.run([*map(str, line)]) == 0
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
    # a refusal is final; an endpoint that cannot be reached is tried again for half a minute
    with serve(lambda _: Send(status=403)) as served:
        model = f"{served.url}#x"
        blind = ("--method", "blind", "--model", model)
        code, out, _ = run("eval", *LAB, *blind, "--out", tmp_path / "r")
    assert code == 4
    assert "- 2 × ModelError: " in out
    assert model in out


def test_nothing_to_resume_is_said_and_noise_must_be_a_number(run, tmp_path):
    blind = ("--method", "blind", *SIMULATED)
    code, _, err = run("eval", *LAB, *blind, "--resume", "--out", tmp_path / "r")
    assert code == 0
    assert "nothing to resume" in err
    code, _, err = run("eval", "lab", "--of", "noise=nan", *blind, "--out", tmp_path / "n")
    assert code == 2
    assert "noise must be 0 or more" in err


def test_the_method_is_by_default_that_of_ask_and_earlier_replies_are_not_used(
    run, tmp_path, monkeypatch
):
    seen = []

    def evaluate(solver, *_, **__):
        seen.append((solver.method, solver.session.assignment.replies))
        raise RunError("seen enough")

    monkeypatch.setattr(eval_module, "evaluate", evaluate)
    # without its weights the built-in model would be refused before anything is asked
    monkeypatch.setattr(eval_module, "check_models", lambda *_, **__: None)
    run("eval", *LAB, "--out", tmp_path / "r")
    run("eval", *LAB, *SIMULATED, "--out", tmp_path / "s")
    assert seen == [(BUILT_IN_METHOD, False), (ONE_MODEL_METHOD, False)]


PRESET = ("--preset", "videoagent-nextqa", "--allow-differences")


@pytest.mark.parametrize("asked", [(), ("--verify",)])
def test_a_preset_checks_answers_only_if_asked(run, runs, tmp_path, monkeypatch, asked):
    monkeypatch.setattr("longtake_bench.runner.Processes", Inline)
    line = (*PRESET, "--data", runs[1], *READER, "--out", tmp_path / "r")
    code, _, err = run("eval", *line, *asked)
    assert code == 0, err
    spec = json.loads((tmp_path / "r" / "spec.json").read_text())
    assert f"verify={bool(asked)}" in spec["answers"]


def test_what_cannot_give_a_figure_is_refused_before_anything_is_asked(run, tmp_path):
    line = ("eval", "nextqa-captions", "--data", nextqa(tmp_path / "nextqa", "7"))
    code, out, err = run(*line, *SIMULATED, "--out", tmp_path / "r")
    assert (code, out) == (2, "")
    assert "lab/acuity=1 is simulated and cannot read the real captions" in err
    (tmp_path / "nextqa" / "map_vid_vidorID.json").write_text("{}")
    code, out, err = run("eval", "nextqa", *line[2:], *READER, "--out", tmp_path / "r")
    assert (code, out) == (2, "")
    assert "1 of 1 videos are missing: 7; see 'longtake eval --list nextqa'" in err
    assert not (tmp_path / "r").exists()


def test_other_encoders_than_the_papers_are_allowed_by_name_and_reported(run, runs, tmp_path):
    folder, page = tmp_path / "r", tmp_path / "report.html"
    line = ("eval", *PRESET[:2], "--data", runs[1], *READER, "--out", folder)
    code, _, err = run(*line)
    assert code == 2
    different = "MiniLM, which compares captions by meaning, instead of EVA-CLIP-8B-plus"
    assert f"{different}: pass --allow-differences" in err
    assert not folder.exists()
    code, out, err = run(*line, "--allow-differences")
    assert code == 0, err
    assert f"**r** differs from the paper:\n- {different}\n" in out
    code, out, _ = run("report", folder, "--data", runs[1], "--html", page, "--json")
    assert code == 0
    assert json.loads(out)["reports"][0]["spec"]["differences"] == [different]
    assert f"<li>{different}</li>" in page.read_text(encoding="utf-8")


def test_an_encoder_that_could_be_downloaded_is_named(run, tmp_path):
    line = ("eval", "--preset", "symphony-lvbench", *SIMULATED, "--out", tmp_path / "r")
    code, _, err = run(*line, "--data", tmp_path)
    assert code == 2
    assert "run 'longtake models pull clip-vit-base-patch32', or pass --allow-differences" in err
    code, _, err = run("eval", *LAB, "--allow-differences", "--out", tmp_path / "r")
    assert code == 2
    assert "need a --preset" in err


def test_an_ablation_is_a_row_of_the_tables(run, tmp_path, monkeypatch):
    monkeypatch.setattr("longtake_bench.runner.Processes", Inline)
    (data := tmp_path / "ego").mkdir()
    row = {"q_uid": "u", "question": "q", **{f"option {i}": "o" for i in range(5)}}
    (data / "subset_anno.json").write_text(json.dumps({"u": {**row, "truth": 1}}))
    (data / "lavila_subset.json").write_text(json.dumps({"u": ["a dog"]}))
    preset = ("--preset", "videoagent-egoschema", "--ablation", "no-self-evaluation")
    given = ("--allow-differences", "--data", data, *READER, "--out", tmp_path / "r")
    code, out, err = run("eval", *preset, *given)
    assert code == 0, err
    figure = "| without self-evaluation (videoagent-egoschema, no-self-evaluation) | 59.6 % |"
    assert f"{figure} VideoAgent, Table 5 |" in out
    spec = json.loads((tmp_path / "r" / "spec.json").read_text())
    assert spec["ablation"] == "no-self-evaluation"
    assert spec["method"]["fields"]["self_evaluation"] is False


def test_a_row_of_a_paper_is_repeated_beside_its_published_figure(run, runs, tmp_path):
    allowed = (*READER, "--allow-differences")
    asked = ("reproduce", "videoagent", "--table", "3", "--data", runs[1], *allowed)
    code, out, _ = run(*asked, "--dry-run")
    assert code == 0
    assert f"--data {runs[1]} --model reader --allow-differences" in out
    assert "--out repro/videoagent/3/1-videoagent" in out
    assert "VideoAgent: 71.3 %" in out
    code, out, err = run(*asked, "--out", tmp_path / "repro")
    assert code == 0, err
    assert "| table 3, VideoAgent | videoagent-nextqa | 71.3 % |" in out
    place = tmp_path / "repro" / "videoagent" / "3" / "1-videoagent-nextqa"
    spec = json.loads((place / "spec.json").read_text())
    assert spec["questions"] == 1


def test_rows_get_the_settings_and_ask_models_by_the_papers_names(run, runs, tmp_path):
    config = tmp_path / "papers.toml"
    config.write_text('[models."Llama2-70B"]\nbackend = "scripted"\nreplies = ["A"]\n')
    asked = ("reproduce", "videoagent", "--table", "6", "--row", "2", "--config", config)
    code, out, _ = run(*asked, "--dry-run")
    assert code == 0
    assert "--ablation llama2-70b" in out
    assert f"--config {config}" in out
    assert "models to define" not in out
    code, out, _ = run(*asked[:5], "3", "--dry-run")
    assert "models to define in config.toml: GPT-3.5" in out


def test_a_row_that_fails_is_reported_and_the_rest_goes_on(run, tmp_path):
    asked = ("reproduce", "videoagent", "--table", "8", "--out", tmp_path / "r", *SIMULATED)
    code, _, err = run(*asked, "--data", tmp_path)
    assert code == 0
    assert err.count("no card of this encoder") == 3
    asked = ("reproduce", "videoagent", "--table", "3", "--out", tmp_path / "r", *SIMULATED)
    code, _, err = run(*asked, "--data", tmp_path / "missing")
    assert code != 0
    assert "ended with exit code" in err


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (("videoagent",), "--out"),
        (("videoagent", "--table", "99", "--dry-run"), "unknown table"),
        (("videoagent", "--table", "5", "--row", "7", "--dry-run"), "no row 7"),
        (("videoagent", "--row", "1", "--dry-run"), "--row needs --table"),
        (("videoagent", "--ablation", "help"), "'help'; it has: 1-round, 11-uniform-frames"),
        (("nobody", "--dry-run"), "nobody"),
    ],
)
def test_what_cannot_be_reproduced_is_said(run, line, why):
    code, _, err = run("reproduce", *line)
    assert code != 0
    assert why in err


def test_an_audit_is_a_table_json_and_a_page(run, runs, tmp_path, monkeypatch):
    folders, _ = runs
    monkeypatch.setattr("longtake_bench.runner.Processes", Inline)
    checked = folders["lab", "blind"]
    named = [tmp_path / "blind", shutil.copytree(folders["lab", "uniform"], tmp_path / "uniform")]
    code, _, err = run("audit", checked, named[1], *SIMULATED)
    assert code == 2
    assert "blind needs --no-verify" in err
    unchecked = ("--method", "blind", "--no-verify", *SIMULATED)
    assert run("eval", *LAB, *unchecked, "--out", named[0])[0] == 0
    code, _, err = run("audit", *named, "--model", "lab/acuity=0.5")
    assert code == 2
    assert "was run with other settings (models.vlm was" in err
    page = tmp_path / "audit.html"
    code, out, err = run("audit", *named, *SIMULATED, "--html", page)
    assert code == 0, err
    assert "| uniform | 100.0%" in out.replace("|  ", "| ")
    assert "footage not needed: with the whole footage removed" in out  # of two questions
    assert "knows more than the footage" in page.read_text(encoding="utf-8")
    # everything is there: no model is needed to read it
    code, out, err = run("audit", *named, "--model", "lab/none", "--json")
    assert code == 0, err
    first, second = json.loads(out)["audits"]
    assert first["passes"] == {}
    assert set(second["passes"]) == {"shuffled", "emptied", "uncited", "thinned"}
    code, _, err = run("report", named[1] / "audit" / "uncited")
    assert code == 2
    assert "belongs to an audit" in err


def rewrite(folder, file, **changes):
    content = json.loads((folder / file).read_text())
    (folder / file).write_text(json.dumps({**content, **changes}))


def change_row(folder, **changes):
    file = folder / "results.jsonl"
    first, *others = file.read_text().splitlines(keepends=True)
    file.write_text(json.dumps({**json.loads(first), **changes}) + "\n" + "".join(others))


def with_models(folder, models):
    rewrite(folder, "spec.json", models=models)
    rewrite(folder, "summary.json", spec=spec_hash(json.loads((folder / "spec.json").read_text())))


DAMAGES = {
    "no summary.json that can be read": lambda f: (f / "summary.json").unlink(),
    "has 1 of 2 results": lambda f: (f / "results.jsonl").write_text(
        (f / "results.jsonl").read_text().splitlines(keepends=True)[0]
    ),
    "other fields than eval writes": lambda f: change_row(f, label="A"),
    "has a choice that was not offered": lambda f: change_row(f, choice="Z"),
    "other choice than eval writes": lambda f: change_row(f, choice=["A"]),
    "other usage than eval writes": lambda f: change_row(f, usage={"calls": -1}),
    "other evidence than eval writes": lambda f: change_row(f, evidence=[[1.0, math.nan]]),
    " other evidence than eval writes": lambda f: change_row(f, evidence=7),
    "other confidence than eval writes": lambda f: change_row(f, confidence=2),
    "other text than eval writes": lambda f: change_row(f, text=7),
    "other status than eval writes": lambda f: change_row(f, status="right"),
    "does not state spec as computed": lambda f: rewrite(f, "spec.json", index="changed"),
    "does not state right as computed": lambda f: rewrite(f, "summary.json", right=1000),
    "longtake 99.0.0, which is unknown here": lambda f: rewrite(f, "spec.json", longtake="99.0.0"),
    "longtake 1.x, which is unknown here": lambda f: rewrite(f, "spec.json", longtake="1.x"),
    "files are not as eval writes them (TypeError": lambda f: rewrite(f, "spec.json", benchmark=7),
    "are not as eval writes them (TypeError": lambda f: with_models(f, {"llm": 1}),
    "contains labels.json": lambda f: (f / "labels.json").write_text("{}"),
    "is not a result": lambda f: (f / "results.jsonl").write_text("[]\n"),
    "does not contain a run": lambda f: (f / "spec.json").write_bytes(b"\x00\xff"),
}


def test_damaged_runs_are_refused_in_a_line_each(run, runs, tmp_path):
    folders, _ = runs
    whole = folders["lab", "uniform"]
    copies = []
    for number, damage in enumerate(DAMAGES.values()):
        copies.append(shutil.copytree(whole, tmp_path / str(number)))
        damage(copies[-1])
    code, out, err = run("report", whole, *copies, tmp_path / "missing", "--check")
    assert (code, err) == (2, "")
    accepted, *refused = out.splitlines()
    assert accepted.startswith(f"{whole}: ok, spec ")
    assert len(refused) == len(DAMAGES) + 1
    for problem, line in zip(DAMAGES, refused, strict=False):
        assert line.startswith("refused: ")
        assert problem in line
    code, out, _ = run("report", whole, "--check", "--json")
    assert code == 0
    assert json.loads(out)["accepted"][0]["questions"] == 2


def test_a_leaderboard_links_to_every_question_and_keeps_texts_without_terms(run, runs, tmp_path):
    folders, data = runs
    ego = tmp_path / "ego"
    ego.mkdir()
    options = {f"option {number}": f"secret {number}" for number in range(5)}
    anno = {"q-1": {"question": "What is the secret?", **options, "truth": 2}}
    (ego / "subset_anno.json").write_text(json.dumps(anno))
    (ego / "lavila_subset.json").write_text(json.dumps({"q-1": ["someone walks", "<b>"]}))
    made = ("--method", "blind", *READER, "--out", tmp_path / "blind")
    assert run("eval", "egoschema-captions", "--data", ego, *made)[0] == 0
    made = (*LAB, "--method", "blind", *SIMULATED, "--limit", 1, "--out", tmp_path / "few")
    assert run("eval", *made)[0] == 0
    site = tmp_path / "site"
    given = ("--data", data, "--data", ego, "--site", site)
    code, out, err = run("report", tmp_path / "few", *folders.values(), tmp_path / "blind", *given)
    assert code == 0, err
    assert out.count(": ok, ") == 6
    index = (site / "index.html").read_text()
    assert re.findall(r"lab-captions<.*?] of (\d)", index.replace("\n", "")) == ["2", "2", "1"]
    links = re.findall(r'href="([^"#]+)#([0-9a-f]+)"', index)
    assert len(links) == 6
    for page, anchor in links:
        assert f'id="{anchor}"' in (site / page).read_text()
    pages = {path.name.rpartition("-")[0]: path.read_text() for path in site.glob("*-*.html")}
    assert pages.keys() == {"lab-captions", "nextqa-captions", "egoschema-captions"}
    assert "why run" in pages["nextqa-captions"]
    assert 'href="#q-7_6"' in pages["nextqa-captions"]
    assert "secret" not in pages["egoschema-captions"]
    assert not re.search(r"(right|wrong) [A-E]", pages["egoschema-captions"])
    assert (
        run("report", folders["lab", "blind"], "--site", tmp_path / "site" / "index.html")[0] == 2
    )


def test_the_files_of_a_benchmark_are_checked(run, runs, tmp_path):
    code, out, _ = run("eval", "--list", "nextqa-captions", "--data", runs[1])
    counted = "1 questions, 1 with labels, 1 videos\n"
    other = "val.csv: not the file that the loader was tested on\n"
    assert (code, out) == (0, counted + other)
    code, out, _ = run("eval", "--list", "nextqa", "--data", runs[1])
    assert code == 1
    assert "missing: 1 videos (7)" in out
    code, _, err = run("eval", "--list", "nextqa", "--data", tmp_path)
    assert code != 0
    assert "val.csv" in err
    assert run("eval", "--list", "--data", tmp_path)[0] != 0
