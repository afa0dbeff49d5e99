"""``longtake select``."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from longtake.cli.asking import asking_options, name_hosts
from longtake.cli.options import common, read_parts
from longtake.cli.output import emit_json, human_seconds, on_terminal, say
from longtake.cli.places import TEAM, check_place
from longtake.cli.tables import show_estimates
from longtake.display import visible
from longtake.errors import ConfigError
from longtake.evals import selection
from longtake.evals.benchmarks import load
from longtake.evals.items import Benchmark
from longtake.evals.selection import Ranked, Selection
from longtake.session.asking import Session
from longtake.steps.team import read_team, write_team


@click.command()
@click.argument("name", metavar="BENCHMARK")
@click.option(
    "--library",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE",
    help="The agents to choose from, a file like a team's.",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The benchmark's files; none for lab.",
)
@click.option(
    "--of",
    "chosen",
    multiple=True,
    metavar="KEY=VALUE",
    help="Which part of it; see 'longtake benchmarks'.",
)
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    default=150,
    show_default=True,
    metavar="N",
    help="Questions, drawn by --seed.",
)
@click.option(
    "--top",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    metavar="N",
    help="Agents in the team.",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    metavar="TEAM",
    help="The team file to write, for --team.",
)
@click.option(
    "--runs",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where each agent's answers are kept.  [default: beside TEAM]",
)
@click.option(
    "--workers", type=click.IntRange(min=1), default=1, show_default=True, help="Processes."
)
@click.option("--retry-errors", is_flag=True, help="Ask again what ended in an error.")
@click.option("--estimate", "only_estimate", is_flag=True, help="Say what it can cost, and stop.")
@click.option("--yes", is_flag=True, help="Do not ask before a selection that costs money.")
@common
@asking_options
def select(
    name: str,
    library: Path,
    data: Path | None,
    chosen: tuple[str, ...],
    sample: int,
    top: int,
    out: Path,
    runs: Path | None,
    workers: int,
    retry_errors: bool,
    only_estimate: bool,
    yes: bool,
    options: tuple[str, ...],
    subtitles: Path | None,
    session: Session,
    as_json: bool,
) -> None:
    """Choose a team from a library of agents, without labels.

    Every agent answers a sample of questions by itself, as in LVAgent's first round. The answer that most of them give
    stands for the right one; those who agree with it most often make up the team, best first. The same command goes on
    where it was stopped.

    \b
    Example:
      longtake select lab --of seeds=0-2 --library library.toml --sample 60 --top 3 --out team.toml
      longtake select nextqa --data nextqa --library library.toml --estimate --out team.toml
    """
    if options or subtitles:
        raise ConfigError("a benchmark brings its own options and subtitles")
    members = read_team(library)
    out.parent.mkdir(parents=True, exist_ok=True)
    check_place(out, TEAM, inputs=(library,))
    if top > len(members):
        raise ConfigError(f"--top {top}: {library} holds {len(members)} agents")
    benchmark = load(name, data, read_parts(chosen)).draw(sample=sample, seed=session.seed)
    bounds = selection.estimates(members, benchmark, session)
    if only_estimate and as_json:
        emit_json({"benchmark": name, "estimates": [asdict(each) for each in bounds]})
        return
    show_estimates(bounds, err=not only_estimate)
    if only_estimate:
        return
    with_library = replace(session.casting, roster=members)
    name_hosts(replace(session, casting=with_library), ("team",))
    if not yes and any(each.paid for each in bounds) and sys.stdin.isatty() and on_terminal():
        click.confirm("go on?", abort=True, err=True)
    folder = runs or out.with_suffix(".runs")
    found = selection.select(
        members,
        benchmark,
        session,
        folder,
        workers=workers,
        retry_errors=retry_errors,
        progress=_running(len(benchmark.items)),
    )
    write_team(out, found.team(top), notes_of(found, top, benchmark))
    if as_json:
        emit_json(plain(found, top, out))
    else:
        show(found, top)
        say(f"team: {out}")


def notes_of(found: Selection, top: int, benchmark: Benchmark) -> list[str]:
    """What a team file says of itself."""
    rates = [f"{each.member.name}: agrees in {each.agreement}" for each in found.ranking[:top]]
    return [
        f"Chosen by longtake select on {len(found.videos)} questions of {benchmark.name}, best first.",
        *rates,
    ]


def plain(found: Selection, top: int, out: Path) -> dict[str, Any]:
    """As ``--json`` has it."""
    margin = found.margin(top)
    return {
        "team": str(out),
        "questions": len(found.videos),
        "ranking": [
            {
                "name": each.member.name,
                "model": each.member.model,
                "agreement": asdict(each.agreement),
                "answered": each.answered,
                "frames": each.mean("frames"),
                "calls": each.mean("calls"),
                "in_team": rank < top,
            }
            for rank, each in enumerate(found.ranking)
        ],
        "margin": None if margin is None else asdict(margin),
    }


def show(found: Selection, top: int) -> None:
    """The ranking, and how sure the cut is."""
    click.echo(
        f"{'':>3} {'agent':<20}{'says what most say (95 %)':<40}{'answered':>9}{'frames':>8}{'calls':>7}"
    )
    for rank, each in enumerate(found.ranking, start=1):
        click.echo(_line(rank, each, in_team=rank <= top))
    if (margin := found.margin(top)) is not None:
        sure = "" if margin.low > 0 else "; a larger sample may choose otherwise"
        click.echo(f"the last in the team leads the first outside by {margin}{sure}")


def _line(rank: int, each: Ranked, *, in_team: bool) -> str:
    mark = "*" if in_team else " "
    return visible(
        f"{rank:>2}{mark} {each.member.name[:19]:<20}{each.agreement!s:<40}{each.answered:>9}"
        f"{each.mean('frames'):>8.1f}{each.mean('calls'):>7.1f}"
    )


def _running(count: int) -> Callable[[str, Mapping[str, Any]], None]:
    """A line per result on a terminal, one in twenty-five elsewhere."""
    began: dict[str, list[float]] = {}

    def show_result(name: str, row: Mapping[str, Any]) -> None:
        times = began.setdefault(name, [time.monotonic()])
        times.append(time.monotonic())
        done = len(times) - 1
        if on_terminal() or done % 25 == 0 or done == count:
            pace = (times[-1] - times[0]) / done
            error = f"  error: {row['error']}" if row["status"] == "error" else ""
            say(
                f"{name}: {done} of at most {count} asked, {human_seconds(pace * (count - done))} left{error}"
            )

    return show_result
