"""The documentation is true: its links lead somewhere, its commands exist, its Python runs."""

import dataclasses
import importlib
import importlib.util
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest
from films import FILMS, begin_film

import longtake
from longtake import cli, registry
from longtake.methods.base import FULL, configure
from longtake.runner import assignment
from longtake_bench.benchmarks import BenchmarkInfo, about, benchmarks
from longtake_bench.lab import film

ROOT = Path(__file__).parent.parent
COMMANDS = (*cli.COMMANDS, *(name for names in cli.MEASURING for name in names.split(", ")))
ROOT_PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
PAGES = [*ROOT_PAGES, *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def _here(path):
    """Where a file of the repository is: the package may be installed elsewhere, as a wheel."""
    path = path.resolve()
    if path.is_relative_to(ROOT / "src"):
        return Path(longtake.__file__).parents[1] / path.relative_to(ROOT / "src")
    return path


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text()):
        if "://" not in target:
            assert _here(page.parent / target).exists(), target


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=lambda p: p.name)
def test_no_merge_was_left_half_done(page):
    assert not re.search(r"^(<{7}|={7}|>{7})", page.read_text(), re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_commands_exist(page):
    text = page.read_text()
    typed = "\n".join(code for _, code in BLOCK.findall(text))
    tables = [tomllib.loads(code) for language, code in BLOCK.findall(text) if language == "toml"]
    points = [table.get("project", {}).get("entry-points", {}) for table in tables]
    # a recipe may add a command
    known = set(COMMANDS).union(*(point.get("longtake.commands", {}) for point in points))
    for command in re.findall(r"`longtake ([a-z][a-z-]*)(?![\w./:])", text) + re.findall(
        r"^longtake ([a-z][a-z-]*)(?![\w./:])", typed, re.MULTILINE
    ):
        assert command in known, command  # or a film: a word with a dot or a slash


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_python_runs(page, film_folder, monkeypatch, tmp_path):
    blocks = [code for language, code in BLOCK.findall(page.read_text()) if language == "python"]
    monkeypatch.setitem(registry.backends._targets, "test", "support.models:TestBackend")
    monkeypatch.setattr(
        assignment, "DEFAULT_MODELS", dict.fromkeys(assignment.DEFAULT_MODELS, "test/obliging")
    )
    monkeypatch.chdir(tmp_path)
    # a film that only commands use
    monkeypatch.setattr(film, "write_film", begin_film)
    if blocks:
        shutil.copy(FILMS[0].make(film_folder), tmp_path / "film.mp4")
    monkeypatch.syspath_prepend(tmp_path)
    for code in blocks:
        if named := re.match(r"# (\w+)\.py\n", code):
            (tmp_path / f"{named[1]}.py").write_text(code)
            # a later block may import it
            _forget_after_test(monkeypatch, named[1])
        exec(compile(code, str(page), "exec", dont_inherit=True), {})


def _forget_after_test(monkeypatch, module):
    """Let a module be imported during this test only."""
    monkeypatch.setitem(sys.modules, module, None)
    del sys.modules[module]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_modules_and_files_exist(page):
    text = page.read_text()
    for room, name in re.findall(r"\blongtake\.([a-z_]+)\.(\w+)", text):
        assert _is_there(f"longtake.{room}", name), f"{room}.{name}"
    # what went with a later version is named with the version that had it
    for file in re.findall(
        r"`((?:src|tests|benchmarks)/[\w/]+\.py)`(?! of (?:version|commit))", text
    ):
        assert "NAME" in file or _here(ROOT / file).is_file(), file


def _is_there(module, name):
    if importlib.util.find_spec(module) is None:
        return False
    return hasattr(importlib.import_module(module), name) or (
        importlib.util.find_spec(f"{module}.{name}") is not None
    )


def test_the_method_of_the_tutorial_is_found_in_the_working_folder(run, tmp_path, monkeypatch):
    page = (ROOT / "docs" / "tutorial.md").read_text()
    code = next(code for language, code in BLOCK.findall(page) if code.startswith("# my_module.py"))
    (tmp_path / "my_module.py").write_text(code)
    monkeypatch.setattr(film, "write_film", begin_film)
    film.write_world(film.make_world(seed=7, minutes=1), tmp_path / "world")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    _forget_after_test(monkeypatch, "my_module")
    typed = [
        line
        for line in page.splitlines()
        if line.startswith("longtake") and "my_module:Middle" in line
    ]
    assert len(typed) == 3
    for line in typed:
        exit_code, out, err = run(*shlex.split(line)[1:])
        assert exit_code == 0, err
        assert "not answered" not in out


def test_the_command_reference_is_current():
    # a process of its own: click keeps the help option of whoever asked for it first
    script = ROOT / "benchmarks" / "command_reference.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stderr}run: make reference"


def test_every_answer_of_the_faq_is_proved_by_a_test_that_exists():
    page = (ROOT / "docs" / "faq.md").read_text()
    proofs = re.findall(r'\[test\]\(\.\./(\S+) "(\w+)"\)\*$', page, re.MULTILINE)
    threads = set(re.findall(r"https://github.com/[^)]+/(?:issues|pull)/\d+", page))
    assert len(threads) >= 25
    assert len(proofs) == page.count("\n## ")
    for file, test in proofs:
        assert f"def {test}(" in (ROOT / file).read_text(), test


def benchmark(name):
    """A module of benchmarks/, which is no package."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_command_is_in_the_readme():
    readme = (ROOT / "README.md").read_text()
    assert [name for name in COMMANDS if f"`{name}`" not in readme] == []


def test_every_benchmark_can_be_described():
    assert all(isinstance(about(name), BenchmarkInfo) for name in benchmarks)


def fields_of(method, prefix=""):
    """The fields of a method and of its parts, as their pages write them."""
    for each in dataclasses.fields(method):
        value = getattr(method, each.name)
        if dataclasses.is_dataclass(value):
            yield from fields_of(value, f"{prefix}{each.name}.")
        else:
            values = value if isinstance(value, tuple) else (value,)
            yield f"{prefix}{each.name}", ", ".join(map(as_written, values))


def as_written(value):
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "unset"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


PAPERS = ["videoagent", "lvagent", "a4vl", "videodetective", "symphony"]


def of_paper(name):
    """The page of a method, and its fields by default and with preset=paper."""
    kind = registry.methods.get(name)
    default, paper = (
        dict(fields_of(configure(kind, {"preset": preset}))) for preset in (FULL, "paper")
    )
    return (ROOT / "docs" / "methods" / f"{name}.md").read_text(), default, paper


@pytest.mark.parametrize("name", PAPERS)
def test_pages_of_methods_compare_every_part_of_the_paper_with_ours(name):
    page, default, paper = of_paper(name)
    tables = re.findall(
        r"^\| paper \| ours \| same, differs or missing \|\n\|[-|]+\n((?:\|.*\n)+)",
        page,
        re.MULTILINE,
    )
    rows = [
        re.split(r" (?<!\\)\| ", row.strip("| ")) for table in tables for row in table.splitlines()
    ]
    assert len(rows) >= 10
    assert any(part == "prompts" and "our own words" in verdict for part, _, verdict in rows)
    sources = "".join(_sources().values())
    others = {*registry.methods.get(name).roles, "transformers"}
    for part, ours, verdict in rows:
        assert re.match(r"(same|differs|missing)\b|.* (is|are) the same", verdict), part
        # what ours is called is defined in the code, by the last word of its name, or is a role
        for code in re.findall(r"`([\w.]+)`", ours):
            last = code.split(".")[-1]
            defined = rf"^ *(?:def|class) {last}\b|^(?: {{4}})?{last} *[:=]"
            assert last in others or re.search(defined, sources, re.MULTILINE), code
            assert _is_named(code, default), code
        # what is said to be otherwise with preset=paper is a field that the preset changes
        for field in re.findall(r"\(`([\w.]+)`[^)]*in `preset=paper`", verdict):
            assert paper[field] != default[field], field


@cache
def _sources():
    return {path: path.read_text() for path in (ROOT / "src").rglob("*.py")}


def _is_named(code, fields):
    """Whether ``module.name`` is a field, a setting, or something in a module of that name."""
    owner, _, last = code.rpartition(".")
    if not re.fullmatch(r"[a-z_]+", owner) or code in fields or owner in {"perception", "index"}:
        return True
    modules = [text for path, text in _sources().items() if path.stem == owner]
    return any(re.search(rf"^(def|class) {last}\b", text, re.MULTILINE) for text in modules)


@pytest.mark.parametrize("name", PAPERS)
def test_pages_of_methods_name_every_field_as_it_is(name):
    page, default, paper = of_paper(name)
    table = page.partition("## Fields beside the paper")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([\w.]+)` \| (.+) \| (.+) \| (.*) \|$", table, re.MULTILINE)
    assert {field: (ours, with_preset) for field, _, ours, with_preset in rows} == {
        field: (ours, "" if paper[field] == ours else paper[field])
        for field, ours in default.items()
    }
