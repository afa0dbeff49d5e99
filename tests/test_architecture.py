"""The layers of the package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
LINT = "from importlinter.cli import lint_imports; exit(lint_imports(no_cache=True))"


def test_imports_follow_the_layers():
    # in a process of its own: import-linter disables every logger of the one that it runs in
    done = subprocess.run(
        [sys.executable, "-c", LINT],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": "src"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
