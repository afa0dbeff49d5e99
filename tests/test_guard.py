"""The check that a test leaves the process as it found it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

LEAVES = {
    "logger": "logging.getLogger('theirs').disabled = True",
    "handler": "logging.getLogger('theirs').addHandler(logging.NullHandler())",
    "environment": "os.environ['LEFT'] = '1'",
    "folder": "os.chdir('/')",
    "signal": "signal.signal(signal.SIGTERM, signal.SIG_IGN)",
    "hook": "sys.addaudithook(lambda *_: None)",
    "function": "socket.getaddrinfo = lambda *_: []",
    "registry": "registry.methods.add('mine', 'a:b')",
    "path": "sys.path.append('/')",
    "nothing": "logging.getLogger('new').disabled = True",
    "restored": "monkeypatch.setenv('LEFT', '2')",
}


@pytest.fixture(scope="module")
def errors(tmp_path_factory):
    """What is reported of tests that leave things behind, in a process of their own."""
    folder = tmp_path_factory.mktemp("leaving")
    lines = ["import logging, os, signal, socket, sys", "from longtake import registry"]
    lines.append("logging.getLogger('theirs')")
    for name, statement in LEAVES.items():
        lines.append(f"def test_{name}(monkeypatch):\n    {statement}\n")
    (folder / "test_leaving.py").write_text("\n".join(lines))
    tests = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "support.guard", "-rE", "--tb=no", str(folder)],
        env={**os.environ, "PYTHONPATH": f"{tests}:{tests.parent / 'src'}"},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout


@pytest.mark.parametrize("name", LEAVES)
def test_a_test_that_leaves_something_behind_is_named(errors, name):
    named = f"test_leaving.py::test_{name} " in errors
    assert named == (name not in ("nothing", "restored")), errors
