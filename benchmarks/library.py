"""A library of films, measured: adding, searching at several sizes, and asking.

    python benchmarks/library.py scale          2,000 lab films: rate, latency, recall, memory
    python benchmarks/library.py clips          real clips, moments from stills and transcripts
    python benchmarks/library.py needle         questions that one of 20 or 200 films answers

Every part takes ``--folder`` (default: a temporary one) and prints its figures as JSON lines.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np

from longtake.config import Settings
from longtake.footage.protocol import Footage
from longtake.library import Adder, Entry, Library, ask_library
from longtake.library.catalog import Facts
from longtake.library.segments import FilmRows, material_of_footage, rows_of
from longtake.perception.loader import PerceptionModels
from longtake.perception.runtime import batches
from longtake.runner.assignment import ModelAssignment
from longtake.runner.films import open_film
from longtake.runner.session import Session
from longtake.types import Answer, Line
from longtake.video.clip import Encoding, write_film
from longtake.video.container import NO_FILE
from longtake_bench.benchmarks.lab import LabSource
from longtake_bench.lab.facts import sentence
from longtake_bench.lab.footage import LabEncoder, LabFootage
from longtake_bench.lab.library import LibraryWorld, captions, make_library
from longtake_bench.lab.profile import LabModel
from longtake_bench.lab.prompt import Eyes
from longtake_bench.lab.questions import LabQuestion
from longtake_bench.lab.world import make_script

MINUTES = 10
STEP = 5
"""Seconds between the moments that are embedded and captioned."""
MARK = "lab"
"""Begins the fingerprint of a film that is a script alone."""
ENCODER = LabEncoder()


class Captioned(LabFootage):
    """A script with the captions of a captioner of acuity 0.8."""

    has = frozenset({"pictures", "captions"})

    def __init__(self, script) -> None:
        super().__init__(script, encoder=ENCODER, fps=1 / STEP)
        lines: list[Line] = captions(script, Eyes(LabModel(seed=7)), step=STEP)
        self._texts = [line.text for line in lines]

    def captions(self, times):
        return [self._texts[int(time) // STEP] for time in times]


def tell(**figures) -> None:
    print(json.dumps(figures), flush=True)


def milliseconds(seconds: list[float], name: str = "") -> dict[str, float]:
    """The median and the 95th percentile."""
    p50, p95 = np.percentile(seconds, [50, 95]) * 1000
    return {f"{name}p50_ms": round(float(p50), 1), f"{name}p95_ms": round(float(p95), 1)}


def memory() -> dict[str, float]:
    """Megabytes of this process: its own, and of mapped files, which the system may take back."""
    status = Path("/proc/self/status").read_text()
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    return {
        "own_mb": int(fields["RssAnon"].split()[0]) // 1000,
        "mapped_mb": int(fields["RssFile"].split()[0]) // 1000,
    }


def lab_library(folder: Path) -> Library:
    settings = Settings()
    perception = PerceptionModels(settings.perception, folder / "cache", images=ENCODER)
    source = LabSource()

    def opened(entry: Entry) -> Footage:
        if entry.fingerprint.startswith(MARK):
            return source.footage(entry.name)
        return open_film(entry.path, settings, senses=perception)

    return Library(
        folder / "library", settings, perception=perception, sentences=ENCODER, opener=opened
    )


def entered(library: Library, seed: int) -> FilmRows:
    """The rows of a lab film, which is then in the catalogue."""
    mark, name = f"{MARK}{seed:08d}", f"{seed}:{MINUTES}"
    library.catalogue.describe(mark, Facts(name, MINUTES * 60.0, tags=("lab",)))
    library.catalogue.place(library.folder / name, mark, NO_FILE)
    material = material_of_footage(Captioned(make_script(seed, MINUTES)))
    return FilmRows(mark, {"rows": "1"}, rows_of(material, ENCODER))


def fill(library: Library, seeds: Sequence[int]) -> None:
    """Add lab films, twenty at a time."""
    for some in batches(seeds, 20):
        library.index.replace([entered(library, seed) for seed in some])


def queries(count: int, films: int, seed: int = 5) -> list[str]:
    """What is said, shown or done in some film, as one would search for it."""
    rng = random.Random(seed)
    texts = []
    while len(texts) < count:
        script = make_script(rng.randrange(films), MINUTES)
        said = [line.text for line in script.subtitles()]
        shown = [line.text for line in script.readings()]
        done = [sentence(deed.fact) for deed in script.deeds]
        texts.append(rng.choice(rng.choice([said, shown or said, done])))
    return texts


def written(folder: Path, seed: int) -> Path:
    """A lab film of a minute as a file, one picture a second."""
    path = folder / f"film-{seed}.mp4"
    if not path.exists():
        footage = LabFootage(make_script(seed, 1))
        pictures = (frame.pixels for frame in footage.at(footage.times.tolist()))
        write_film(path, pictures, Encoding(fps=Fraction(1), gop=10))
    return path


FILES = 3
"""Real files added beside the scripts."""
QUERIES = 200
WARM = 50
"""Other searches before those that are timed."""


def scale(args) -> None:
    library = lab_library(args.folder)
    have = sum(film.startswith(MARK) for film in library.index.films())
    until = min(args.films, have + args.most)
    began = time.perf_counter()
    fill(library, range(have, until))
    if until > have:
        rate = (until - have) / (time.perf_counter() - began)
        tell(part="scale", added=until - have, films=until, films_per_s=round(rate, 1), **memory())
    if until == args.films:
        add_files(library, args.folder / "files", range(args.films, args.films + FILES))
        measure(library, args.folder, args.films)


def add_files(library: Library, folder: Path, seeds: range) -> None:
    """Real files beside the scripts: each must be found by a sign that it shows."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [written(folder, seed) for seed in seeds]
    began = time.perf_counter()
    Adder(library).add(paths)
    seconds = time.perf_counter() - began
    found = 0
    for path, seed in zip(paths, seeds, strict=True):
        sign = make_script(seed, 1).readings()[0].text
        # some scripts have the same sign
        found += path in {film.entry.path for film in library.search(sign, films=50).films}
    tell(part="scale", files=len(paths), seconds=round(seconds, 1), found_by_a_sign=found)


