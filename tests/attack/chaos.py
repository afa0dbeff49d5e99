"""Indexing, evaluating and serving while everything goes wrong; ``make chaos`` runs this.

``python tests/attack/chaos.py --minutes 60 [--seed N]``: ``index``, ``eval`` and ``serve`` are
killed, stopped, given full disks, jumping clocks and a slow and failing model, and started again
until they are done. A server also meets crowds without a token, a second server on its cache, and
hostile asks.
What they leave must equal what an undisturbed run leaves.
"""

import argparse
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent / "src"), str(HERE)]

from chaos_serve import answers_of, disturbed_answers  # noqa: E402 - needs the path
from films import Recipe, x264  # noqa: E402

from longtake.index.film import Film  # noqa: E402
from longtake.index.store import Store  # noqa: E402
from longtake.server.app import serving  # noqa: E402
from longtake_bench.lab.model import parse  # noqa: E402
from longtake_bench.simulated_server import SimulatedService  # noqa: E402

FILM = Recipe(
    "film.mp4", x264(fps=Fraction(5), gop=10, options={"preset": "ultrafast"}), count=1500
)
WORLD = ("--of", "seeds=3-4", "--of", "minutes=5", "--of", "questions=10")
FAKETIME = ("/usr/lib/x86_64-linux-gnu/faketime", "/usr/lib/aarch64-linux-gnu/faketime")
JUMPS = ("-400d", "+3d", "+20y", "-0 x4")
"""Clocks of the past, of the future, and one that runs four times as fast."""
ROUNDS = 40
"""Disturbances after which a task is left to finish undisturbed, so that there is an end."""
SIGNALS = {"kill": signal.SIGKILL, "terminate": signal.SIGTERM, "interrupt": signal.SIGINT}
PATIENCE = 240.0
"""Seconds that an undisturbed start may take."""


class Moody(SimulatedService):
    """A model that is sound, slow or failing; the mood changes between two starts."""

    mood = "sound"

    def fails(self, number: int) -> int | None:
        """Slow and failing, as the mood is."""
        time.sleep(0.3 if Moody.mood == "slow" else 0.05)
        failing = Moody.mood == "failing" and random.random() < 0.3
        return random.choice([429, 500, 503]) if failing else None


@dataclass
class Tally:
    """What was done to the tasks."""

    done: Counter[str] = field(default_factory=Counter)
    compared: int = 0
    differences: list[str] = field(default_factory=list)


