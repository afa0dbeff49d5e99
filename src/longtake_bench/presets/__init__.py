"""The papers' experiments and tables: one TOML file per paper, with the published figures.

An experiment is what a preset of ``longtake eval`` runs. A row of a table is an experiment for each
of the table's columns, with other fields, models or another method where the row says so. Such a
row has a name, which ``--ablation`` takes.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from longtake.config import PerceptionSettings
from longtake.errors import ConfigError, unknown
from longtake.methods.base import FULL
from longtake.perception.loader import is_downloaded


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
class PaperEncoder:
    """What a paper sees, reads or hears with, and the nearest that longtake has."""

    setting: str
    """The field of ``[perception]`` that chooses ours."""
    paper: str
    """The encoder as the paper names it, with a note on what it leaves open."""
    nearest: str = ""
    """The value of the setting that comes nearest; empty: there is no choice."""
    same: bool = False
    """Whether that is the encoder that the paper names."""
    ours: str = ""
    """What is used where there is no choice."""

    def used(self, perception: PerceptionSettings) -> str:
        """What the settings use in its place; empty if that is the paper's encoder."""
        chosen = getattr(perception, self.setting)
        if not self.nearest:
            return self.ours if chosen else "nothing"
        # PyTorch runs any model of this shape from a folder, which is named as the model is
        folder = Path(getattr(perception, f"{self.setting}_folder", ""))
        if chosen == "transformers":
            return "" if folder.name.lower() == self.paper.lower() else f"transformers, {folder}"
        return "" if self.same and chosen == self.nearest else str(chosen)


@dataclass(frozen=True)
class EvalPreset:
    """What to run, and what is known about the original experiment."""

    name: str
    title: str
    benchmark: str
    method: str
    departs: str = ""
    """How this differs from the paper's experiment."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Options of the benchmark, such as the split."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the method."""
    baseline: Mapping[str, Any] = field(default_factory=dict)
    """Fields of another method that is compared on this benchmark."""
    encoders: tuple[PaperEncoder, ...] = ()
    ablation: str = ""
    """The name of the row that it belongs to, if that changes anything."""
    models: tuple[str, ...] = ()
    """The paper's models in the notation of ``--model``: at a public server, or by the names that
    the user's configuration must give them."""
    team: tuple[str, ...] = ()
    """The models of the paper's team, likewise; of a tie, the one listed later leaves."""
    captions: str = ""
    """What wrote the captions that the benchmark comes with."""
    questions: int | None = None
    """How many questions it has, where the paper says so."""
    seconds: float | None = None
    """The mean length of its videos, likewise."""
    published: tuple[Published, ...] = ()

    @property
    def used(self) -> str:
        """What the paper used: models, captions and encoders."""
        team = [f"a team of {', '.join(self.team)}"] if self.team else []
        captions = [f"captions of {self.captions}"] if self.captions else []
        return "; ".join([*self.models, *team, *captions, *(each.paper for each in self.encoders)])

    def advice(self, differences: Sequence[str], missing: Sequence[str]) -> str:
        """What to do about these differences, if these encoders could be downloaded."""
        pulls = " and ".join(f"'longtake models pull {each}'" for each in missing)
        own = [each.nearest for each in self.encoders if each.same]
        if not pulls:
            return "pass --allow-differences"
        if len(missing) == len(differences) and set(missing) <= {*own}:
            return f"run {pulls}, or pass --allow-differences"
        return f"pass --allow-differences; {pulls} gets the nearest, which differs, too"

    @property
    def perceives(self) -> str:
        """Its encoders, and ours for them."""
        pairs = [f"{each.nearest or each.ours} for {each.paper}" for each in self.encoders]
        return ", ".join(pairs)

    def command(self, *more: str) -> list[str]:
        """The command line that runs it, without the files."""
        ablation = ["--ablation", self.ablation] if self.ablation else []
        return ["longtake", "eval", "--preset", self.name, *ablation, *more]

    def perception(
        self, settings: PerceptionSettings, cache: Path
    ) -> tuple[PerceptionSettings, list[str], list[str]]:
        """The settings with the paper's encoders, or the nearest that are downloaded.

        Also the differences that remain, and what could be downloaded. What the user has chosen
        stays.
        """
        differences, missing = [], []
        for encoder in self.encoders:
            usual = getattr(PerceptionSettings(), encoder.setting)
            if encoder.nearest and getattr(settings, encoder.setting) == usual:
                if is_downloaded(encoder.nearest, cache):
                    chosen: dict[str, Any] = {encoder.setting: encoder.nearest}
                    settings = replace(settings, **chosen)
                else:
                    missing.append(encoder.nearest)
            if used := encoder.used(settings):
                differences.append(f"{used} instead of {encoder.paper}")
        return settings, differences, missing


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


