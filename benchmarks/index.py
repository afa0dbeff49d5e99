"""Indexing a long film: longtake beside a naive script and an earlier checkout.

    python benchmarks/index.py CLIP … [--minutes 60] [--before CHECKOUT] [--sides naive before now]

Joins the clips, again and again, into one 720p film of the given length; each time round they are
placed, scaled and lit differently, so that no two passes look alike. Every side indexes that film
in processes of its own. The tables show wall time, CPU time and peak memory, and how many of the
known phrases, on-screen words and pictures each side finds (``TRUTH`` lists them for the clips that
it names). The film and what was found stay in ``build/index``.

The naive script is what one would write in an afternoon: OpenCV decodes every frame, one in a
second is encoded by EfficientNet-Lite2 and read by RapidOCR with its defaults, and Moonshine
transcribes the whole sound.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageEnhance

from longtake.algorithms import phrases
from longtake.media.audio import listen
from longtake.media.video import Video
from longtake.media.writer import Encoding, write_film

ROOT = Path(__file__).parent.parent
WORK = ROOT / "build" / "index"
WIDTH, HEIGHT, FPS, RATE = 1280, 720, 24, 16_000
PARTS = ("frames", "speech", "onscreen")
TRUTH: dict[str, dict[str, list[str]]] = {
    "openboard_wannaworktogether": {
        "speech": [
            "share your creativity",
            "be inspired by it",
            "take the teacher",
            "bits and pieces",
            "richer, better, more vibrant culture",
            "all rights reserved copyright",
            "millions and millions of people",
            "luckily there's an answer",
            "we provide free copyright licenses",
            "it's totally free",
            "just come to our website",
            "you don't give up your copyright",
            "just a few years ago",
        ],
        "onscreen": [
            "all rights reserved",
            "except fair use",
            "it only takes a minute",
            "allow commercial uses of your work",
            "yes, as long as others share alike",
            "get a license",
            "refine the rules",
            "remix",
            "reuse",
            "Ryan Junell",
            "Sara Kraft",
            "Eric Steuer",
            "MacArthur Foundation",
            "Hewlett Foundation",
            "redhat.com",
            "Omidyar Network",
            "Stanford Law School",
            "Public Domain",
        ],
    },
    "moviepy_trailer_bbb": {
        "onscreen": [
            "The Blender Foundation",
            "An unlucky bird",
            "slightly overweight bunny",
            "three rodent pests",
            "Revenge is coming",
            "Made with",
        ],
        "pictures": ["rabbit", "butterfly"],
    },
    "gnome_dual_monitors": {
        "onscreen": [
            "Tiffany Antopolski",
            "Mirror displays",
            "Detect Displays",
            "System Settings",
            "Acer Technologies",
            "Rotation",
            "Type to search",
            "Applications",
        ],
        "pictures": ["computer monitor"],
    },
    "yuefan_kitchen": {"pictures": ["refrigerator", "microwave oven"]},
    "bikes": {"pictures": ["bicycle"]},
    "torchcodec_nasa": {
        "speech": ["largest cleanrooms in the world", "Goddard Space Flight Center"]
    },
}
"""What is said and shown in the clips, heard and read by people."""


@dataclass(frozen=True)
class Placed:
    """A clip's place in the joined film."""

    clip: Path
    number: int
    """How many clips came before it, which decides how it is varied."""
    start: float
    end: float


# -- the film


