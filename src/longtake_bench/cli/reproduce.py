"""``longtake reproduce``."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from longtake.cli.options import COUNT, PATH, common
from longtake.cli.output import Output, say
from longtake.config import Settings, cache_folder
from longtake.errors import ConfigError, RunError, unknown
from longtake.llm.catalog import ModelCatalog
from longtake.methods.base import configure
from longtake.registry import methods
from longtake.runner.assignment import read_role_assignment
from longtake_bench.cli.options import ablation_option, allow_differences
from longtake_bench.presets import PaperTable, TableCell, papers, read_paper
from longtake_bench.report import read_labelled


@click.command()
@click.argument("paper", type=click.Choice(papers()))
@click.option("--table", metavar="NAME", help="One table or figure, such as 5 or 'figure 3'.")
@click.option("--row", "rows", type=COUNT, multiple=True, metavar="N", help="One row; repeatable.")
@ablation_option
@allow_differences
@click.option(
    "--data",
    "folders",
    multiple=True,
    metavar="[BENCHMARK=]DIR",
    help="The files of all benchmarks, or of one; repeatable.",
)
@click.option("--model", "models", multiple=True, metavar="[ROLE=]NAME", help="As for eval.")
@click.option("--team", type=PATH, metavar="FILE", help="A team file, for team methods.")
@click.option("--limit", type=COUNT, metavar="N", help="Only the first N questions of each.")
@click.option("--out", type=PATH, metavar="DIR", help="Where the runs are kept.")
@click.option("--dry-run", is_flag=True, help="List rows and commands; run nothing.")
@common
def reproduce(
    paper: str,
    table: str | None,
    rows: tuple[int, ...],
    ablation: str | None,
    allow_differences: bool,
    folders: tuple[str, ...],
    models: tuple[str, ...],
    team: Path | None,
    limit: int | None,
    out: Path | None,
    dry_run: bool,
    settings: Settings,
) -> Output:
    """Repeat the tables of a paper row by row, beside the published figures.

    Each row is one 'longtake eval' command, which --dry-run prints. Interrupted rows continue
    where they stopped. Without --model or --team, each row uses the paper's models by the names
    that --dry-run lists: define them in your configuration, or choose rows with --row and give them
    --model or --team.

    \b
    Example:
      longtake reproduce videodetective --table 3 --dry-run
      longtake reproduce symphony --data LVBench --out repro --model gpt-4o
    """
    chosen = _chosen(paper, table, rows, ablation)
    data = _folders(folders)
    given = [word for model in models for word in ("--model", model)]
    given += ["--allow-differences"] if allow_differences else []
    given += ["--team", str(team)] if team is not None else []
    given += ["--limit", str(limit)] if limit is not None else []
    # each row gets the options for settings, too
    shared = click.get_current_context().params
    given += [word for text in shared["assignments"] for word in ("--set", text)]
    given += ["--config", str(shared["config_file"])] if shared["config_file"] else []
    if dry_run:
        unnamed = () if models or team else _unnamed(chosen, settings)
        planned = Commands(given, data, out or Path("repro"), settings)
        return _list(paper, chosen, planned, unnamed)
    if out is None:
        raise ConfigError("missing --out: a folder for the runs; or pass --dry-run")
    compared, failed = [], 0
    for title, cell in _cells(chosen):
        if cell.cannot:
            say(f"{title}, row {cell.number} ({cell.row}): {cell.cannot}")
            continue
        place = out / paper / title.removeprefix("table ") / cell.folder
        line = _command(cell, given, data, place)
        say(f"{title}, row {cell.number} ({cell.row}): {shlex.join(line)}")
        ended = subprocess.run(
            [sys.executable, "-m", "longtake", *line[1:], "--resume"], stdout=subprocess.DEVNULL
        )
        if ended.returncode:
            failed = failed or ended.returncode
            say(f"ended with exit code {ended.returncode}; continuing with the other rows")
            continue
        compared.append((title, cell, _accuracy(place, data)))
    return replace(_compare(compared), exit_code=failed)


def _chosen(
    paper: str, table: str | None, rows: Sequence[int], ablation: str | None
) -> list[PaperTable]:
    """The tables, with the rows that were asked for."""
    known = {each.table: each for each in read_paper(paper).tables}
    if table is not None and table not in known:
        raise unknown("table", table, list(known), where=paper)
    chosen = list(known.values()) if table is None else [known[table]]
    if ablation is not None:
        named = {cell.experiment.ablation for each in chosen for cell in each.cells} - {""}
        if ablation not in named:
            listed = ", ".join(sorted(named)) or "none"
            raise ConfigError(f"{paper} has no ablation {ablation!r}; it has: {listed}")
        chosen = _with_cells(chosen, lambda cell: cell.experiment.ablation == ablation)
    if not rows:
        return chosen
    if table is None:
        raise ConfigError("--row needs --table")
    numbers = {cell.number for each in chosen for cell in each.cells}
    for row in rows:
        if row not in numbers:
            raise ConfigError(f"table {table} of {paper} has no row {row}")
    return _with_cells(chosen, lambda cell: cell.number in rows)


def _with_cells(
    tables: Sequence[PaperTable], chosen: Callable[[TableCell], bool]
) -> list[PaperTable]:
    """The tables with some of their cells; tables without any are left out."""
    kept = []
    for table in tables:
        if cells := tuple(filter(chosen, table.cells)):
            kept.append(replace(table, cells=cells))
    return kept


def _folders(given: Sequence[str]) -> dict[str, Path]:
    """Folders by benchmark; the empty name stands for every other one."""
    folders = {}
    for text in given:
        name, equals, folder = text.rpartition("=")
        folders[name if equals else ""] = Path(folder)
    return folders


def _cells(tables: Sequence[PaperTable]) -> Iterator[tuple[str, TableCell]]:
    return ((f"table {table.table}", cell) for table in tables for cell in table.cells)


def _command(
    cell: TableCell, given: Sequence[str], data: Mapping[str, Path], place: Path
) -> list[str]:
    """The command of a cell, with ``DATA`` as a placeholder if no folder is given."""
    experiment = cell.experiment
    folder = data.get(experiment.benchmark, data.get("", Path("DATA")))
    # by default, models and teams are those of the preset
    return experiment.command("--data", str(folder), *given, "--out", str(place))


@dataclass(frozen=True)
class Commands:
    """The commands of cells as they are listed: they run as they stand."""

    given: Sequence[str]
    data: Mapping[str, Path]
    out: Path
    settings: Settings

    def of(self, cell: TableCell, place: str) -> str:
        """The command of a cell; other encoders than the paper's are allowed where it has them."""
        given, cache = self.given, cache_folder(self.settings)
        _, different, _ = cell.experiment.perception(self.settings.perception, cache)
        if different and "--allow-differences" not in given:
            given = [*given, "--allow-differences"]
        return shlex.join(_command(cell, given, self.data, self.out / place / cell.folder))


