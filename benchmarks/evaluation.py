"""Speed of the evaluation core with a model that costs nothing: 2,000 questions on lab captions.

    python benchmarks/evaluation.py [--method uniform] [--worlds 40] [--questions 50] [--workers 2]

Prints questions per second, and the resident memory of all processes after each fifth of the run.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def family(parent: int) -> list[int]:
    """A process and all its descendants."""
    children = [int(pid) for pid in _words(f"/proc/{parent}/task/{parent}/children")]
    return [parent, *(pid for child in children for pid in family(child))]


def resident(parent: int) -> float:
    """Resident megabytes of a process and all its descendants."""
    pages = 0
    for pid in family(parent):
        words = _words(f"/proc/{pid}/statm")
        pages += int(words[1]) if words else 0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _words(path: str) -> list[str]:
    try:
        return Path(path).read_text().split()
    except OSError:  # the process has just ended
        return []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--method", default="uniform")
    parser.add_argument("--worlds", type=int, default=40)
    parser.add_argument("--questions", type=int, default=50)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        command = [
            sys.executable,
            "-m",
            "longtake",
            "eval",
            "lab-captions",
            "--of",
            f"seeds=0-{options.worlds - 1}",
            "--of",
            "minutes=30",
            "--of",
            f"questions={options.questions}",
            "--method",
            options.method,
            "--model",
            "lab/acuity=0.8",
            "--workers",
            str(options.workers),
            "--out",
            str(run),
            "--json",
        ]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        total, began, marks = options.worlds * options.questions, None, []
        while process.poll() is None:
            file = run / "results.jsonl"
            done = file.read_bytes().count(b"\n") if file.exists() else 0
            if done and began is None:
                began, first = time.perf_counter(), done
            if done >= total * (len(marks) + 1) / 5:
                marks.append((done, time.perf_counter(), resident(process.pid)))
                print(f"{done:>6} questions  {marks[-1][2]:7.0f} MB", flush=True)
            time.sleep(0.02)
        done, ended = marks[-1][:2]
        pace = (done - first) / (ended - began)
        print(f"{pace:.0f} questions per second with {options.workers} workers, {options.method}")
        sys.exit(process.returncode)


if __name__ == "__main__":
    main()
