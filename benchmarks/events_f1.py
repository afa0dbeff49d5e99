"""How well event partition finds the episodes of a film, against PySceneDetect and equal chunks.

    make bench        # or: python benchmarks/events_f1.py [--films 10] [--minutes 3 20 60]

Films are worlds of the laboratory, drawn and encoded; the targets are their episodes, of several
scenes each. A boundary counts as found if a cut lies within half the shortest block; each cut
counts once. The others are reduced to their strongest cuts, as many as ours found. PySceneDetect
runs in a separate environment under build/, because its OpenCV package conflicts with ours.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from decode import WORK, environment

FIRST_SEED = 1000
"""The first of the worlds that are reserved for published figures."""


def detect(path: str) -> None:
    """Print every cut of both detectors as (second, strength); runs in the peers' Python."""
    import scenedetect

    cuts = {}
    # the default minimum of 15 frames is long at a low frame rate, so use one second
    second = round(scenedetect.open_video(path).frame_rate)
    for name in ("ContentDetector", "AdaptiveDetector"):
        stats = scenedetect.StatsManager()
        manager = scenedetect.SceneManager(stats)
        manager.add_detector(getattr(scenedetect, name)(min_scene_len=second))
        manager.detect_scenes(scenedetect.open_video(path))
        cuts[name] = []
        for start, _ in manager.get_scene_list()[1:]:
            strength = stats.get_metrics(start.frame_num, ["content_val"])[0]
            cuts[name].append((start.seconds, strength or 0.0))
    print(json.dumps(cuts))


def f1(cuts: Sequence[float], truth: Sequence[float], reach: float) -> float:
    """F1 score; each boundary is matched by at most one cut, nearest pairs first."""
    pairs = []
    for i, cut in enumerate(cuts):
        for j, boundary in enumerate(truth):
            if abs(cut - boundary) <= reach:
                pairs.append((abs(cut - boundary), i, j))
    used: set[tuple[str, int]] = set()
    for _, i, j in sorted(pairs):
        if ("cut", i) not in used and ("truth", j) not in used:
            used |= {("cut", i), ("truth", j)}
    total = len(cuts) + len(truth)
    return len(used) / total if total else 1.0


def strongest(cuts: Sequence[tuple[float, float]], count: int) -> list[float]:
    return sorted(second for second, _ in sorted(cuts, key=lambda cut: -cut[1])[:count])


def one(python: str, minutes: int, seed: int) -> dict[str, float]:
    from longtake.algorithms.partition import PAPER, EventPartition
    from longtake.config import Settings
    from longtake.index.film import Film, partition
    from longtake.index.store import Store
    from longtake_bench.lab.film import FILM, make_world, write_world

    world = make_world(seed, minutes, 1)
    truth = [episode.start for episode in world.script.episodes][1:]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / FILM
        write_world(world, Path(folder))
        film = Film(path, Store(WORK / "cache"), Settings())
        ours = partition(film, EventPartition())
        printed = partition(film, EventPartition(**PAPER))
        done = subprocess.run(
            [python, __file__, "--detect", str(path)], capture_output=True, text=True, check=True
        )
    reach, count = EventPartition().shortest(ours.duration) / 2, len(ours.cuts)
    theirs = json.loads(done.stdout.splitlines()[-1])
    equal = [ours.duration * (n + 1) / (count + 1) for n in range(count)]
    return {
        "event partition": f1([cut.time for cut in ours.cuts], truth, reach),
        "  as printed": f1([cut.time for cut in printed.cuts], truth, reach),
        "equal chunks": f1(equal, truth, reach),
        **{name: f1(strongest(cuts, count), truth, reach) for name, cuts in theirs.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--films", type=int, default=10)
    parser.add_argument("--minutes", type=int, nargs="+", default=[3, 20, 60])
    options = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    python = environment("scenedetect", "scenedetect", "opencv-python-headless")
    table: dict[str, list[float]] = {}
    for minutes in options.minutes:
        began = time.perf_counter()
        rows = [one(python, minutes, FIRST_SEED + n) for n in range(options.films)]
        for name in rows[0]:
            table.setdefault(name, []).append(sum(row[name] for row in rows) / len(rows))
        seconds = time.perf_counter() - began
        print(f"{options.films} films of {minutes} min: {seconds:.0f} s", flush=True)
    print(f"\nmean F1{'':<16}" + "".join(f"{m:>7} min" for m in options.minutes) + "   average")
    for name, values in table.items():
        columns = "".join(f"{value:>11.3f}" for value in values)
        print(f"{name:<23}{columns}{sum(values) / len(values):>10.3f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--detect"]:
        detect(sys.argv[2])
    else:
        main()
