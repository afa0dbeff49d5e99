"""``longtake eval``."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from longtake.cli.asking import asking_options, name_hosts
from longtake.cli.options import common, read_parts
from longtake.cli.output import emit_json, human_seconds, on_terminal, say
from longtake.errors import ConfigError
from longtake.evals import presets
from longtake.evals import report as reports
from longtake.evals.benchmarks import load
from longtake.evals.items import Benchmark
from longtake.evals.markdown import markdown
from longtake.evals.presets import Preset
from longtake.evals.runner import evaluate
from longtake.evals.runs import RunFolder
from longtake.evals.scoring import correct
from longtake.evals.solving import Solver
from longtake.registry import methods
from longtake.session.asking import DEFAULT_METHOD, Session
from longtake.session.casting import Casting


@click.command("eval")
@click.argument("name", metavar="[BENCHMARK]", required=False)
@click.option(
    "--preset", metavar="NAME", help="An experiment of a paper; see 'longtake benchmarks'."
)
@click.option(
    "--data", type=click.Path(path_type=Path), metavar="DIR", help="The benchmark's files."
)
@click.option(
    "--of",
    "chosen",
    multiple=True,
    metavar="KEY=VALUE",
    help="Which part of it; see 'longtake benchmarks'.",
)
@click.option(
    "--method", metavar="NAME", help=f"See 'longtake methods'.  [default: {DEFAULT_METHOD}]"
)
@click.option(
    "--limit", type=click.IntRange(min=1), metavar="N", help="Only the first N questions."
)
@click.option(
    "--sample", type=click.IntRange(min=1), metavar="N", help="N questions drawn by --seed."
)
@click.option(
    "--workers", type=click.IntRange(min=1), default=1, show_default=True, help="Processes."
)
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, metavar="RUN", help="The run's folder."
)
@click.option("--resume", is_flag=True, help="Go on with the run in that folder.")
@click.option("--retry-errors", is_flag=True, help="Ask again what ended in an error.")
@click.option("--traces", is_flag=True, help="Keep a trace of every question, without pictures.")
@common
@asking_options
def eval_command(
    name: str | None,
    preset: str | None,
    data: Path | None,
    chosen: tuple[str, ...],
    method: str | None,
    limit: int | None,
    sample: int | None,
    workers: int,
    out: Path,
    resume: bool,
    retry_errors: bool,
    traces: bool,
    options: tuple[str, ...],
    subtitles: Path | None,
    session: Session,
    as_json: bool,
) -> int:
    """Run a method over a benchmark, and score it.

    Every result is on disk before the next question is asked: stop and resume at any time. Abstentions and errors
    count as wrong. Solvers run in processes that never hold a label. Earlier replies of models are never used, so
    that every run shows what it costs.

    \b
    Example:
      longtake eval nextqa-captions --data nextqa --method videoagent --limit 50 --out runs/first
      longtake eval --preset videoagent-egoschema --data egoschema --out runs/paper
    """
    if options or subtitles:
        raise ConfigError("a benchmark brings its own options and subtitles")
    parts = read_parts(chosen)
    if preset is not None:
        planned = presets.read(preset)
        if name is not None or method is not None:
            raise ConfigError(f"--preset {preset} names benchmark and method; leave them out")
        name, method, parts = planned.benchmark, planned.method, {**planned.options, **parts}
        # the user's own settings go before the paper's
        fields = {**planned.fields, **session.settings.methods.get(method, {})}
        session = session.with_fields(method, fields)
        session = replace(session, casting=_cast(planned, session.casting))
    if name is None:
        raise ConfigError("name a benchmark (see 'longtake benchmarks') or a --preset")
    method = method or DEFAULT_METHOD
    benchmark = load(name, data, parts).draw(limit=limit, sample=sample, seed=session.seed)
    kept = out / "traces" if traces else None
    # a reply that another run paid for would be free here, and cost nothing in the report
    session = replace(session, casting=replace(session.casting, replies=False))
    solver = Solver(method, session, kept, preset)
    name_hosts(session, methods.get(method).roles)
    folder = RunFolder(out)
    if resume and not folder.results():
        say(f"{out}: nothing to go on with; a new run begins")
    if traces:
        (out / "traces").mkdir(parents=True, exist_ok=True)
    evaluate(
        solver,
        benchmark,
        folder,
        workers=workers,
        resume=resume or retry_errors,
        retry_errors=retry_errors,
        progress=_running(benchmark, len(folder.results())),
    )
    found = [reports.read(folder, benchmark)]
    if as_json:
        emit_json({"reports": reports.plain(found)})
    else:
        click.echo(markdown(found, {preset: presets.read(preset).published} if preset else None))
    return 4 if found[0].counts.keys() == {"error"} else 0


def _cast(planned: Preset, casting: Casting) -> Casting:
    """The user's models, else the paper's where they can be named outright."""
    say(
        f"{planned.title}; the paper used {planned.used}"
        + (f"; {planned.departs}" if planned.departs else "")
    )
    if casting.models or casting.team:
        return casting
    if not planned.models:
        raise ConfigError(
            f"{planned.name}: name models with --model or --team; the paper used {planned.used}"
        )
    return replace(casting, models=planned.models)


def _running(benchmark: Benchmark, done: int) -> Callable[[Mapping[str, Any]], None]:
    """A line per result on a terminal, one in twenty-five elsewhere: accuracy so far, and the time that is left."""
    items = {item.asked.id: item for item in benchmark.items}
    began, right, count, spent = time.monotonic(), 0, 0, 0.0

    def show(row: Mapping[str, Any]) -> None:
        nonlocal right, count, spent
        item = items[row["id"]]
        right += item.label is not None and correct(item, row.get("choice"), row.get("text") or "")
        count += 1
        spent += row.get("usage", {}).get("cost") or 0.0
        left = len(items) - done - count
        if on_terminal() or count % 25 == 0 or left == 0:
            pace = (time.monotonic() - began) / count
            money = f"  ${spent:.2f}" if spent else ""
            share = (
                f"{right / count:.1%} right so far"
                if item.label is not None
                else "no public labels"
            )
            say(f"{done + count}/{len(items)}  {share}{money}  {human_seconds(pace * left)} left")

    return show
