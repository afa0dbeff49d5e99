"""Benchmarks, read in the formats their authors publish.

To add one, write a module with a :class:`BenchmarkInfo` and register it under a name: in
:data:`benchmarks`, or from another package through an entry point::

    [project.entry-points."longtake.benchmarks"]
    mybenchmark = "mypackage.mybenchmark:ABOUT"

Labels never leave the process that scores. Solvers run in separate processes, without a copy of
this one's memory, and receive :class:`BenchmarkQuestion` only: what a person taking the test would
see.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from longtake.errors import ConfigError, unknown
from longtake.footage.protocol import Footage
from longtake.registry import Registry
from longtake.types import Question, Segment
from longtake_bench.benchmarks.files import malformed_files

NOT_TOLD = "(not told)"
"""Label of a question that cannot be answered: the right outcome is an abstention."""


benchmarks = Registry(
    "benchmark",
    "longtake.benchmarks",
    {
        "egoschema": "longtake_bench.benchmarks.short_clips:EGOSCHEMA",
        "egoschema-captions": "longtake_bench.benchmarks.short_clips:EGOSCHEMA_CAPTIONS",
        "nextqa": "longtake_bench.benchmarks.short_clips:NEXTQA",
        "nextqa-captions": "longtake_bench.benchmarks.short_clips:NEXTQA_CAPTIONS",
        "films": "longtake_bench.benchmarks.films:ABOUT",
        "nextgqa": "longtake_bench.benchmarks.short_clips:NEXTGQA",
        "nextgqa-captions": "longtake_bench.benchmarks.short_clips:NEXTGQA_CAPTIONS",
        "videomme": "longtake_bench.benchmarks.long_videos:VIDEOMME",
        "longvideobench": "longtake_bench.benchmarks.long_videos:LONGVIDEOBENCH",
        "mlvu": "longtake_bench.benchmarks.long_videos:MLVU",
        "lvbench": "longtake_bench.benchmarks.long_videos:LVBENCH",
        "meetings": "longtake_bench.benchmarks.meetings:ABOUT",
        "lab": "longtake_bench.benchmarks.lab:ABOUT",
        "lab-captions": "longtake_bench.benchmarks.lab:CAPTIONS",
    },
)
"""Questions with labels; each is a ``BenchmarkInfo`` of :mod:`longtake_bench.benchmarks`."""

SEVERAL = " + "
"""Between the groups of a question that belongs to several."""


@dataclass(frozen=True)
class BenchmarkQuestion:
    """A question as solvers receive it."""

    id: str
    video: str
    question: Question
    removed: tuple[Segment, ...] = ()
    """Stretches of the video that are hidden from the solver; see :mod:`longtake_bench.audit`."""


@dataclass(frozen=True)
class LabelledQuestion:
    """A question with what scoring needs."""

    asked: BenchmarkQuestion
    label: str | None
    """The letter of the right option or, for an open question, the right answer.

    ``None`` if the label is not public.
    """
    tags: Mapping[str, str] = field(default_factory=dict)
    """Groups to break scores down by, such as ``{"type": "causal"}``. A question that belongs to
    several groups names them all, with :data:`SEVERAL` between them."""
    evidence: tuple[Segment, ...] = ()
    """Where the answer is visible, if known."""
    accepted: tuple[str, ...] = ()
    """Other right answers to an open question."""


class VideoSource(Protocol):
    """Opens videos for solvers. It is pickled and sent to their processes, so it holds no label.

    If it is a dataclass with a field ``settings``, it opens them with the settings of the run.
    """

    def footage(self, video: str) -> Footage:
        """The video with that name."""


@dataclass(frozen=True)
class Benchmark:
    """Questions, and where their videos come from."""

    name: str
    items: Sequence[LabelledQuestion]
    source: VideoSource
    files: Mapping[str, str] = field(default_factory=dict)
    """Hashes of the files that were read, by file name."""
    settings: Mapping[str, object] = field(default_factory=dict)
    """Whatever else determines the questions: the split, the hash of a profile."""
    options: Mapping[str, str] = field(default_factory=dict)
    """The options it was loaded with, so that it can be loaded again."""

    def draw(
        self,
        *,
        limit: int | None = None,
        sample: int | None = None,
        videos: int | None = None,
        seed: int = 0,
    ) -> Benchmark:
        """The first questions, random ones, or one about each of some videos, in their order."""
        items = list(self.items)
        if videos is not None:
            groups: dict[str, list[LabelledQuestion]] = {}
            for item in items:
                groups.setdefault(item.asked.video, []).append(item)
            names = sorted(groups)
            # shuffled and cut, so that a larger sample contains the smaller ones
            random.Random(seed).shuffle(names)
            drawn = [
                random.Random(f"{seed} {name}").choice(groups[name]) for name in names[:videos]
            ]
            kept_ids = {item.asked.id for item in drawn}
            items = [item for item in items if item.asked.id in kept_ids]
        if sample is not None and sample < len(items):
            # numbers are drawn and sorted, so that the order stays the benchmark's
            kept = sorted(random.Random(seed).sample(range(len(items)), sample))
            items = [items[number] for number in kept]
        settings = {**self.settings, "limit": limit, "sample": sample, "videos": videos}
        return replace(self, items=items[:limit], settings=settings)


@dataclass(frozen=True)
class BenchmarkInfo:
    """What a user needs to know to run a benchmark."""

    title: str
    get: str
    """What to download, and from whom."""
    layout: str
    """The files that the data folder must contain."""
    licence: str
    load: Callable[[Path, Mapping[str, str]], Benchmark]
    """Reads the data folder; options such as the split are passed as strings."""
    verified: Mapping[str, str] = field(default_factory=dict)
    """The SHA-256 of every real annotation file that the loader was run on, by its name. Without
    one the loader follows the documentation, or rows of the real files."""
    options: Mapping[str, str] = field(default_factory=dict)
    """The options it accepts, each with its meaning."""
    made: bool = False
    """Whether it is generated here and needs no files."""
    submission: Callable[[Sequence[tuple[LabelledQuestion, str | None]]], str] | None = None
    """Writes the file that its authors score, from questions and the letters of the answers.
    ``None`` if they accept no such file."""


def about(name: str) -> BenchmarkInfo:
    """The description of a registered benchmark."""
    # no addresses: reports take the name from a run's spec, which must not decide what is imported
    if name not in benchmarks:
        raise unknown("benchmark", name, benchmarks)
    described = benchmarks.get(name)
    if not isinstance(described, BenchmarkInfo):
        raise ConfigError(f"{name} is not a benchmark: expected a BenchmarkInfo", key=name)
    return described


def load(name: str, folder: Path | None, options: Mapping[str, str]) -> Benchmark:
    """Read a benchmark's files; errors name what is missing."""
    described = about(name)
    for option in options:
        if option not in described.options:
            raise unknown("option", option, described.options, where=name)
    if not described.made:
        needed = f"{described.layout} ({described.get})"
        if folder is None:
            raise ConfigError(f"{name}: name the folder of its files with --data: {needed}")
        if not folder.is_dir():
            raise ConfigError(f"{name}: {folder} is not a folder; it must contain {needed}")
    with malformed_files(f"{name}: its files are not as documented"):
        benchmark = described.load(folder or Path(), options)
    # a report loads the benchmark again, by the name and the options in the run's spec
    return replace(benchmark, name=name, options=dict(options))