class Chaos:
    """Disturbs commands, by one seeded generator."""

    def __init__(self, seed: int, folder: Path, clock: str) -> None:
        self.chance = random.Random(seed)
        self.folder, self.clock = folder, clock
        self.disk: Path | None = None
        """A small disk of its own for the cache, if it may be mounted."""
        self.tally = Tally()

    def start(self, line: list[str], cache: Path, **more: Any) -> subprocess.Popen[bytes]:
        """A command with a cache of its own."""
        home = {"HOME": self.folder, "XDG_CONFIG_HOME": self.folder / "config"}
        own = {"LONGTAKE_CACHE": cache, **home, **more.pop("environment", {})}
        paths = os.pathsep.join(sys.path[:2])
        environment = {**os.environ, "PYTHONPATH": paths} | {k: str(v) for k, v in own.items()}
        line = [sys.executable, "-m", "longtake", *line]
        pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, **more}
        return subprocess.Popen(line, env=environment, cwd=self.folder, **pipes)

    def finish(self, line: list[str], cache: Path) -> None:
        """Run a command undisturbed; it must succeed."""
        self.calm_down()
        process = self.start(line, cache)
        _, told = process.communicate(timeout=PATIENCE)
        if process.returncode not in (0, 3):
            raise AssertionError(f"{line}: exit {process.returncode}\n{told.decode()[-2000:]}")

    def calm_down(self) -> None:
        """Nothing is wrong with the model from now on."""
        Moody.mood = "sound"

    def trouble(self, *others: str) -> tuple[str, dict[str, Any]]:
        """What goes wrong next, and what a process is started with for it."""
        Moody.mood = self.chance.choice(["sound", "sound", "slow", "failing"])
        kinds = ["kill", "kill", "terminate", "interrupt", "stop", "disk", "nothing", *others]
        kinds += ["clock"] if self.clock else []
        kinds += ["full disk"] if self.disk else []
        kind = self.chance.choice(kinds)
        self.tally.done[kind] += 1
        self.tally.done[f"{Moody.mood} model"] += 1
        more: dict[str, Any] = {}
        if kind == "disk":
            most = self.chance.choice([0, 1000, 20_000, 300_000])
            more["preexec_fn"] = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        if kind == "crowd":
            more["preexec_fn"] = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
        if kind == "clock":
            jump = self.chance.choice(JUMPS)
            # clocks that jump are wall clocks; waits on a faked monotonic one never end
            monotonic = {"FAKETIME_DONT_FAKE_MONOTONIC": "1"}
            more["environment"] = {"LD_PRELOAD": self.clock, "FAKETIME": jump, **monotonic}
        return kind, more

    def strike(self, process: subprocess.Popen[bytes], kind: str) -> None:
        """Send a signal after a while, if that is what goes wrong."""
        if kind not in (*SIGNALS, "stop", "full disk"):
            return
        time.sleep(self.chance.uniform(0.3, 4.0))
        if kind == "full disk":
            self.fill_disk(self.chance.uniform(0.2, 2.0))
        elif kind == "stop":
            process.send_signal(signal.SIGSTOP)
            time.sleep(self.chance.uniform(0.2, 2.0))
            process.send_signal(signal.SIGCONT)
        else:
            process.send_signal(SIGNALS[kind])

    def fill_disk(self, seconds: float) -> None:
        """Leave no byte on the small disk for a while."""
        assert self.disk is not None
        filler = self.disk / "filler"
        with suppress(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(b"\0" * 2**20)
        time.sleep(seconds)
        filler.unlink()

    def listen(self, kind: str, told: bytes) -> None:
        """An end by a signal may leave a traceback of an import; nothing else may."""
        if b"internal error" in told:
            self.tally.differences.append(f"{kind}: {told.decode()[-1500:]}")

    def disturb(self, line: list[str], cache: Path) -> bool:
        """Run a command with one disturbance; whether it was done nevertheless."""
        kind, more = self.trouble()
        process = self.start(line, cache, **more)
        self.strike(process, kind)
        _, told = process.communicate(timeout=PATIENCE)
        self.listen(kind, told)
        return process.returncode in (0, 3)

    def until_done(self, line: list[str], again: list[str], cache: Path) -> None:
        """Disturb a command until it was done, then finish what is left."""
        for _ in range(self.chance.randrange(3, ROUNDS)):
            if self.disturb(line, cache):
                break
        self.finish(again, cache)

    def compare(self, what: str, one: Mapping[str, Any], two: Mapping[str, Any]) -> None:
        """Note where two results differ."""
        self.tally.compared += 1
        for name in sorted(one.keys() | two.keys()):
            if name not in one or name not in two or not _same(one[name], two[name]):
                told = f"{one.get(name)!s:.300} became {two.get(name)!s:.300}"
                self.tally.differences.append(f"{what}: {name}: {told}")


def _same(one: Any, two: Any) -> bool:
    return np.array_equal(one, two) if isinstance(one, np.ndarray) else bool(one == two)


def layers(film: Path, cache: Path) -> dict[str, Any]:
    """Every finished layer of a film, and its subtitles."""
    opened = Film(film, Store(cache))
    folder = opened.folder.path / "layers"
    stored = {str(file.relative_to(folder)): np.load(file) for file in folder.glob("*/*.npy")}
    leftovers = [str(path) for path in (*folder.glob(".*"), *folder.parent.glob("parts/*/*"))]
    return {**stored, "subtitles": opened.words.subtitles.lines(), "leftovers": leftovers}


def results(run: Path) -> dict[str, Any]:
    """The last result of every question, without what differs from run to run."""
    rows: dict[str, Any] = {}
    for line in (run / "results.jsonl").read_text().splitlines():
        row = json.loads(line)
        kept = ("status", "choice", "text", "confidence", "evidence")
        rows[row["id"]] = {name: row.get(name) for name in kept}
    return rows


def rounds(chaos: Chaos, url: str, until: float) -> None:
    """Index, evaluate and serve in turn until the time is up."""
    folder = chaos.folder
    film = FILM.make(folder)
    film.with_suffix(".srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nHello\n")
    index = ["index", str(film), "--only", "subtitles", "--only", "frames", "--json"]
    evaluation = ["eval", "lab-captions", *WORLD, "--method", "videoagent", "--workers", "2"]
    evaluation += ["--model", f"{url}#lab/acuity=0.9", "--json", "--out"]
    serve = ["serve", "--films", str(film), "--port", "0", "--json"]
    serve += ["--model", f"{url}#lab/acuity=0.9"]
    calm = folder / "calm"
    chaos.finish(index, calm)
    sound_layers = layers(film, calm)
    chaos.finish([*evaluation, str(folder / "calm-run")], calm)
    sound_results = results(folder / "calm-run")
    sound_answers = answers_of(chaos, serve, calm)
    models = calm / "models"
    for number in range(10**9):
        if time.monotonic() > until:
            return
        cache, run = (chaos.disk or folder) / f"cache{number}", folder / f"run{number}"
        # preparing the built-in models takes seconds and is not what is tested
        shutil.copytree(models, cache / "models")
        chaos.until_done(index, index, cache)
        chaos.compare("index", sound_layers, layers(film, cache))
        line = [*evaluation, str(run), "--resume"]
        chaos.until_done(line, [*line, "--retry-errors"], cache)
        chaos.compare("eval", sound_results, results(run))
        most = chaos.chance.randrange(3, ROUNDS // 4)
        reported, afterwards = disturbed_answers(chaos, serve, cache, most)
        chaos.compare("serve", sound_answers, reported)
        chaos.compare("serve, afterwards", reported, afterwards)
        shutil.rmtree(cache)
        shutil.rmtree(run)
        print(json.dumps({"round": number, **chaos.tally.done}), flush=True)


@contextmanager
def small_disk(chaos: Chaos) -> Iterator[None]:
    """Give the caches a disk that can be filled, where mounting one is permitted."""
    disk = chaos.folder / "disk"
    disk.mkdir()
    line = ["mount", "-t", "tmpfs", "-o", "size=200M", "none", str(disk)]
    mounted = subprocess.run(line, capture_output=True).returncode == 0
    print(
        "full disks: " + ("a tmpfs" if mounted else "skipped, mounting is not permitted"),
        flush=True,
    )
    chaos.disk = disk if mounted else None
    try:
        yield
    finally:
        if mounted:
            subprocess.run(["umount", str(disk)], check=True)


def _faketime() -> str:
    """The library that moves the clock of a process; empty if there is none."""
    given = os.environ.get("FAKETIME_LIBRARY")
    places = [Path(given)] if given else [Path(place, "libfaketimeMT.so.1") for place in FAKETIME]
    return next((str(place) for place in places if place.exists()), "")


def main() -> int:
    """Disturb until the time is up; exit code 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    clock = _faketime()
    print(f"seed {options.seed}, {options.minutes:g} minutes")
    print("clock jumps: " + (clock or "skipped, libfaketime is not installed"), flush=True)
    with tempfile.TemporaryDirectory(prefix="longtake-chaos-") as name:
        chaos = Chaos(options.seed, Path(name), clock)
        with small_disk(chaos), serving(Moody(parse("acuity=0.9")).app()) as url:
            rounds(chaos, url, time.monotonic() + 60 * options.minutes)
    tally = chaos.tally
    print(json.dumps({**tally.done, "comparisons": tally.compared}))
    for difference in tally.differences:
        print(f"found: {difference}")
    return 1 if tally.differences else 0


if __name__ == "__main__":
    sys.exit(main())
