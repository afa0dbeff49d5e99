"""Benchmarks, one short module each, read in the formats their authors publish.

To add one, write a module with an :class:`BenchmarkInfo` and register it under a name: in
:data:`longtake.registry.benchmarks`, or from another package through an entry point::

    [project.entry-points."longtake.benchmarks"]
    mybenchmark = "mypackage.mybenchmark:ABOUT"
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from longtake.errors import ConfigError, unknown
from longtake.evals.benchmarks.files import malformed_files
from longtake.evals.items import Benchmark
from longtake.registry import benchmarks


@dataclass(frozen=True)
class BenchmarkInfo:
    """What a user needs to know to run a benchmark."""

    title: str
    get: str
    """What to download, and from whom."""
    layout: str
    """The files that the data folder must contain."""
    licence: str
    verified: bool
    """Whether the loader was tested on the real files; if not, it follows the documentation."""
    load: Callable[[Path, Mapping[str, str]], Benchmark]
    """Reads the data folder; options such as the split are passed as strings."""
    options: Mapping[str, str] = field(default_factory=dict)
    """The options it accepts, each with its meaning."""
    made: bool = False
    """Whether it is generated here and needs no files."""
    submission: tuple[str, str] | None = None
    """Columns of the file that its authors score: the question and the number of the option,
    counted from 0. ``None`` if they accept no such file."""


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
