"""What is handed out beside the package: weights with their hashes, the container, compose.yaml."""

from __future__ import annotations

import hashlib
import importlib.metadata
import re
import shlex
import tomllib
from pathlib import Path

import pytest
import yaml

from longtake.cli.serve import serve
from longtake.llm.catalog import DOWNLOADS
from longtake.perception import efficientnet, minilm
from longtake.server.options import PORT

ROOT = Path(__file__).parent.parent
WEIGHTS = (ROOT / "docs" / "weights.md").read_text()
INSTALLED = re.findall(
    r"^\| `([\w-]+)` ([\d.]+) \| `([^`]+)` \| .* \| `(\w{64})` \| (yes|no) \|$",
    WEIGHTS,
    re.MULTILINE,
)


@pytest.mark.parametrize(("package", "version", "file", "digest", "checked"), INSTALLED)
def test_installed_weights_have_the_hash_of_their_row(package, version, file, digest, checked):
    try:
        distribution = importlib.metadata.distribution(package)
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("its extra is not installed")
    path = Path(str(distribution.locate_file(file)))
    if distribution.version != version or not path.is_file():
        pytest.skip("another version, or another platform's file")
    assert hashlib.sha256(path.read_bytes()).hexdigest() == digest


def test_the_page_of_weights_says_what_is_checked():
    checked = {digest for *_, digest, word in INSTALLED if word == "yes"}
    assert checked == {efficientnet.WEIGHTS_SHA256, minilm.MODEL_SHA256}


def test_the_page_of_weights_lists_every_download_with_a_recorded_hash():
    rows = re.findall(
        r"^\| `(local/[^`]+)` \| `([^`]+)` \| .* \| ([\w.-]+) \| `(\w{64})` \|$",
        WEIGHTS,
        re.MULTILINE,
    )
    assert {name: tuple(row) for name, *row in rows} == {
        name: (known.file, known.licence, known.sha256) for name, known in DOWNLOADS.items()
    }


def test_the_dockerfile_copies_files_that_reach_it_and_runs_without_root():
    steps = (ROOT / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert ignored[0] == "*"
    for step in steps:
        if step.startswith("COPY ") and "--from" not in step:
            *sources, _ = step.split()[1:]
            assert [name for name in sources if f"!{name}" not in ignored] == []
            assert [name for name in sources if not (ROOT / name).exists()] == []
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (chosen,) = (step.partition("=")[2] for step in steps if step.startswith("ARG EXTRAS"))
    assert set(chosen.split(",")) <= project["optional-dependencies"].keys()
    assert [step for step in steps if step.startswith("USER ")] == ["USER viewer"]


@pytest.fixture(scope="module")
def services():
    return yaml.safe_load((ROOT / "compose.yaml").read_text())


def test_compose_offers_the_page_and_either_model_server(services):
    offered = services["services"]
    assert {name: each.get("profiles") for name, each in offered.items()} == {
        "page": None,
        "ollama": ["ollama"],
        "vllm": ["vllm"],
    }
    assert all(each["healthcheck"]["test"][0] == "CMD" for each in offered.values())
    mounted = [volume for each in offered.values() for volume in each["volumes"]]
    named = {volume.split(":")[0] for volume in mounted if not volume.startswith("$")}
    assert named == services["volumes"].keys()


def test_the_page_of_compose_can_only_write_to_its_volume(services):
    page = services["services"]["page"]
    assert page["read_only"]
    assert page["cap_drop"] == ["ALL"]
    writable = [volume for volume in page["volumes"] if not volume.endswith(":ro")]
    assert writable == ["cache:/cache"]
    assert "HOME=/cache LONGTAKE_CACHE=/cache" in (ROOT / "Dockerfile").read_text()


@pytest.mark.parametrize("model", ["", "--model http://ollama:11434/v1#qwen2.5vl:7b"])
def test_longtake_understands_the_command_of_compose(services, model):
    page = services["services"]["page"]
    command = page["command"].replace("${MODEL:+--model ${MODEL:-}}", model)
    assert "$" not in command
    name, *arguments = shlex.split(command)
    parsed = serve.make_context(name, arguments)
    assert (name, parsed.params["host"]) == ("serve", "0.0.0.0")
    assert len(parsed.params["models"]) == bool(model)
    assert page["ports"] == [f"127.0.0.1:{PORT}:{PORT}"]
    assert f":{PORT}/healthz" in page["healthcheck"]["test"][-1]
