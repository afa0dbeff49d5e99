"""A benchmark from another package: found by its entry point, listed, run and reported."""

from __future__ import annotations

import json
import sys

import pytest

from longtake import registry
from longtake.errors import ConfigError
from longtake.evals.benchmarks import about
from longtake.evals.runs import RunFolder

MODULE = """
from longtake.evals.benchmarks import BenchmarkInfo
from longtake.evals.benchmarks import BenchmarkQuestion, Benchmark, LabelledQuestion
from longtake.types import Question
from processes import Captions


class Videos(Captions):
    '''Defined here, so that a worker has to import this module.'''


def load(folder, options):
    question = Question("What is in the file?", ("red", "green"))
    label = (folder / "label.txt").read_text().strip()
    item = LabelledQuestion(BenchmarkQuestion("q0", "v0", question), label)
    return Benchmark("whatever", [item], Videos())


ABOUT = BenchmarkInfo(
    "A benchmark of one question",
    "nothing: the test writes it",
    "label.txt",
    "none",
    load=load,
    options={"split": "all"},
)
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An installed package with one benchmark."""
    site = tmp_path / "site"
    metadata = site / "onequestion-1.0.dist-info"
    metadata.mkdir(parents=True)
    (site / "onequestion.py").write_text(MODULE)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: onequestion\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[longtake.benchmarks]\none-question = onequestion:ABOUT\n"
    )
    monkeypatch.syspath_prepend(site)
    # the registry has read its plug-ins already if another test used it
    monkeypatch.setattr(registry.benchmarks, "_plugins_read", False)
    yield
    sys.modules.pop("onequestion", None)


@pytest.mark.usefixtures("package")
def test_a_benchmark_of_another_package_is_listed_run_and_reported(run, tmp_path):
    code, out, err = run("eval", "--list", "--json")
    assert code == 0, err
    listed = {row["name"]: row for row in json.loads(out)["benchmarks"]}
    assert listed["one-question"]["title"] == "A benchmark of one question"
    assert listed["one-question"]["options"] == {"split": "all"}
    _, out, _ = run("eval", "--list")
    assert "one-question: A benchmark of one question\n" in out

    data = tmp_path / "data"
    data.mkdir()
    (data / "label.txt").write_text("A\n")
    folder = tmp_path / "run"
    method = ("--method", "processes:FirstOption")
    code, out, err = run("eval", "one-question", "--data", data, *method, "--out", folder)
    assert code == 0, err
    assert "| run | one-question |" in out
    assert "100.0%" in out
    # the report loads the benchmark by the name it was run under
    code, out, err = run("report", folder, "--data", data)
    assert code == 0, err
    assert "| run | one-question |" in out


@pytest.mark.usefixtures("package")
def test_names_must_be_registered_and_lead_to_a_benchmark():
    registry.benchmarks.add("wrong", "onequestion:load")
    with pytest.raises(ConfigError, match="wrong is not a benchmark: expected a BenchmarkInfo"):
        about("wrong")
    with pytest.raises(ConfigError, match="did you mean 'videomme'"):
        about("videome")
    with pytest.raises(ConfigError, match="unknown benchmark 'onequestion:ABOUT'"):
        about("onequestion:ABOUT")


def test_the_spec_of_a_run_does_not_decide_what_is_imported(run, tmp_path, monkeypatch):
    (tmp_path / "stranger.py").write_text("raise SystemExit('imported')")
    monkeypatch.chdir(tmp_path)
    spec = {
        "benchmark": {"name": "stranger:ABOUT", "files": {}, "options": {}},
        "method": {"name": "blind"},
        "models": {},
        "questions": 1,
        "seed": 0,
    }
    RunFolder(tmp_path / "run").open(spec, resume=False)
    code, _, err = run("report", tmp_path / "run", "--data", tmp_path)
    assert code == 2
    assert "unknown benchmark 'stranger:ABOUT'" in err
