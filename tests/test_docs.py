"""The documentation is true: its links lead somewhere, its commands exist, its Python runs."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from films import FILMS

from longtake import build, cli, registry
from longtake.evals.benchmarks import NAMES

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_commands_exist(page):
    text = page.read_text()
    typed = "\n".join(code for _, code in BLOCK.findall(text))
    for command in re.findall(r"`longtake ([a-z-]+)", text) + re.findall(r"^longtake ([a-z-]+)", typed, re.MULTILINE):
        assert command in cli.COMMANDS, command


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_python_runs(page, film_folder, monkeypatch, tmp_path):
    blocks = [code for language, code in BLOCK.findall(page.read_text()) if language == "python"]
    monkeypatch.setitem(registry.chats._targets, "test", "support.models:make")
    monkeypatch.setattr(build, "DEFAULT_MODELS", dict.fromkeys(build.DEFAULT_MODELS, "test/obliging"))
    monkeypatch.chdir(tmp_path)
    if blocks:
        shutil.copy(FILMS[0].make(film_folder), tmp_path / "film.mp4")
    for code in blocks:
        exec(compile(code, str(page), "exec", dont_inherit=True), {})


def test_every_command_is_in_the_readme():
    readme = (ROOT / "README.md").read_text()
    assert [name for name in cli.COMMANDS if f"`{name}`" not in readme] == []


def test_every_benchmark_can_be_described():
    from longtake.evals.benchmarks import about

    assert [about(name).name for name in NAMES] == list(NAMES)
