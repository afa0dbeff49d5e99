"""Another installed package brings a method with its prompts, and a backend."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
LAB = ("--of", "minutes=2", "--of", "seeds=1", "--of", "questions=2")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the package is installed, built from a copy so that nothing is left behind."""
    source = shutil.copytree(
        ROOT / "examples" / "plugin", tmp_path_factory.mktemp("plugin") / "source"
    )
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--no-build-isolation", "--no-index", "--target", target, source]
    subprocess.run(command, check=True)
    return target


@pytest.fixture
def longtake(site: Path, tmp_path: Path) -> Any:
    """Run a command in a process of its own, with the package installed and the network open."""
    paths = os.pathsep.join(map(str, (site, ROOT / "src")))

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "longtake", *map(str, arguments)]
        environment = {**os.environ, "PYTHONPATH": paths}
        return subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
        )

    return run


def test_methods_and_models_of_the_package_are_found(longtake: Any) -> None:
    listed = longtake("methods")
    assert "echo" in listed.stdout.split(), listed.stderr
    described = longtake("methods", "echo", "--json")
    assert "tone" in described.stdout, described.stderr
    entry = ("--set", "models.mine.backend=echo", "--set", "models.mine.address=api.example")
    rows = json.loads(longtake("models", "list", "--json", *entry).stdout)["models"]
    (row,) = [row for row in rows if row["name"] == "mine"]
    assert (row["backend"], row["where"]) == ("echo", "api.example")


@pytest.mark.campaign
def test_an_evaluation_runs_and_one_prompt_is_overridden(longtake: Any, tmp_path: Path) -> None:
    """It starts longtake in processes, as the example package says."""
    asked = (
        "eval",
        "lab",
        *LAB,
        "--method",
        "echo",
        "--model",
        "echo/B",
        "--traces",
        "--no-verify",
    )
    first = longtake(*asked, "--out", "first", "--json")
    assert first.returncode == 0, first.stderr
    own = tmp_path / "words" / "longtake_echo"
    own.mkdir(parents=True)
    (own / "answer.md").write_text("In a $tone tone.\n\n$question\n\nChoose what you like.\n")
    second = longtake(*asked, "--prompts", "words", "--out", "second", "--json")
    assert second.returncode == 0, second.stderr

    before, after = (
        json.loads((tmp_path / run / "spec.json").read_text())["prompts"]
        for run in ("first", "second")
    )
    assert before["longtake_echo/answer"] != after["longtake_echo/answer"]
    assert before["longtake_echo/check"] == after["longtake_echo/check"]
    for run, reason in (
        ("first", "Choose the second option."),
        ("second", "Choose what you like."),
    ):
        rows = [json.loads(line) for line in (tmp_path / run / "results.jsonl").open()]
        assert [row["choice"] for row in rows] == ["B", "B"]
        traces = "".join(path.read_text() for path in (tmp_path / run / "traces").glob("*.jsonl"))
        assert reason in traces
        assert ("Choose what you like." in traces) == (run == "second")