@cache
def read_paper(name: str) -> Paper:
    """The experiments and tables of a paper."""
    if name not in papers():
        raise unknown("paper", name, papers())
    file = resources.files(__name__) / f"{name}.toml"
    data = tomllib.loads(file.read_text(encoding="utf-8"))
    usual = data.get("encoders", {})
    experiments = {
        key: EvalPreset(
            name=key,
            method=data["method"],
            fields={"preset": "paper", **given.pop("fields", {})},
            models=tuple(given.pop("models", data.get("models", ()))),
            team=tuple(given.pop("team", ())),
            encoders=_encoders({**usual, **given.pop("encoders", {})}),
            departs=given.pop("departs", data.get("departs", "")),
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
    for number, what in data.get("without_results", {}).items():
        tables.append(PaperTable(number, f"no results: {what}", ()))
    for key, experiment in experiments.items():
        figures = _figures(data["paper"], key, tables)
        experiments[key] = replace(experiment, published=tuple(figures))
    return Paper(data["paper"], experiments, tuple(tables))


def _cells(table: Mapping[str, Any], experiments: Mapping[str, EvalPreset]) -> Iterator[TableCell]:
    for number, row in enumerate(table["rows"], 1):
        for column, published in zip(table["columns"], row["published"], strict=True):
            experiment = experiments[column]
            method = row.get("method", experiment.method)
            # another method does not have the paper's fields, and does not search
            same_method = method == experiment.method
            encoders = experiment.encoders if same_method else ()
            changes = row.keys() & {"method", "fields", "encoders", "models", "team"}
            experiment = replace(
                experiment,
                method=method,
                fields={
                    **(experiment.fields if same_method else {"preset": FULL}),
                    **({} if same_method else experiment.baseline),
                    **row.get("fields", {}),
                },
                encoders=_encoders(row["encoders"]) if "encoders" in row else encoders,
                departs=experiment.departs if same_method else "",
                models=tuple(row.get("models", experiment.models)),
                team=tuple(row.get("team", () if "models" in row else experiment.team)),
                ablation=_slug(row["row"]) if changes else "",
            )
            if not math.isnan(published):
                yield TableCell(row["row"], number, experiment, published, row.get("cannot", ""))


def _encoders(given: Mapping[str, Mapping[str, Any]]) -> tuple[PaperEncoder, ...]:
    return tuple(PaperEncoder(setting, **facts) for setting, facts in given.items())


def _slug(row: str) -> str:
    """The name of an ablation: ``without propagation`` is ``no-propagation``."""
    return re.sub(r"[^a-z0-9.]+", "-", re.sub("^without ", "no ", row.lower())).strip("-")


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


def read(name: str, ablation: str | None = None) -> EvalPreset:
    """Read the preset with that name, or one of its ablations with the figures of that row."""
    for paper in map(read_paper, papers()):
        if name in paper.experiments:
            return paper.experiments[name] if ablation is None else _ablated(paper, name, ablation)
    raise unknown("preset", name, names())


def _ablated(paper: Paper, name: str, ablation: str) -> EvalPreset:
    rows: dict[str, tuple[PaperTable, TableCell]] = {}
    for table in paper.tables:
        for cell in table.cells:
            if cell.experiment.name == name and cell.experiment.ablation:
                rows.setdefault(cell.experiment.ablation, (table, cell))
    if ablation not in rows:
        # all of them: their names cannot be guessed
        listed = ", ".join(rows) or "none"
        raise ConfigError(f"{name} has no ablation {ablation!r}; it has: {listed}", key=ablation)
    table, cell = rows[ablation]
    if cell.cannot:
        raise ConfigError(f"{name}, {cell.row}: {cell.cannot}", key=ablation)
    figure = Published(cell.published, cell.row, f"{paper.paper}, {_named(table.table)}")
    return replace(cell.experiment, published=(figure,))