def _unnamed(tables: Sequence[PaperTable], settings: Settings) -> list[str]:
    """The models of the rows that are neither configured nor known by name."""
    named: dict[str, None] = {}
    for _, cell in _cells(tables):
        if not cell.cannot:
            models = [read_role_assignment(text).model for text in cell.experiment.models]
            named |= dict.fromkeys([*models, *cell.experiment.team])
    catalogue, unnamed = ModelCatalog(settings), []
    for name in named:
        try:
            catalogue.entry(name)
        except ConfigError:
            unnamed.append(name)
    return unnamed


def _list(
    paper: str, tables: Sequence[PaperTable], planned: Commands, unnamed: Sequence[str]
) -> Output:
    """The rows of the tables with their commands."""
    rows: list[dict[str, Any]] = []
    lines: list[str] = []
    for table in tables:
        lines.append(f"{paper}, table {table.table}: {table.title}")
        for name in dict.fromkeys(cell.experiment.name for cell in table.cells):
            experiment = read_paper(paper).experiments[name]
            departs = f"; {experiment.departs}" if experiment.departs else ""
            lines.append(f"  {name}: {experiment.perceives}{departs}")
        for cell in table.cells:
            line = planned.of(cell, f"{paper}/{table.table}")
            row = {
                "table": table.table,
                "row": cell.number,
                "name": cell.row,
                "experiment": cell.experiment.name,
                "published": cell.published,
                "models": cell.experiment.used,
                "size": size(cell),
            }
            used = f"({cell.experiment.name}; {cell.experiment.used})"
            lines.append(f"  {cell.number}. {cell.row}: {cell.published:.1f} % {used}")
            if cell.cannot:
                rows.append({**row, "cannot": cell.cannot})
                lines.append(f"     cannot be run: {cell.cannot}")
            else:
                rows.append({**row, "command": line})
                lines += [f"     {line}", f"     {row['size']}"]
        if table.others:
            lines.append(f"  systems that longtake does not have: {', '.join(table.others)}")
    if unnamed:
        lines.append(f"models to define in config.toml: {', '.join(unnamed)}")
    elif not tables:
        experiments = ", ".join(read_paper(paper).experiments)
        lines.append(f"no table of {paper} is available; see the presets of eval: {experiments}")
    return Output({"paper": paper, "rows": rows, "models_to_configure": unnamed}, lines)


def size(cell: TableCell) -> str:
    """How many questions a row has, about films of which length, and the frames of its method."""
    experiment = cell.experiment
    method = configure(methods.get(experiment.method), experiment.fields)
    asked = "a number of questions that is not stated"
    known = [asked if experiment.questions is None else f"{experiment.questions:,} questions"]
    if experiment.seconds:
        known.append(f"films of {experiment.seconds:.0f} s")
    shown = getattr(method, "frames", None)
    if isinstance(shown, int):
        known.append(f"{shown} frames a question")
    return ", ".join(known)


def _accuracy(place: Path, data: Mapping[str, Path]) -> str:
    try:
        return read_labelled(place, tuple(data.values())).accuracy
    except (RunError, ConfigError) as error:
        return f"cannot be scored: {error}"


def _compare(compared: Sequence[tuple[str, TableCell, str]]) -> Output:
    """Our figures beside the published ones."""
    rows = []
    lines = ["| row | experiment | published | ours |", "|---|---|---|---|"] if compared else []
    for title, cell, ours in compared:
        name = cell.experiment.name
        row = {"table": title, "row": cell.row, "experiment": name}
        rows.append({**row, "published": cell.published, "ours": ours})
        lines.append(f"| {title}, {cell.row} | {name} | {cell.published:.1f} % | {ours} |")
    return Output({"rows": rows}, lines)
