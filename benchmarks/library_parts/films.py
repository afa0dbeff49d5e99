"""Lab films as a library, and how figures are told."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from pathlib import Path

import numpy as np

from longtake.config import Settings
from longtake.evals.benchmarks.lab import LabSource
from longtake.footage.protocol import Footage
from longtake.lab.facts import sentence
from longtake.lab.footage import LabEncoder, LabFootage
from longtake.lab.library import captions
from longtake.lab.prompt import Eyes
from longtake.lab.world import make_script
from longtake.library import Entry, Library
from longtake.library.catalog import Facts
from longtake.library.segments import FilmRows, Row, material_of_footage, rows_of
from longtake.perception.loader import PerceptionModels
from longtake.runner.films import open_film
from longtake.types import Line
from longtake.video.clip import Encoding, write_film
from longtake.video.container import NO_FILE

SCRIPT = Path(__file__).parent.parent / "library.py"
"""The benchmark itself, for parts that start processes."""
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
        lines: list[Line] = captions(script, Eyes(seed=7), step=STEP)
        self._texts = [line.text for line in lines]

    def captions(self, times):
        return [self._texts[int(time) // STEP] for time in times]


def lab_rows(seed: int, minutes: int = MINUTES) -> list[Row]:
    return rows_of(material_of_footage(Captioned(make_script(seed, minutes))), ENCODER)


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


def lab_library(folder: Path, settings: Settings | None = None) -> Library:
    settings = settings or Settings()
    perception = PerceptionModels(settings.perception, folder / "cache", images=ENCODER)
    source = LabSource()

    def opened(entry: Entry) -> Footage:
        if entry.fingerprint.startswith(MARK):
            return source.footage(entry.name)
        return open_film(entry.path, settings, senses=perception)

    return Library(
        folder / "library", settings, perception=perception, sentences=ENCODER, opener=opened
    )


def enter(library: Library, seed: int, minutes: int = MINUTES) -> Entry:
    mark, name = f"{MARK}{seed:08d}", f"{seed}:{minutes}"
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
        done = [sentence(deed.fact) for deed in script.deeds]
        texts.append(rng.choice(rng.choice([said, shown or said, done])))
    return texts


def write_files(folder: Path, seeds) -> list[Path]:
    """Lab films of a minute as files, one picture a second."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for seed in seeds:
        path = folder / f"film-{seed}.mp4"
        footage = LabFootage(make_script(seed, 1))
        if not path.exists():
            pictures = (frame.pixels for frame in footage.at(footage.times.tolist()))
            write_film(path, pictures, Encoding(fps=Fraction(1), gop=10))
        paths.append(path)
    return paths
