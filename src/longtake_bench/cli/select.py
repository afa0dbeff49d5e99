"""``longtake select``."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from longtake._util import visible
from longtake.agents.team import read_team, write_team
from longtake.cli.options import COUNT, FILE, FOLDER, PATH, check_models, common, session_options
from longtake.cli.output import TEAM, Output, check_place, confirm, say, time_left, worth_a_line
from longtake.errors import ConfigError
from longtake.runner.session import Session
from longtake_bench import selection
from longtake_bench.benchmarks import load
from longtake_bench.cli.options import benchmark_files, benchmark_parts, retry_errors, workers
from longtake_bench.results import QuestionResult
from longtake_bench.selection import Selection

VIDEOS = 150
"""As in the paper."""


@click.command()
@click.argument("name", metavar="BENCHMARK")
@click.option(
    "--library",
    type=PATH,
    required=True,
    metavar="FILE",
    help="The agents to choose from, in the format of a team file.",
)
@benchmark_files("The benchmark's files; not needed for lab.")
@benchmark_parts
@click.option(
    "--videos",
    type=COUNT,
    metavar="N",
    help="One question about each of N videos, drawn at random by --seed.  [default: 150]",
)
@click.option("--sample", type=COUNT, metavar="N", help="N questions of any videos instead.")
@click.option("--top", type=COUNT, default=3, metavar="N", help="Agents in the team.")
@click.option(
    "--out", type=FILE, required=True, metavar="TEAM", help="The team file to write, for --team."
)
@click.option(
    "--runs", type=FOLDER, help="Where to keep each agent's answers.  [default: beside TEAM]"
)
@workers(1)
@retry_errors
@click.option(
    "--dry-run", is_flag=True, help="Show how many questions each agent would be asked, and stop."
)
@click.option("--yes", is_flag=True, help="Do not ask before anything is sent.")
@common
@session_options
def select(
    name: str,
    library: Path,
    data: Path | None,
    parts: dict[str, str],
    videos: int | None,
    sample: int | None,
    top: int,
    out: Path,
    runs: Path | None,
    workers: int,
    retry_errors: bool,
    dry_run: bool,
    yes: bool,
    session: Session,
) -> Output:
    """Choose a team from a library of agents, without labels.

    Every agent answers a question about each of some videos, as in LVAgent's first round. The most
    common answer stands in for the right one, and the agents that agree with it most often form
    the team, best first. Run the same command again to continue where it stopped.

    \b
    Example:
      longtake select lab --of seeds=0-2 --library library.toml --sample 60 --top 3 --out team.toml
      longtake select nextqa --data nextqa --library library.toml --dry-run --out team.toml
    """
    members = read_team(library)
    out.parent.mkdir(parents=True, exist_ok=True)
    check_place(out, TEAM, inputs=(library,))
    if top > len(members):
        raise ConfigError(f"--top {top}: {library} has only {len(members)} agents")
    if videos is None and sample is None:
        videos = VIDEOS
    benchmark = load(name, data, parts).draw(sample=sample, videos=videos, seed=session.seed)
    if dry_run:
        counted = f"{len(members)} agents × {len(benchmark.items)} questions of {benchmark.name}"
        planned = {"benchmark": name, "agents": len(members), "questions": len(benchmark.items)}
        return Output(planned, [counted])
    # asks every agent of the library, so all their hosts are announced
    assignment = replace(session.assignment, roster=members)
    asking = replace(session, assignment=assignment)
    check_models(asking, ("team",))
    if not yes and asking.hosts(("team",)):
        confirm()
    chosen = selection.select(
        members,
        benchmark,
        session,
        runs or out.with_suffix(".runs"),
        workers=workers,
        retry_errors=retry_errors,
        progress=_announcing(len(benchmark.items)),
    )
    asked = f"{len(chosen.videos)} questions of {benchmark.name}"
    notes = [f"Chosen by longtake select on {asked}, best first."]
    notes += [f"{each.member.name}: agrees in {each.agreement}" for each in chosen.ranking[:top]]
    write_team(out, chosen.team(top), notes)
    say(f"team: {out}")
    return Output(_plain(chosen, top, out), _lines(chosen, top))


def _plain(chosen: Selection, top: int, out: Path) -> dict[str, Any]:
    ranking = [
        {
            "name": each.member.name,
            "model": each.member.model,
            "agreement": each.agreement,
            "answered": each.answered,
            "frames": each.mean("frames"),
            "calls": each.mean("calls"),
            "in_team": rank < top,
        }
        for rank, each in enumerate(chosen.ranking)
    ]
    return {
        "team": out,
        "questions": len(chosen.videos),
        "ranking": ranking,
        "margin": chosen.margin(top),
    }


def _lines(chosen: Selection, top: int) -> Iterator[str]:
    """The ranking, and how clear the choice is."""
    usage = f"{'answered':>9}{'frames':>8}{'calls':>7}"
    yield f"{'':>3} {'agent':<20}{'agrees with most (95 %)':<40}{usage}"
    for rank, each in enumerate(chosen.ranking, start=1):
        agent = f"{each.member.name[:19]:<20}{each.agreement!s:<40}"
        usage = f"{each.answered:>9}{each.mean('frames'):>8.1f}{each.mean('calls'):>7.1f}"
        yield visible(f"{rank:>2}{'*' if rank <= top else ' '} {agent}{usage}")
    margin = chosen.margin(top)
    if margin is not None:
        caution = "" if margin.low > 0 else "; a larger sample may choose differently"
        yield f"the last in the team leads the first outside by {margin}{caution}"


def _announcing(count: int) -> Callable[[str, QuestionResult], None]:
    """Announces the results of each agent, with the time left."""
    began: dict[str, float] = {}
    done = Counter[str]()

    def announce(name: str, row: QuestionResult) -> None:
        began.setdefault(name, time.monotonic())
        done[name] += 1
        left = count - done[name]
        if worth_a_line(done[name], left):
            error = f"  error: {row.error}" if row.failed else ""
            rest = time_left(began[name], done[name], left)
            say(f"{name}: {done[name]} of at most {count} asked, {rest}{error}")

    return announce