def timeline(clips: Sequence[Path], seconds: float) -> list[Placed]:
    """The clips one after another until the film is long enough."""
    lengths = {clip: Video(clip).duration for clip in clips}
    placed: list[Placed] = []
    start = 0.0
    while start < seconds:
        clip = clips[len(placed) % len(clips)]
        # whole seconds keep sound and pictures together
        end = start + max(1.0, float(int(lengths[clip])))
        placed.append(Placed(clip, len(placed) // len(clips), start, end))
        start = end
    return placed


def join(placed: Sequence[Placed], path: Path) -> None:
    """Write the film."""
    sound = np.zeros(round(placed[-1].end * RATE), np.float32)
    for place in placed:
        video = Video(place.clip)
        if video.info.audio:
            pieces = [part.samples for part in listen(place.clip, origin=video.origin)]
            samples = np.concatenate([np.zeros(0, np.float32), *pieces])
            first = round(place.start * RATE)
            samples = samples[: round((place.end - place.start) * RATE)]
            sound[first : first + len(samples)] = samples
    encoding = Encoding(fps=Fraction(FPS), gop=120, options={"preset": "veryfast", "crf": "23"})
    part = path.with_suffix(".part.mp4")
    write_film(part, _pictures(placed), encoding, sound=sound)
    part.rename(path)


def _pictures(placed: Sequence[Placed]) -> Iterator[Any]:
    for place in placed:
        print(f"joining {place.clip.name} at {place.start:.0f} s", file=sys.stderr)
        video = Video(place.clip)
        times = np.arange(round((place.end - place.start) * FPS)) / FPS
        times = np.minimum(times, video.duration - 1e-3)
        for frame in video.frames(times, width=WIDTH):
            yield _varied(frame.pixels, place.number)


def _varied(pixels: Any, number: int) -> Any:
    """A picture that fills the frame, another place, size and light for each number."""
    picture = Image.fromarray(pixels)
    # a little smaller each time round, so that passes differ; small print must stay legible
    factor = min(WIDTH / picture.width, HEIGHT / picture.height)
    factor *= (1.0, 0.93, 0.87, 0.97, 0.9, 0.83)[number % 6]
    size = (round(picture.width * factor), round(picture.height * factor))
    picture = picture.resize(size, Image.Resampling.BILINEAR)
    picture = ImageEnhance.Brightness(picture).enhance((1.0, 0.9, 1.05, 0.95, 0.85)[number % 5])
    canvas = Image.new("RGB", (WIDTH, HEIGHT))
    across, down = ((1, 1), (0, 0), (2, 2), (2, 0), (0, 2))[number % 5]
    canvas.paste(picture, ((WIDTH - size[0]) * across // 2, (HEIGHT - size[1]) * down // 2))
    return np.asarray(canvas)


# -- the sides


def measured(command: Sequence[str], **environment: str) -> tuple[str, dict[str, float]]:
    """Standard output of a command, and what it cost."""
    began = time.perf_counter()
    process = subprocess.Popen(
        command, env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{' '.join(command)}: exit status {status}")
    return output, {
        "seconds": time.perf_counter() - began,
        "cpu": usage.ru_utime + usage.ru_stime,
        "megabytes": usage.ru_maxrss / 1e3,
    }


def checkout(root: Path, film: Path, cache: Path, queries: Sequence[str]) -> dict[str, Any]:
    """Index the film with one checkout, part by part and, if it reports costs, all at once."""
    shutil.rmtree(cache, ignore_errors=True)
    environment = {"PYTHONPATH": str(root / "src"), "LONGTAKE_CACHE": str(cache)}
    program = [sys.executable, "-m", "longtake"]
    costs = {}
    for part in PARTS:
        command = [*program, "index", str(film), "--only", part]
        costs[part] = measured(command, **environment)[1]
    found = _stored(cache) | {"pictures": {}}
    for query in queries:
        said, _ = measured([*program, "search", str(film), query, "--json"], **environment)
        hits = json.loads(said)["films"][0]["hits"]
        found["pictures"][query] = [hit["time"] for hit in hits if "image" in hit["sources"]]
    return {"costs": costs, "found": found}


def at_once(root: Path, film: Path, cache: Path) -> dict[str, float]:
    """Cost of one command that indexes everything."""
    shutil.rmtree(cache, ignore_errors=True)
    environment = {"PYTHONPATH": str(root / "src"), "LONGTAKE_CACHE": str(cache)}
    return measured([sys.executable, "-m", "longtake", "index", str(film)], **environment)[1]


def _stored(cache: Path) -> dict[str, Any]:
    """The lines in a film's store, by layer."""
    lines: dict[str, Any] = {"speech": [], "onscreen": []}
    (database,) = (cache / "films").glob("*/text.db")
    rows = sqlite3.connect(database).execute("SELECT layer, start, end, text FROM lines")
    for layer, start, end, text in rows:
        if layer.split("-")[0] in lines:
            lines[layer.split("-")[0]].append((start, end, text))
    return lines


def naive(film: Path, queries: Sequence[str]) -> dict[str, Any]:
    """Every second through every model, and the whole sound through the recogniser."""
    import cv2
    from rapidocr import RapidOCR

    from longtake.perception.catalogue import BuiltIns, open_image_text_encoder
    from longtake.perception.runtime import Compute
    from longtake.types import Frame

    encoder = open_image_text_encoder("conse", BuiltIns(WORK / "models", Compute()))
    reader = RapidOCR(params={"Global.log_level": "critical"})
    costs, clock = {part: [0.0, 0.0] for part in PARTS}, _Clock()
    capture = cv2.VideoCapture(str(film))
    fps, number, vectors = capture.get(cv2.CAP_PROP_FPS), 0, []
    lines: dict[str, Any] = {"speech": [], "onscreen": []}
    while capture.grab():
        if number / fps >= len(vectors):
            second = float(len(vectors))
            _, picture = capture.retrieve()
            frame = Frame(second, cv2.cvtColor(picture, cv2.COLOR_BGR2RGB))
            vectors.append(encoder.images([frame])[0])
            clock.lap(costs["frames"])
            texts = reader(picture).txts or ()
            lines["onscreen"] += [(second, second + 1, text) for text in texts]
            clock.lap(costs["onscreen"])
        number += 1
    clock.lap(costs["frames"])
    lines["speech"] = _transcribed(film)
    clock.lap(costs["speech"])
    scores = encoder.texts(queries) @ np.stack(vectors).T
    best = {query: _peaks(row) for query, row in zip(queries, scores, strict=True)}
    table = {part: {"seconds": took[0], "cpu": took[1]} for part, took in costs.items()}
    return {"costs": table, "found": lines | {"pictures": best}}


def _transcribed(film: Path) -> list[tuple[float, float, str]]:
    import moonshine_voice
    from moonshine_voice import ModelArch
    from moonshine_voice.transcriber import Transcriber

    folder = Path(moonshine_voice.__file__).parent / "assets" / "tiny-en"
    samples = np.concatenate([part.samples for part in listen(film, origin=0.0)])
    said = Transcriber(folder, ModelArch.TINY).transcribe_without_streaming(samples.tolist(), RATE)
    return [(line.start_time, line.start_time + line.duration, line.text) for line in said.lines]


def _peaks(scores: Any, count: int = 10, apart: int = 3) -> list[float]:
    chosen: list[int] = []
    for second in np.argsort(-scores).tolist():
        if all(abs(second - other) > apart for other in chosen):
            chosen.append(second)
    return [float(second) for second in chosen[:count]]


class _Clock:
    def __init__(self) -> None:
        self._last = time.perf_counter(), time.process_time()

    def lap(self, total: list[float]) -> None:
        """Add what has passed since the last lap, wall and CPU time."""
        now = time.perf_counter(), time.process_time()
        for which in (0, 1):
            total[which] += now[which] - self._last[which]
        self._last = now


# -- what was found


def recall(
    found: dict[str, Any], placed: Sequence[Placed]
) -> dict[str, tuple[int, int, list[str]]]:
    """By kind: how many known things were found where they are, of how many, and what was not."""
    table = {}
    for kind in ("speech", "onscreen"):
        wanted = [(place, text) for place in placed for text in _truth(place, kind)]
        missed = [text for place, text in wanted if not _said(found[kind], place, text)]
        table[kind] = (len(wanted) - len(missed), len(wanted), sorted(set(missed)))
    queries = sorted({text for place in placed for text in _truth(place, "pictures")})
    missed = []
    for query in queries:
        places = [place for place in placed if query in _truth(place, "pictures")]
        times = found["pictures"][query][:5]
        if not any(place.start <= t < place.end for place in places for t in times):
            missed.append(query)
    table["pictures"] = (len(queries) - len(missed), len(queries), missed)
    return table


def _truth(place: Placed, kind: str) -> list[str]:
    return TRUTH.get(place.clip.stem, {}).get(kind, [])


def _said(lines: Sequence[Any], place: Placed, text: str) -> bool:
    nearby = sorted(line for line in lines if line[0] < place.end and line[1] > place.start)
    # a phrase may be cut between two lines of speech, or stand on two lines of a screen
    together = [f"{one[2]} {two[2]}" for one, two in pairwise(nearby)]
    candidates = {line[2] for line in nearby} | set(together)
    return any(phrases.match(text, line) >= phrases.SURE for line in candidates)


# -- the tables


def report(results: dict[str, Any], placed: Sequence[Placed], threads: int) -> None:
    """Print what each side cost and found."""
    minutes = placed[-1].end / 60
    print(f"\n{minutes:.1f} minutes of film, {len(placed)} clips, {threads} cores\n")
    print("| side | part | wall s | CPU s | CPU s per minute of film | peak MB |")
    print("|---|---|---|---|---|---|")
    for side, result in results.items():
        total = {"seconds": 0.0, "cpu": 0.0}
        for part, cost in result["costs"].items():
            print(_row(side, part, cost, minutes))
            for name in total:
                total[name] += cost[name] if part in PARTS else 0.0
        print(_row(side, "sum of the parts", total, minutes))
    print("\n| side | spoken phrases | on-screen words | pictures in the first 5 | missed |")
    print("|---|---|---|---|---|")
    for side, result in results.items():
        found = recall(result["found"], placed)
        cells = [f"{right} of {wanted}" for right, wanted, _ in found.values()]
        missed = ", ".join(text for *_, texts in found.values() for text in texts)
        print(f"| {side} | {' | '.join(cells)} | {missed or 'none'} |")


def _row(side: str, part: str, cost: dict[str, float], minutes: float) -> str:
    peak = f"{cost['megabytes']:.0f}" if "megabytes" in cost else ""
    figures = f"{cost['seconds']:.0f} | {cost['cpu']:.0f} | {cost['cpu'] / minutes:.1f}"
    return f"| {side} | {part} | {figures} | {peak} |"


def main() -> None:
    """Make the film, run the sides, print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("clips", type=Path, nargs="+")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--before", type=Path, help="an earlier checkout")
    parser.add_argument("--sides", nargs="+", default=["naive", "before", "now"])
    parser.add_argument("--as-naive", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    placed = timeline(args.clips, 60 * args.minutes)
    queries = sorted({text for place in placed for text in _truth(place, "pictures")})
    if args.as_naive:
        print(json.dumps(naive(args.as_naive, queries)))
        return
    WORK.mkdir(parents=True, exist_ok=True)
    film = WORK / f"joined-{args.minutes:g}-{len(args.clips)}.mp4"
    if not film.exists():
        join(placed, film)
    results = {}
    for side in args.sides:
        kept = WORK / f"{film.stem}-{side}.json"
        # finished sides are kept, so that a long run can be done in pieces; delete to measure again
        if not kept.exists():
            if side == "before" and args.before is None:
                continue
            kept.write_text(json.dumps(_measure(side, args, film, queries)))
        results[side] = json.loads(kept.read_text())
    report(results, placed, len(os.sched_getaffinity(0)))


def _measure(side: str, args: argparse.Namespace, film: Path, queries: list[str]) -> dict[str, Any]:
    if side == "naive":
        command = [sys.executable, __file__, *map(str, args.clips), "--as-naive", str(film)]
        said, cost = measured([*command, "--minutes", str(args.minutes)])
        result: dict[str, Any] = json.loads(said)
        result["costs"]["all at once"] = cost
        return result
    root = args.before if side == "before" else ROOT
    result = checkout(root, film, WORK / f"cache-{side}", queries)
    if side != "before":
        result["costs"]["all at once"] = at_once(root, film, WORK / f"cache-{side}-all")
    return result


if __name__ == "__main__":
    main()
