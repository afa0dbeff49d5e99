"""Builds the wheel and the sdist, and installs each into clean environments of several Pythons.

    python tests/release_check.py python3.11 python3.12 python3.13

Unlike ``make wheel-check``, dependencies are downloaded: this is what ``pip install`` does. In each
environment a film is made, and a question is asked and answered by a simulated model.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent


def run(*command: object, cwd: Path, **more: str) -> str:
    """Standard output of a command that must succeed."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [*map(str, command)],
        cwd=cwd,
        env={**kept, **more},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


def check(python: str, package: Path, folder: Path) -> None:
    """Install a package into an empty environment and use it."""
    began = time.monotonic()
    run(python, "-m", "venv", folder, cwd=folder.parent)
    pip = (folder / "bin" / "python", "-m", "pip", "--disable-pip-version-check")
    run(*pip, "install", "--quiet", package, cwd=folder)
    seconds = time.monotonic() - began
    longtake, own = folder / "bin" / "longtake", {"LONGTAKE_CACHE": str(folder / "cache")}
    made = run(longtake, "--version", cwd=folder, **own)
    world = ("--minutes", 1, "--seed", 7, "--out", "world")
    run(longtake, "lab", "make", *world, cwd=folder, **own)
    asked = ("ask", "world/film.mp4", "What happens?", "--model", "lab/acuity=1")
    run(longtake, *asked, cwd=folder, **own)
    run(longtake, "doctor", cwd=folder, **own)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e9
    print(f"{made} from {package.name} with {python}: {seconds:.0f} s, {size:.1f} GB, answers")


def main() -> None:
    """Check every package with every Python."""
    pythons = sys.argv[1:] or [sys.executable]
    with tempfile.TemporaryDirectory(prefix="release-") as name:
        outside = Path(name)
        run(sys.executable, "-m", "venv", outside / "tools", cwd=outside)
        tool = outside / "tools" / "bin" / "python"
        run(tool, "-m", "pip", "--disable-pip-version-check", "install", "-q", "build", cwd=outside)
        run(tool, "-m", "build", "--outdir", outside / "dist", ROOT, cwd=outside)
        packages = sorted((outside / "dist").iterdir(), reverse=True)
        for number, python in enumerate(pythons):
            # the sdist builds the same wheel, so one Python is enough for it
            for package in packages if number == 0 else packages[-1:]:
                check(python, package, outside / f"venv-{number}")
                shutil.rmtree(outside / f"venv-{number}")


if __name__ == "__main__":
    main()
