"""The papers' experiments and tables: one TOML file per paper, with the published figures.

An experiment is what a preset of ``longtake eval`` runs. A row of a table is an experiment for each
of the table's columns, with other fields, models or another method where the row says so.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import Any

from longtake.errors import unknown
from longtake.methods.base import FULL


@dataclass(frozen=True)
class Published:
    """A published figure. It is shown as such and never enters a computation."""

    accuracy: float
    """In per cent."""
    system: str
    where: str
    """The paper and the table."""

    def row(self, preset: str) -> list[str]:
        """The figure as a row of a table: system, accuracy, source."""
        return [f"{self.system} ({preset})", f"{self.accuracy:.1f} %", self.where]


@dataclass(frozen=True)
class EvalPreset:
    """What to run, and what is known about the original experiment."""

    name: str
    title: str
    benchmark: str
    method: str
    used: str
    """The models that the paper used."""
    departs: str = ""
    """How this differs from the paper's experiment."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Options of the benchmark, such as the split."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the method."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Other settings, such as the encoder."""
    models: tuple[str, ...] = ()
    """The paper's models in the notation of ``--model``, if a public server offers them.

    If empty, the user has to name models.
    """
    questions: int | None = None
    """How many questions it has, where the paper says so."""
    seconds: float | None = None
    """The mean length of its videos, likewise."""
    published: tuple[Published, ...] = ()

    def command(self, *more: str) -> list[str]:
        """The command line that runs it, without the files."""
        line = ["longtake", "eval", self.benchmark, "--method", self.method, "--no-verify"]
        for option, value in self.options.items():
            line += ["--of", f"{option}={value}"]
        settings = {f"{self.method}.{name}": value for name, value in self.fields.items()}
        for key, value in {**settings, **self.settings}.items():
            text = str(value).lower() if isinstance(value, bool) else str(value)
            line += ["--set", f"{key}={text}"]
        return [*line, *more]


@dataclass(frozen=True)
class TableCell:
    """A figure of a table, and the experiment behind it."""

    row: str
    number: int
    """The row's place in the table, from 1."""
    experiment: EvalPreset
    published: float
    cannot: str = ""
    """Why it cannot be run; empty if it can."""

    @property
    def folder(self) -> str:
        """Where its run is kept, within the folder of the table."""
        return f"{self.number}-{self.experiment.name}"


@dataclass(frozen=True)
class PaperTable:
    """A table of a paper."""

    table: str
    title: str
    cells: tuple[TableCell, ...]
    others: tuple[str, ...] = ()
    """Rows about systems that longtake does not have: their figures are their authors'."""


@dataclass(frozen=True)
class Paper:
    """A paper's experiments and tables."""

    paper: str
    experiments: Mapping[str, EvalPreset]
    tables: tuple[PaperTable, ...]


def papers() -> list[str]:
    """The names of all papers: those of their methods."""
    files = [entry.name for entry in resources.files(__name__).iterdir()]
    return sorted(file.removesuffix(".toml") for file in files if file.endswith(".toml"))


def read_paper(name: str) -> Paper:
    """The experiments and tables of a paper."""
    if name not in papers():
        raise unknown("paper", name, papers())
    file = resources.files(__name__) / f"{name}.toml"
    data = tomllib.loads(file.read_text(encoding="utf-8"))
    experiments = {
        key: EvalPreset(
            name=key,
            method=data["method"],
            fields={"preset": "paper"},
            models=tuple(given.pop("models", ())),
            **given,
        )
        for key, given in data.get("experiments", {}).items()
    }
    tables = []
    for given in data.get("tables", ()):
        cells = tuple(_cells(given, experiments))
        tables.append(
            PaperTable(given["table"], given["title"], cells, tuple(given.get("others", ())))
        )
    for key, experiment in experiments.items():
        figures = _figures(data["paper"], key, tables)
        experiments[key] = replace(experiment, published=tuple(figures))
    return Paper(data["paper"], experiments, tuple(tables))


def _cells(table: Mapping[str, Any], experiments: Mapping[str, EvalPreset]) -> Iterator[TableCell]:
    for number, row in enumerate(table["rows"], 1):
        for column, published in zip(table["columns"], row["published"], strict=True):
            experiment = experiments[column]
            method = row.get("method", experiment.method)
            # another method does not have the paper's fields
            fields = experiment.fields if method == experiment.method else {"preset": FULL}
            experiment = replace(
                experiment,
                method=method,
                fields={**fields, **row.get("fields", {})},
                settings=row.get("settings", {}),
                used=row.get("used", experiment.used),
                models=() if "used" in row else experiment.models,
            )
            if not math.isnan(published):
                yield TableCell(row["row"], number, experiment, published, row.get("cannot", ""))


def _figures(paper: str, column: str, tables: list[PaperTable]) -> Iterator[Published]:
    """The figures of the first table that has the experiment, which is the paper's main one."""
    for table in tables:
        found = [cell for cell in table.cells if cell.experiment.name == column]
        if found:
            where = f"{paper}, {_named(table.table)}"
            yield from (Published(cell.published, cell.row, where) for cell in found)
            return


def _named(table: str) -> str:
    return f"Table {table}" if table.isdigit() else table


def names() -> list[str]:
    """The names of all presets."""
    return sorted(name for paper in papers() for name in read_paper(paper).experiments)


def read(name: str) -> EvalPreset:
    """Read the preset with that name."""
    for paper in papers():
        if name in (experiments := read_paper(paper).experiments):
            return experiments[name]
    raise unknown("preset", name, names())
