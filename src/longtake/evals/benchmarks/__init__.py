"""Benchmarks, one short file each, read in their native formats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path

from longtake.errors import ConfigError, unknown
from longtake.evals.items import Benchmark


@dataclass(frozen=True)
class About:
    """What a user needs to know to run a benchmark."""

    name: str
    title: str
    get: str
    """What to download, and from whom."""
    layout: str
    """What must lie in the folder."""
    licence: str
    verified: bool
    """Whether the loader was held against real files; otherwise it is written from the documentation."""
    load: Callable[[Path, Mapping[str, str]], Benchmark]
    """Reads the folder; options such as the split come as words."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Options it takes, each with what it means."""
    made: bool = False
    """Whether it is made here, and has no files."""
    submission: tuple[str, str] | None = None
    """Columns of the file its authors score, question and number of the option from 0; ``None``: they take none."""


NAMES = (
    "egoschema",
    "egoschema-captions",
    "nextqa",
    "nextqa-captions",
    "videomme",
    "longvideobench",
    "mlvu",
    "lvbench",
    "lab",
    "lab-captions",
)


def about(name: str) -> About:
    """The benchmark of that name."""
    if name not in NAMES:
        raise unknown("benchmark", name, NAMES)
    family, _, variant = name.partition("-")
    module = import_module(f"longtake.evals.benchmarks.{family}")
    found: About = getattr(module, variant.upper() or "ABOUT")
    return found


def load(name: str, folder: Path | None, options: Mapping[str, str]) -> Benchmark:
    """Read a benchmark's files; a missing one is named."""
    described = about(name)
    for option in options:
        if option not in described.options:
            raise unknown("option", option, described.options, where=name)
    if not described.made:
        if folder is None:
            raise ConfigError(
                f"{name}: name the folder of its files with --data: {described.layout} ({described.get})"
            )
        if not folder.is_dir():
            raise ConfigError(
                f"{name}: {folder} is no folder; it must hold {described.layout} ({described.get})"
            )
    return replace(described.load(folder or Path(), options), options=dict(options))
