"""The package and ``--help`` start without loading anything heavy."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.processes

HEAVY = ("av", "numpy", "PIL", "pydantic", "onnxruntime", "torch", "scipy", "rich", "httpx")


def python(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def best_of(runs, code):
    """The least processor time of several runs: what else the machine does is not counted."""
    timed = f"import time; t = time.process_time()\n{code}\nprint(time.process_time() - t)"
    return min(float(python(timed).splitlines()[-1]) for _ in range(runs))


def test_importing_loads_no_runtime():
    loaded = python("import sys, longtake; print(*sys.modules)").split()
    assert not set(HEAVY) & set(loaded)


def test_importing_is_instant():
    assert best_of(5, "import longtake") < 0.3


def test_help_is_instant_and_loads_no_runtime():
    code = (
        "import contextlib, io, sys\n"
        "from longtake import cli\n"
        "with contextlib.redirect_stdout(io.StringIO()): assert cli.run(['--help']) == 0"
    )
    assert best_of(5, code) < 0.5
    loaded = python(code + "\nprint(*sys.modules)").split()
    assert not set(HEAVY) & set(loaded)


def test_standard_streams_may_be_closed():
    command = [sys.executable, "-m", "longtake", "extract", "no.mp4", "--schema", "-"]
    closed = ["sh", "-c", 'exec "$@" <&- >&-', "sh", *command]
    done = subprocess.run(closed, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert "malformed JSON" in done.stderr
