"""Builds the wheel, installs it in an empty environment outside the repository, and runs it there.

Dependencies are borrowed from the current environment, since they are not what is checked. The
installed longtake must come from the wheel and contain every file of the package's source.
"""

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
        options = ("--no-deps", "--no-build-isolation", "-w", outside)
        run(sys.executable, "-m", "pip", "wheel", *options, ROOT, cwd=outside)
        (wheel,) = outside.glob("longtake-*.whl")
        packed = zipfile.ZipFile(wheel).namelist()
        source = ROOT / "src"
        files = [path for path in source.rglob("*") if path.is_file()]
        names = {path.relative_to(source).as_posix() for path in files}
        missing = [name for name in names.difference(packed) if "__pycache__" not in name]
        if missing:
            sys.exit(f"not in the wheel: {sorted(missing)}")
        # a pip of its own would take longer than all of the rest
        venv.create(outside / "venv", with_pip=False)
        python = outside / "venv" / "bin" / "python"
        pip = (sys.executable, "-m", "pip", "--python", python)
        run(*pip, "install", "--no-deps", "--no-index", wheel, cwd=outside)
        where = "import sysconfig; print(sysconfig.get_path('purelib'))"
        site = Path(run(python, "-c", where, cwd=outside))
        (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
        origin = run(python, "-c", "import longtake; print(longtake.__file__)", cwd=outside)
        if not origin.startswith(str(outside)):
            sys.exit(f"longtake was imported from {origin}, not from the wheel")
        command = outside / "venv" / "bin" / "longtake"
        print(run(command, "--version", cwd=outside), "runs from its wheel")
        run(command, "doctor", cwd=outside)
        # joined by its entry point
        run(command, "lab", "--help", cwd=outside)


if __name__ == "__main__":
    main()