def measure(library: Library, folder: Path, films: int) -> None:
    """Latency of searches, warm and cold."""
    texts = queries(QUERIES, films)
    segments = sum(holding.rows for holding in library.index.films().values())
    command = [sys.executable, __file__, "cold", "--folder", folder]
    first = subprocess.run(command, capture_output=True, text=True, check=True)
    for text in queries(WARM, films, seed=6):
        library.search(text)
    took, worked = [], []
    for text in texts:
        began, busy = time.perf_counter(), time.process_time()
        library.search(text)
        took.append(time.perf_counter() - began)
        worked.append(time.process_time() - busy)
    tell(
        part="scale",
        films=films,
        segments=segments,
        **milliseconds(took),
        **milliseconds(worked, "cpu_"),
        cold=json.loads(first.stdout),
        **memory(),
    )


def cold(args) -> None:
    """The first search of a new process, with the library's files evicted from memory."""
    for file in (args.folder / "library").rglob("*"):
        if file.is_file():
            with file.open("rb") as handle:
                os.posix_fadvise(handle.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    library = lab_library(args.folder)
    began = time.perf_counter()
    library.search("the glass dragon")
    tell(first_search_s=round(time.perf_counter() - began, 3))


MODEL = "lab/acuity=0.8,latency=0"

CLIPS = (
    ("the space telescope in a cleanroom", "torchcodec_nasa", 0, 13),
    ("an unlucky bird", "moviepy_trailer_bbb", 10, 15),
    ("a slightly overweight bunny", "moviepy_trailer_bbb", 15, 30),
    ("three rodent pests", "moviepy_trailer_bbb", 30, 40),
    ("revenge", "moviepy_trailer_bbb", 40, 55),
    ("all rights reserved", "openboard_wannaworktogether", 58, 75),
    ("commercial uses of your work", "openboard_wannaworktogether", 95, 120),
    ("a teacher who shapes young minds", "openboard_wannaworktogether", 8, 22),
    ("thanks to the MacArthur Foundation", "openboard_wannaworktogether", 161, 165),
    ("an open book", "openboard_wannaworktogether", 27, 36),
    ("the planet earth", "openboard_wannaworktogether", 36, 47),
    ("does the display look OK", "gnome_dual_monitors", 25, 37),
    ("display settings of a laptop with a second screen", "gnome_dual_monitors", 5, 37),
    ("mirror displays", "gnome_dual_monitors", 4, 37),
    ("a refrigerator", "yuefan_kitchen", 16, 29),
    ("glasses in a cupboard", "yuefan_kitchen", 2, 7),
    ("a sink in a kitchen", "yuefan_kitchen", 0, 41),
    ("people walking past a lawn", "opencv_768x576", 0, 5),
)
"""What to search for, the clip that shows or says it, and when: checked by eye on stills, in the
transcript where it is only said."""


def clips(args) -> None:
    """Real clips with the built-in encoders: is the right film first, at the right time?"""
    library = Library(args.folder / "library", Settings())
    Adder(library).add([args.clips])
    right = timely = 0
    for text, name, start, end in CLIPS:
        first = library.search(text).films[0]
        moment = first.moments[0]
        film = first.entry.path.stem == name
        # a segment begins up to ten seconds before what it holds
        in_time = film and start - 10 <= moment.time <= end
        right, timely = right + film, timely + in_time
        at = {"film": first.entry.path.stem, "right": film, "at": round(moment.time, 1)}
        tell(part="clips", text=text, **at, in_time=in_time, sure=moment.sure)
    tell(part="clips", queries=len(CLIPS), right_film=right, right_time=timely)


def needle(args) -> None:
    """Right film first, accuracy beside asking that film directly, and the growth of the cost."""
    seed = args.first_seed
    # the same questions for every size: only films that are not asked about are added
    most, fewest = max(args.libraries), min(args.libraries)
    world = make_library(most, MINUTES, first_seed=seed, questions=args.questions, among=fewest)
    costs = []
    for films in args.libraries:
        library = lab_library(args.folder / f"needle-{films}")
        held = library.index.films()
        seeds = range(seed, seed + films)
        fill(library, [each for each in seeds if f"lab{each:08d}" not in held])
        costs.append(ask_all(library, world, films, args.method, seed))
    tell(part="needle", cost_growth=round(costs[-1] / costs[0], 2))


def ask_all(library: Library, world: LibraryWorld, films: int, method: str, seed: int) -> float:
    """Ask the library and the right film every question; returns the mean cost of the former."""
    session = Session(Settings(), ModelAssignment((MODEL,)))
    totals = Counter[str]()
    for question in world.questions:
        asked = question.asked
        name = f"{seed + question.film}:{MINUTES}"
        answer = ask_library(library, session, asked.question, method)
        alone = session.ask(LabSource().footage(name), asked.question, method)
        found = library.search(asked.question.text, films=1).films
        first = bool(answer.films) and answer.films[0].film.name == name
        totals["right_film_first"] += first
        totals["missed"] += not first
        totals["first_by_search_without_options"] += bool(found) and found[0].entry.name == name
        totals["accuracy"] += correct(answer.answer, asked)
        totals["accuracy_asked_directly"] += correct(alone.answer, asked)
        totals["cost"] += answer.usage.cost or 0.0
        totals["cost_asked_directly"] += alone.usage.cost or 0.0
    count = len(world.questions)
    figures = {name: round(total / count, 5) for name, total in totals.items()}
    figures["missed"] = totals["missed"]
    tell(part="needle", method=method, films=films, questions=count, **figures)
    return totals["cost"] / count


def correct(answer: Answer, asked: LabQuestion) -> bool:
    if asked.options:
        return answer.choice == asked.answer
    words = answer.text.lower()
    return all(word in words for word in asked.answer_text.lower().split())


PARTS = {part.__name__: part for part in (scale, cold, clips, needle)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--films", type=int, default=2000)
    parser.add_argument("--most", type=int, default=10**9, help="films added in one call")
    parser.add_argument("--libraries", type=int, nargs="+", default=[20, 200], help="of `needle`")
    parser.add_argument("--method", default="videoagent")
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--first-seed", type=int, default=1000)
    parser.add_argument("--clips", type=Path, help="a folder of real clips")
    given = parser.parse_args()
    given.folder = given.folder or Path(tempfile.mkdtemp(prefix="longtake-library-"))
    PARTS[given.part](given)


if __name__ == "__main__":
    main()
