"""Runs tests as a service manager, a scheduler or a background job would start them.

    python tests/hostile.py -m "processes and not campaign"

Interrupts, hang-ups and broken pipes are ignored, standard input is closed, there is no terminal,
no home and no UTF-8 locale, clocks show an odd time zone, and the checkout lies in a folder whose
name has a space and a letter beyond ASCII. The arguments are pytest's.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LEFT_OUT = (".*_cache", ".git", ".hypothesis", ".venv", ".work", "__pycache__", "build", "dist")
IGNORED = (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE)
UNSET = ("HOME", "LC_ALL", "LC_CTYPE")
ENVIRONMENT = {"TERM": "dumb", "TZ": "Pacific/Chatham", "LANG": "C"}


def prepare() -> None:
    """In the child, before pytest starts."""
    for each in IGNORED:
        signal.signal(each, signal.SIG_IGN)
    os.close(0)


def main() -> int:
    """Run pytest on a copy of the checkout; return its exit code."""
    with tempfile.TemporaryDirectory(prefix="longtake ö ") as folder:
        checkout = Path(folder) / "checkout"
        shutil.copytree(ROOT, checkout, symlinks=True, ignore=shutil.ignore_patterns(*LEFT_OUT))
        kept = {name: value for name, value in os.environ.items() if name not in UNSET}
        return subprocess.run(
            [sys.executable, "-m", "pytest", f"--basetemp={folder}/temporary", *sys.argv[1:]],
            cwd=checkout,
            # before the source of the editable install
            env={**kept, **ENVIRONMENT, "PYTHONPATH": str(checkout / "src")},
            start_new_session=True,
            restore_signals=False,
            preexec_fn=prepare,
        ).returncode


if __name__ == "__main__":
    sys.exit(main())
