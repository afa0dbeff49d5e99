"""Builds the wheel, installs it in an empty environment outside the repository, and runs it there.

Dependencies are lent by the environment this runs in: they are not what is checked. The installed longtake
must come from the wheel, and must carry every file that lies in the package's source.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent


def run(*command: object, cwd: Path) -> str:
    """Standard output of a command that must succeed."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


def main() -> None:
    """Build, install, run, compare."""
    with tempfile.TemporaryDirectory() as folder:
        outside = Path(folder)
        run(
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--no-deps",
            "--no-build-isolation",
            "-w",
            outside,
            ROOT,
            cwd=outside,
        )
        (wheel,) = outside.glob("longtake-*.whl")
        packed = {
            name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("longtake/")
        }
        source = ROOT / "src"
        there = {
            p.relative_to(source).as_posix()
            for p in (source / "longtake").rglob("*")
            if p.is_file()
        }
        if missing := {name for name in there - packed if "__pycache__" not in name}:
            sys.exit(f"not in the wheel: {sorted(missing)}")
        venv.create(outside / "venv", with_pip=True)
        python = outside / "venv" / "bin" / "python"
        run(python, "-m", "pip", "install", "--no-deps", "--no-index", wheel, cwd=outside)
        site = Path(
            run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=outside)
        )
        (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
        origin = run(python, "-c", "import longtake; print(longtake.__file__)", cwd=outside)
        if not origin.startswith(str(outside)):
            sys.exit(f"longtake was imported from {origin}, not from the wheel")
        print(
            run(outside / "venv" / "bin" / "longtake", "--version", cwd=outside),
            "runs from its wheel",
        )
        run(outside / "venv" / "bin" / "longtake", "doctor", cwd=outside)


if __name__ == "__main__":
    main()
