"""Builds the wheel and the sdist, and installs each into clean environments of several Pythons.

    python tests/release_check.py python3.11 python3.12 python3.13 [--suite tests/unit]

The packages' metadata, licence files and sizes are checked first. Unlike ``make wheel-check``,
dependencies are downloaded: this is what ``pip install`` does. In each environment a film is made,
and a question is asked and answered by a simulated model; then the suite runs there, against the
installed wheel. In the first, the licences of everything installed are listed, and pip-audit looks
for known vulnerabilities.
"""

import argparse
import email
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
MOST_BYTES = 10_000_000
"""Four times the size of the sdist: more than this is a file that got in by mistake."""


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


def problems(package: Path) -> list[str]:
    """What is wrong with a wheel or an sdist, by its metadata, licence files and size."""
    if package.suffix == ".whl":
        with zipfile.ZipFile(package) as archive:
            names = archive.namelist()
            stated = next(name for name in names if name.endswith(".dist-info/METADATA"))
            metadata = email.message_from_bytes(archive.read(stated))
        expected = ("/licenses/LICENSE", "perception/data/NOTICE", "longtake/py.typed")
    else:
        with tarfile.open(package) as archive:
            names = archive.getnames()
            stated = next(name for name in names if name.endswith("/PKG-INFO"))
            metadata = email.message_from_binary_file(archive.extractfile(stated))
        expected = ("/LICENSE", "perception/data/NOTICE", "/README.md", "/CHANGELOG.md")
    wanted = {
        "Name": PROJECT["name"],
        "License-Expression": PROJECT["license"],
        "Summary": PROJECT["description"],
    }
    found = [
        f"{field} is {metadata[field]!r}, not {value!r}"
        for field, value in wanted.items()
        if metadata[field] != value
    ]
    if metadata["Version"] not in package.name:
        found.append(f"its metadata say version {metadata['Version']}")
    for ending in expected:
        if not any(name.endswith(ending) for name in names):
            found.append(f"{ending} is missing")
    if package.stat().st_size > MOST_BYTES:
        found.append(f"{package.stat().st_size:,} bytes are more than {MOST_BYTES:,}")
    return found


def licence(distribution: importlib.metadata.Distribution) -> str:
    """The licence that a package states, or the names of the licence files that it ships."""
    metadata = distribution.metadata
    classified = [
        value.rpartition(" :: ")[2]
        for value in metadata.get_all("Classifier") or ()
        if value.startswith("License :: ")
    ]
    # some packages have the whole text of the licence in this field
    written = (metadata.get("License") or "").strip().partition("\n")[0]
    stated = metadata.get("License-Expression") or ", ".join(classified) or written
    if stated and stated != "UNKNOWN":
        return stated
    files = [
        file.name for file in distribution.files or () if file.name.upper().startswith("LICEN")
    ]
    return f"not stated; see {', '.join(files)}" if files else "not stated"


def list_licences(site: Path) -> None:
    """Print what is installed in a folder, with its licence."""
    found = importlib.metadata.distributions(path=[str(site)])
    for distribution in sorted(found, key=lambda each: each.name.lower()):
        print(f"  {distribution.name} {distribution.version}: {licence(distribution)}")


def audited(report: str) -> tuple[list[str], int, int]:
    """The vulnerabilities in a report of pip-audit; how many packages it knew and skipped."""
    packages = json.loads(report)["dependencies"]
    # it calls an environment free of vulnerabilities even if it could look up nothing in it
    skipped = sum("skip_reason" in package for package in packages)
    vulnerable = [
        f"{package['name']} {package['version']}: {flaw['id']}, fixed in "
        + (", ".join(flaw["fix_versions"]) or "no version")
        for package in packages
        for flaw in package.get("vulns", ())
    ]
    return vulnerable, len(packages) - skipped, skipped


def audit(tool: Path, site: Path) -> None:
    """Look for known vulnerabilities; where the database is out of reach, say so and go on."""
    command = (tool, "-m", "pip_audit", "--path", site, "--format", "json")
    done = subprocess.run(
        [*map(str, command), "--progress-spinner", "off"],
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        vulnerable, known, skipped = audited(done.stdout)
    except ValueError:
        reason = (done.stderr.strip().splitlines() or ["no output"])[-1]
        print(f"NOT AUDITED: pip-audit could not reach its database ({reason[:200]})")
        return
    if vulnerable:
        sys.exit("\n".join(["known vulnerabilities:", *vulnerable]))
    if not known:
        print(f"NOT AUDITED: pip-audit's database knew none of the {skipped} packages")
    else:
        print(f"no known vulnerabilities in {known} packages; {skipped} could not be looked up")


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


EXTRAS = "test,speech,report,serve,mcp,otel,parquet"
SUITE = "tests"
"""What runs from the wheel; tests that read the source skip there."""


def run_suite(python: str, wheel: Path, folder: Path, suite: str) -> None:
    """Run tests in a copy of the repository without its source, against the installed wheel."""
    own = folder / "bin" / "python"
    pip = (own, "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
    run(*pip, "--constraint", ROOT / "constraints.txt", f"{wheel}[{EXTRAS}]", cwd=folder)
    copy = folder / "repository"
    files = run("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=ROOT)
    for name in files.splitlines():
        if not name.startswith("src/") and (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, copy / name)
    where = run(own, "-c", "import longtake; print(longtake.__file__)", cwd=copy)
    if not where.startswith(str(folder)):
        sys.exit(f"longtake was imported from {where}, not from the wheel")
    options = ("-m", "not campaign", "-n", "2", "--dist", "loadfile")
    printed = run(own, "-m", "pytest", *suite.split(), *options, cwd=copy)
    print(f"{suite} with {python}: {printed.splitlines()[-1]}")


def main() -> None:
    """Check every package with every Python."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pythons", nargs="*", default=[sys.executable])
    parser.add_argument("--suite", default=SUITE, help="folders and files of tests; empty: none")
    options = parser.parse_args()
    pythons = options.pythons
    if missing := [python for python in pythons if shutil.which(python) is None]:
        sys.exit(f'not installed: {", ".join(missing)}; name others: PYTHONS="…"')
    with tempfile.TemporaryDirectory(prefix="release-") as name:
        outside = Path(name)
        run(sys.executable, "-m", "venv", outside / "tools", cwd=outside)
        tool = outside / "tools" / "bin" / "python"
        needed = PROJECT["optional-dependencies"]["release"]
        pip = (tool, "-m", "pip", "--disable-pip-version-check", "install", "-q")
        run(*pip, *needed, cwd=outside)
        run(tool, "-m", "build", "--outdir", outside / "dist", ROOT, cwd=outside)
        packages = sorted((outside / "dist").iterdir(), reverse=True)
        run(tool, "-m", "twine", "check", "--strict", *packages, cwd=outside)
        for package in packages:
            if found := problems(package):
                sys.exit("\n".join([f"{package.name}:", *found]))
            print(f"{package.name}: {package.stat().st_size / 1e6:.1f} MB, metadata and licence")
        for number, python in enumerate(pythons):
            folder = outside / f"venv-{number}"
            # the sdist builds the same wheel, so one Python is enough for it
            for package in packages if number == 0 else packages[-1:]:
                if folder.exists():
                    shutil.rmtree(folder)
                check(python, package, folder)
            if number == 0:
                (site,) = (folder / "lib").glob("python*/site-packages")
                list_licences(site)
                audit(tool, site)
            if options.suite:
                run_suite(python, packages[-1], folder, options.suite)
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
