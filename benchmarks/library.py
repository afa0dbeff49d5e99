"""A library of films, measured: adding, searching at several sizes, and asking.

    python benchmarks/library.py scale          2,000 lab films: rate, latency, recall, memory
    python benchmarks/library.py million        embedded beside LanceDB up to a million segments
    python benchmarks/library.py clips          real clips, moments from stills and transcripts
    python benchmarks/library.py needle         questions that one of 20 or 200 films answers
    python benchmarks/library.py chaos          processes that add and search, killed at random

Every part takes ``--folder`` (default: a temporary one) and prints its figures as JSON lines.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from longtake.config import Settings
from longtake.evals.lab import LabSource
from longtake.lab.encoder import LabEncoder
from longtake.lab.eyes import Eyes
from longtake.lab.footage import LabFootage
from longtake.lab.library import captions, make_library
from longtake.lab.world import make_script
from longtake.library import Adder, Entry, Library, ask_library
from longtake.library.embedded import EmbeddedIndex
from longtake.library.entries import Facts
from longtake.library.lance import LanceIndex
from longtake.library.searching import make_query, search
from longtake.library.segment_index import FilmRows
from longtake.library.segments import Row, material_of_footage, rows_of
from longtake.media.container import NO_FILE
from longtake.perception.senses import Senses
from longtake.session.asking import Session
from longtake.session.casting import Casting
from longtake.types import Line

MINUTES = 10
STEP = 5
"""Seconds between the moments that are embedded and captioned."""
ENCODER = LabEncoder()
DIMS = {"picture": ENCODER.dim, "meaning": ENCODER.dim}


class Captioned(LabFootage):
    """A script with the captions of a captioner of acuity 0.8."""

    has = frozenset({"pictures", "captions"})

    def __init__(self, script) -> None:
        super().__init__(script, encoder=ENCODER, fps=1 / STEP)
        lines: list[Line] = captions(script, Eyes(seed=7), step=STEP)
        self._texts = [line.text for line in lines]

    def captions(self, times):
        return [self._texts[int(time) // STEP] for time in times]


def lab_rows(seed: int, minutes: int = MINUTES) -> list[Row]:
    return rows_of(material_of_footage(Captioned(make_script(seed, minutes))), ENCODER)


def tell(**figures) -> None:
    print(json.dumps(figures), flush=True)


def memory() -> dict[str, float]:
    """Megabytes of this process: its own, and of mapped files, which the system may take back."""
    status = Path("/proc/self/status").read_text()
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    return {
        "own_mb": int(fields["RssAnon"].split()[0]) // 1000,
        "mapped_mb": int(fields["RssFile"].split()[0]) // 1000,
    }


def lab_library(folder: Path, backend: str = "embedded") -> Library:
    settings = Settings()
    senses = Senses(settings.perception, folder / "cache", images=ENCODER)
    source = LabSource()
    return Library(
        folder / "library",
        settings,
        backend=backend,
        senses=senses,
        sentences=ENCODER,
        opener=lambda entry: source.footage(entry.name),
    )


def enter(library: Library, seed: int, minutes: int = MINUTES) -> Entry:
    mark, name = f"lab{seed:08d}", f"{seed}:{minutes}"
    library.catalogue.describe(mark, Facts(name, minutes * 60.0, tags=("lab",)))
    library.catalogue.place(library.folder / name, mark, NO_FILE)
    return Entry(mark, name, minutes * 60.0)


def fill(library: Library, seeds, *, batch: int = 20) -> None:
    """Add lab films, some at a time."""
    waiting = []
    for seed in seeds:
        entry = enter(library, seed)
        waiting.append(FilmRows(entry.fingerprint, {"rows": "1"}, lab_rows(seed)))
        if len(waiting) == batch:
            library.index.replace(waiting)
            waiting = []
    library.index.replace(waiting)


def queries(count: int, films: int, seed: int = 5) -> list[str]:
    """What is said, shown or done in some film, as one would search for it."""
    rng = random.Random(seed)
    texts = []
    while len(texts) < count:
        script = make_script(rng.randrange(films), MINUTES)
        said = [line.text for line in script.subtitles()]
        shown = [line.text for line in script.readings()]
        asked = [str(deed.fact).lower() for deed in script.deeds]
        texts.append(rng.choice(rng.choice([said, shown or said, asked])))
    return texts


def top(found, count: int = 10) -> list[tuple[str, float]]:
    moments = [
        (m.score, f.entry.fingerprint, m.segment.start) for f in found.films for m in f.moments
    ]
    return [(film, start) for _, film, start in sorted(moments, reverse=True)[:count]]


def scale(args) -> None:
    library = lab_library(args.folder)
    have = len(library.index.films())
    began = time.perf_counter()
    until = min(args.films, have + args.most)
    fill(library, range(have, until))
    if until > have:
        rate = (until - have) / (time.perf_counter() - began)
        tell(part="scale", added=until - have, films=until, films_per_s=round(rate, 1), **memory())
    if until < args.films:
        return
    texts = queries(200, args.films)
    entries = {entry.fingerprint: entry for entry in library.catalogue.entries()}
    segments = sum(holding.rows for holding in library.index.films().values())
    cold = subprocess.run(
        [sys.executable, __file__, "cold", "--folder", str(args.folder)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    library.search(texts[0])
    exact = EmbeddedIndex(library.index.folder, DIMS, common=float("inf"))
    took, worked, hits = [], [], []
    for text in texts:
        began, busy = time.perf_counter(), time.process_time()
        found = library.search(text)
        took.append(time.perf_counter() - began)
        worked.append(time.process_time() - busy)
        truth = search(exact, make_query(text, ENCODER, ENCODER), entries, moments=3)
        wanted = top(truth)
        hits.append(len(set(top(found)) & set(wanted)) / max(1, len(wanted)))
    p50, p95 = np.percentile(took, [50, 95]) * 1000
    tell(
        part="scale",
        films=args.films,
        segments=segments,
        p50_ms=round(p50, 1),
        p95_ms=round(p95, 1),
        cold=json.loads(cold.stdout),
        cpu_p50_ms=round(float(np.percentile(worked, 50)) * 1000, 1),
        cpu_p95_ms=round(float(np.percentile(worked, 95)) * 1000, 1),
        recall_at_10=round(float(np.mean(hits)), 4),
        **memory(),
    )


def cold(args) -> None:
    """The first search of a new process, with the library's files evicted from memory."""
    import os

    for file in (args.folder / "library").rglob("*"):
        if file.is_file():
            with file.open("rb") as handle:
                os.posix_fadvise(handle.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    library = lab_library(args.folder)
    began = time.perf_counter()
    library.search("the glass dragon")
    tell(first_search_s=round(time.perf_counter() - began, 3))


def million(args) -> None:
    """Both backends on the same rows, which are lab rows with noise, up to a million."""
    rows = [row for seed in range(200) for row in lab_rows(seed)]
    base = [row for row in rows if row.picture is not None and row.meaning is not None]
    pictures = np.stack([row.picture for row in base])
    meanings = np.stack([row.meaning for row in base])
    rng = np.random.default_rng(1)
    indexes = {
        "embedded": EmbeddedIndex(args.folder / "embedded", DIMS),
        "lancedb": LanceIndex(args.folder / "lance", DIMS),
    }
    if args.only:
        indexes = {args.only: indexes[args.only]}
    size = 0
    for goal in args.sizes:
        build = dict.fromkeys(indexes, 0.0)
        while size < goal:
            films = []
            for _ in range(50):
                chosen = rng.integers(0, len(base), min(400, goal - size))
                films.append(
                    FilmRows(f"film{size:08d}", {}, noisy(base, chosen, pictures, meanings, rng))
                )
                size += len(chosen)
                if size >= goal:
                    break
            for name, index in indexes.items():
                began = time.perf_counter()
                index.replace(films)
                build[name] += time.perf_counter() - began
        compare(indexes, size, build)


def noisy(base, chosen, pictures, meanings, rng) -> list[Row]:
    def moved(vectors):
        noise = rng.normal(size=(len(chosen), vectors.shape[1])).astype(np.float32)
        rows = vectors[chosen] + 0.4 * noise / np.sqrt(vectors.shape[1])
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    new_pictures, new_meanings = moved(pictures), moved(meanings)
    return [
        replace(base[number], prints=b"", picture=picture, meaning=meaning)
        for number, picture, meaning in zip(chosen, new_pictures, new_meanings, strict=True)
    ]


def compare(indexes, size: int, build) -> None:
    texts = queries(30, 200)
    made = [make_query(text, ENCODER, ENCODER) for text in texts]
    entries = {film: Entry(film, film, 1.0) for film in next(iter(indexes.values())).films()}
    exact: dict[str, list[set[int]]] = {}
    for name, index in indexes.items():
        began = time.perf_counter()
        index.compact()
        compacted = time.perf_counter() - began
        for query in made[:3]:
            search(index, query, entries)
        took, worked = [], []
        for query in made:
            began, busy = time.perf_counter(), time.process_time()
            search(index, query, entries)
            took.append(time.perf_counter() - began)
            worked.append(time.process_time() - busy)
        near = [
            starts(index, index.nearest(query.vectors["picture"], "picture", 10)) for query in made
        ]
        exact.setdefault("truth", near)  # the embedded index compares every vector
        pairs = zip(near, exact["truth"], strict=True)
        recall = np.mean([len(own & truth) / 10 for own, truth in pairs])
        p50, p95 = np.percentile(took, [50, 95]) * 1000
        tell(
            part="million",
            backend=name,
            segments=size,
            p50_ms=round(p50, 1),
            p95_ms=round(p95, 1),
            cpu_p50_ms=round(float(np.percentile(worked, 50)) * 1000, 1),
            vector_recall_at_10=round(float(recall), 3),
            write_s=round(build[name], 1),
            compact_s=round(compacted, 1),
            disk_mb=sum(f.stat().st_size for f in index.folder.rglob("*") if f.is_file()) // 10**6,
            **memory(),
        )


def starts(index, hits) -> set[tuple[str, float, float]]:
    stored = index.fetch([hit.row for hit in hits])
    scores = {hit.row: round(hit.score, 3) for hit in hits}
    return {(each.film, each.segment.start, scores[each.row]) for each in stored}


def plot(args) -> None:
    """Draw the figures of ``million`` from the JSON lines in a file."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = [json.loads(line) for line in Path(args.figures).read_text().splitlines()]
    _, axes = pyplot.subplots(figsize=(6, 4))
    for backend, marker in (("embedded", "o"), ("lancedb", "s")):
        own = sorted(
            (r["segments"], r["p50_ms"], r["p95_ms"]) for r in rows if r.get("backend") == backend
        )
        sizes, p50, p95 = zip(*own, strict=True)
        (line,) = axes.plot(sizes, p50, marker=marker, label=f"{backend}, median")
        axes.plot(sizes, p95, "--", color=line.get_color(), label=f"{backend}, 95 %")
    axes.set(xscale="log", yscale="log", xlabel="segments", ylabel="ms per search")
    axes.legend()
    axes.grid(alpha=0.3)
    pyplot.savefig(args.out, bbox_inches="tight", dpi=120)


CLIPS = (
    ("the space telescope in a cleanroom", "torchcodec_nasa", 0, 13),
    ("an unlucky bird", "moviepy_trailer_bbb", 10, 15),
    ("a slightly overweight bunny", "moviepy_trailer_bbb", 15, 30),
    ("three rodent pests", "moviepy_trailer_bbb", 30, 40),
    ("revenge", "moviepy_trailer_bbb", 40, 55),
    ("all rights reserved", "openboard_wannaworktogether", 58, 75),
    ("commercial uses of your work", "openboard_wannaworktogether", 95, 120),
    ("a teacher who shapes young minds", "openboard_wannaworktogether", 8, 22),
    ("thanks to the MacArthur Foundation", "openboard_wannaworktogether", 155, 175),
    ("does the display look OK", "gnome_dual_monitors", 25, 37),
    ("display settings of a laptop with a second screen", "gnome_dual_monitors", 5, 37),
    ("a refrigerator", "yuefan_kitchen", 0, 30),
    ("a sink in a kitchen", "yuefan_kitchen", 0, 41),
    ("people walking past a lawn", "opencv_768x576", 0, 5),
)
"""What to search for, the clip that shows it, and when, from stills and transcripts."""


def clips(args) -> None:
    """Real clips with the built-in encoders: is the right film first, at the right time?"""
    library = Library(settings=Settings())
    Adder(library).add([args.clips])
    right = timely = 0
    for text, name, start, end in CLIPS:
        found = library.search(text)
        first = found.films[0]
        film = first.entry.path.stem == name
        # a segment begins up to ten seconds before what it holds
        at = film and start - 10 <= first.moments[0].time <= end
        right, timely = right + film, timely + at
        moment = first.moments[0]
        tell(
            part="clips",
            text=text,
            film=first.entry.path.stem,
            right=film,
            at=round(moment.time, 1),
            in_time=at,
            sure=moment.sure,
            sources=moment.sources,
        )
    tell(part="clips", queries=len(CLIPS), right_film=right, right_time=timely)


def needle(args) -> None:
    """Right film first, accuracy beside asking that film directly, and the growth of the cost."""
    casting = Casting(("lab/acuity=0.8,latency=0",))
    session = Session(Settings(), casting)
    costs = {}
    world = make_library(
        200, MINUTES, first_seed=args.first_seed, questions=args.questions, among=20
    )
    for films in (20, 200):
        library = lab_library(args.folder / f"needle-{films}")
        seeds = range(args.first_seed, args.first_seed + films)
        missing = [seed for seed in seeds if f"lab{seed:08d}" not in library.index.films()]
        fill(library, missing)
        first = right = direct = 0
        usage = {"ask": 0.0, "direct": 0.0}
        for question in world.questions:
            asked = question.asked
            name = f"{args.first_seed + question.film}:{MINUTES}"
            answer = ask_library(library, session, asked.question, args.method)
            first += bool(answer.films) and answer.films[0].film.name == name
            right += correct(answer.answer, asked)
            usage["ask"] += answer.usage.cost or 0.0
            alone = session.ask(LabSource().footage(name), asked.question, args.method)
            direct += correct(alone.answer, asked)
            usage["direct"] += alone.usage.cost or 0.0
        count = len(world.questions)
        costs[films] = usage["ask"] / count
        tell(
            part="needle",
            method=args.method,
            films=films,
            questions=count,
            right_film_first=round(first / count, 3),
            accuracy=round(right / count, 3),
            accuracy_asked_directly=round(direct / count, 3),
            cost=round(usage["ask"] / count, 5),
            cost_asked_directly=round(usage["direct"] / count, 5),
        )
    tell(part="needle", cost_growth=round(costs[200] / costs[20], 2))


def correct(answer, asked) -> bool:
    if asked.options:
        return answer.choice == asked.answer
    words = answer.text.lower()
    return all(word in words for word in asked.answer_text.lower().split())


def chaos(args) -> None:
    """Two processes add, one searches; one of them is killed at random, again and again."""
    rng = random.Random(3)
    command = [sys.executable, __file__]
    folder = ["--folder", str(args.folder), "--films", str(args.films)]

    def start(part: str):
        return subprocess.Popen([*command, part, *folder], stderr=subprocess.DEVNULL)

    running = {"one": start("adder"), "two": start("adder"), "search": start("searcher")}
    parts = {"one": "adder", "two": "adder", "search": "searcher"}
    failures = 0
    for _ in range(args.kills):
        time.sleep(rng.uniform(0.3, 2.0))
        name = rng.choice(sorted(running))
        failures += _ended_badly(running[name])
        running[name].send_signal(signal.SIGKILL)
        running[name].wait()
        running[name] = start(parts[name])
    for name in ("one", "two"):
        failures += running[name].wait() != 0
    running["search"].terminate()
    running["search"].wait()
    library = lab_library(args.folder)
    held = library.index.films()
    expected = {f"lab{seed:08d}": len(lab_rows(seed)) for seed in range(args.films)}
    rows = [hit.row for hit in library.index.nearest(ENCODER.texts(["x"])[0], "picture", 10**6)]
    tell(
        part="chaos",
        kills=args.kills,
        films=len(held),
        lost=len(expected.keys() - held.keys()),
        wrong_rows=sum(
            held[film].rows != count for film, count in expected.items() if film in held
        ),
        rows_twice=len(rows) - len(set(rows)),
        rows=len(library.index.fetch(rows)),
        rows_expected=sum(expected.values()),
        failures=failures,
    )


def _ended_badly(process) -> bool:
    return process.poll() not in (None, 0)


def adder(args) -> None:
    """Add what is missing, film by film, as two processes that share the work do."""
    from filelock import FileLock, Timeout

    library = lab_library(args.folder)
    locks = args.folder / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    for wait in (0, -1):
        for seed in range(args.films):
            try:
                with FileLock(locks / str(seed), timeout=wait):
                    entry = enter(library, seed)
                    if entry.fingerprint not in library.index.films():
                        library.index.replace([FilmRows(entry.fingerprint, {}, lab_rows(seed))])
            except Timeout:
                continue


def searcher(args) -> None:
    """Search until stopped; every film that is found must be whole."""
    library = lab_library(args.folder)
    while True:
        for text in queries(20, args.films):
            library.search(text)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parts = [scale, cold, million, plot, clips, needle, chaos, adder, searcher]
    parser.add_argument("part", choices=[part.__name__ for part in parts])
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--films", type=int, default=2000)
    parser.add_argument("--most", type=int, default=10**9, help="films added in one call")
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=[10_000, 30_000, 100_000, 300_000, 1_000_000]
    )
    parser.add_argument("--only", default="")
    parser.add_argument("--method", default="videoagent")
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--first-seed", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--clips", type=Path, help="a folder of real clips")
    parser.add_argument("--figures", type=Path)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    args.folder = args.folder or Path(tempfile.mkdtemp(prefix="longtake-library-"))
    {part.__name__: part for part in parts}[args.part](args)


if __name__ == "__main__":
    main()
