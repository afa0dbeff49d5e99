"""The structure of the package: import circles, names; make lint checks its layers."""

import ast
import os
import subprocess
import sys
from collections import Counter
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from support.checkout import reads_the_source

ROOT = Path(__file__).parent.parent
pytestmark = reads_the_source


def test_no_import_circles():
    # late imports and those for type checkers count, too: a circle hides where things belong
    imports = {name: _imported(tree) for name, tree in _modules().items()}
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def test_public_class_names_are_unique():
    names = Counter(
        node.name
        for tree in _modules().values()
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, times in names.items() if times > 1] == []


@cache
def _modules() -> dict[str, ast.Module]:
    # not when this file is imported, which every process of a test run does
    files = (ROOT / "src").rglob("*.py")
    return {_module_name(path): ast.parse(path.read_text()) for path in files}


def _module_name(path: Path) -> str:
    parts = path.relative_to(ROOT / "src").with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def _imported(tree: ast.Module) -> set[str]:
    found, left = set(), [tree]
    while left:
        node = left.pop()
        # expressions import nothing
        within = ast.iter_child_nodes(node)
        left += [each for each in within if isinstance(each, ast.stmt | ast.excepthandler)]
        if isinstance(node, ast.ImportFrom) and node.module:
            # `from package import module` or `from module import name`
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= names & _modules().keys() or {node.module}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found


def test_the_product_works_without_what_measures_it():
    # that nothing imports it is a contract of make lint; here it is not there
    code = (
        "import sys; sys.modules['longtake_bench'] = None\n"
        "from longtake import cli\n"
        "assert cli.run(['methods']) == 0\n"
        "assert cli.run(['eval', '--list']) == 2\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": "src"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "videoagent" in done.stdout
    assert "longtake_bench" in done.stderr
