"""Attacks in processes of their own, and what they find; ``make attack`` runs this as a program.

``python tests/attack/campaign.py --minutes 60 [--seed N]`` attacks with fresh seeds until the time
is up. What fails is written to ``tests/attack/crashes/``, where the suite tries it from then on.
"""

import argparse
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
CRASHES = HERE / "crashes"
SECONDS = 60.0
"""The longest that one film may take."""
GUIDED = (
    *("reply", "loose JSON", "body", "trace", "configuration", "script", "results"),
    *("subtitles.srt", "subtitles.vtt", "subtitles.ass", "egoschema", "videomme"),
)
"""What is fuzzed with coverage: what parses by itself, rather than by a library."""
GUIDED_SECONDS = 30.0
"""Seconds for one of them at a time."""
BATCH = 200
"""Films used by one process."""
REQUESTS = 400
"""Requests in one run of the property test over all routes (its ``max_examples``)."""


@dataclass(frozen=True)
class Finding:
    """A case that ended in anything but a result or an error in our own words."""

    case: str
    why: str


def exercise_films(folder: Path, names: Sequence[str]) -> tuple[int, int, list[Finding]]:
    """Use films in a process of its own; gives cases, refusals and findings.

    A crash ends the process, so the films after it are used in another one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    line = [sys.executable, str(HERE / "exercise.py"), str(folder), str(SECONDS), *names]
    done = subprocess.run(line, capture_output=True, text=True, env=_environment())
    count, refused, case, findings = 0, 0, "", list[Finding]()
    for text in done.stdout.splitlines():
        told = json.loads(text)
        if "case" in told:
            count, case = count + 1, told["case"]
        refused += "refused" in told
        if "failure" in told:
            findings.append(Finding(case, told["failure"]))
    if done.returncode:
        findings.append(Finding(case, f"exit {done.returncode}: {done.stderr[-3000:]}"))
    return count, refused, findings


def exercise_seeds(folder: Path, first: int, last: int) -> tuple[int, int, list[Finding]]:
    """Films of a range of seeds, going on after a crash."""
    count, refused, findings = 0, 0, list[Finding]()
    while first < last:
        made, said_no, found = exercise_films(folder, [f"{first}-{last}"])
        count, refused, first = count + made, refused + said_no, first + max(made, 1)
        findings += found
    return count, refused, findings


def _environment() -> dict[str, str]:
    paths = [str(HERE.parent), str(HERE.parent.parent / "src")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def keep(finding: Finding) -> Path:
    """Copy a film that failed to the crashes, where a test tries it from then on."""
    CRASHES.mkdir(exist_ok=True)
    source = Path(finding.case)
    target = CRASHES / source.name
    shutil.copyfile(source, target)
    target.with_name(f"{source.name}.txt").write_text(finding.why)
    return target


def attack_films(folder: Path, seed: int, until: float) -> tuple[int, int, int]:
    """Films until the time is up; gives cases, refusals and findings."""
    total, refusals, findings = 0, 0, 0
    while time.monotonic() < until:
        count, refused, found = exercise_seeds(folder, seed, seed + BATCH)
        for finding in found:
            print(f"found: {keep(finding)}\n{finding.why[-800:]}", flush=True)
        for case in [*folder.glob("damaged*"), *folder.glob("odd*")]:
            case.unlink()  # the sound films that they are made from stay
        total, refusals, findings = total + count, refusals + refused, findings + len(found)
        seed += BATCH
    return total, refusals, findings


def attack_with(script: str, seed: int, until: float, *more: str) -> tuple[int, int]:
    """A program that attacks until the time is up; gives cases and findings."""
    seconds = max(1.0, until - time.monotonic())
    line = [sys.executable, str(HERE / script), str(seed), str(seconds), *more]
    done = subprocess.run(line, capture_output=True, text=True, env=_environment())
    print(done.stdout[-4000:], end="")
    told = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {}
    if not told:
        print(f"found: the process ended with {done.returncode}\n{done.stderr[-3000:]}")
    return told.get("cases", 0), told.get("findings", 1)


def attack_guided(seed: int, until: float) -> tuple[int, int]:
    """Coverage-guided texts, one target after another; gives runs of the fuzzer and findings."""
    if importlib.util.find_spec("atheris") is None:
        print("atheris is not installed: no coverage-guided texts")
        return 0, 0
    cases, findings = 0, 0
    while time.monotonic() < until:
        for name in GUIDED:
            seconds = int(min(GUIDED_SECONDS, until - time.monotonic()))
            if seconds < 1:
                break
            number = str(seed % 2**31)
            line = [sys.executable, str(HERE / "guided.py"), name, str(seconds), number]
            done = subprocess.run(
                [*line, str(CRASHES)], capture_output=True, text=True, env=_environment()
            )
            told = re.findall(r"#(\d+)\s+DONE", done.stderr)
            cases, seed = cases + int(told[-1] if told else 0), seed + 1
            if done.returncode:
                findings += 1
                print(f"found: {name}\n{done.stdout[-1500:]}{done.stderr[-1500:]}", flush=True)
    return cases, findings


def attack_properties(seed: int, until: float) -> tuple[int, int]:
    """Fresh cases of every property test, hostile requests to each route among them.

    Gives the number of requests and of findings.
    """
    environment = {**_environment(), "ATTACK": "1"}
    requests, findings = 0, 0
    while time.monotonic() < until:
        line = [sys.executable, "-m", "pytest", "--quiet", "-m", "hypothesis", str(HERE.parent)]
        line += [f"--hypothesis-seed={seed}"]
        done = subprocess.run(line, capture_output=True, text=True, env=environment)
        requests, seed = requests + REQUESTS, seed + 1
        if done.returncode:
            findings += 1
            print(f"found: seed {seed - 1}\n{done.stdout[-3000:]}", flush=True)
    return requests, findings


def main() -> int:
    """Attack with films, texts, responses and requests; exit code 1 if anything was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    began, seed = time.monotonic(), options.seed * 1_000_000
    print(f"seed {options.seed}, {options.minutes:g} minutes", flush=True)
    end = began + 60 * options.minutes
    with tempfile.TemporaryDirectory(prefix="longtake-attack-") as folder:
        films = attack_films(Path(folder), seed, began + 0.5 * (end - began))
    texts = attack_with("texts.py", seed, began + 0.62 * (end - began), str(CRASHES))
    guided = attack_guided(options.seed, began + 0.8 * (end - began))
    client = attack_with("responses.py", seed, began + 0.88 * (end - began))
    server = attack_properties(options.seed, end)
    print(f"films: {films[0]} cases, {films[1]} refused in words, {films[2]} findings")
    print(f"texts: {texts[0]} cases, {texts[1]} findings")
    print(f"guided texts: {guided[0]} cases, {guided[1]} findings")
    print(f"responses: {client[0]} cases, {client[1]} findings")
    print(f"requests: {server[0]} cases; with other properties {server[1]} findings")
    return 1 if films[2] or texts[1] or guided[1] or client[1] or server[1] else 0


if __name__ == "__main__":
    sys.exit(main())
