"""``longtake calibrate``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

import click

from longtake import __version__
from longtake.agents.calibration import Fit, read
from longtake.cli.options import COUNT, FILE, PATH, check_models, common, session_options
from longtake.cli.output import Output, say, write_text
from longtake.errors import ConfigError
from longtake.registry import methods
from longtake.runner.session import Session
from longtake_bench.benchmarks import Benchmark, load
from longtake_bench.calibration import LEAST, fits_of
from longtake_bench.cli.options import benchmark_parts, workers
from longtake_bench.report import RunReport, read_labelled
from longtake_bench.runner import Solver, evaluate, specify
from longtake_bench.runs import RunFolder


@click.command()
@click.argument("runs", nargs=-1, type=PATH, metavar="[RUN...]")
@click.option("--on", "name", metavar="BENCHMARK", help="A benchmark to ask first.")
@click.option("--data", multiple=True, type=PATH, metavar="DIR", help="Files of benchmarks.")
@benchmark_parts
@click.option("--limit", type=COUNT, metavar="N", help="Only the first N questions.")
@workers(1)
@click.option("--keep", type=PATH, metavar="RUN", help="Keep the results of --on in this folder.")
@click.option("--for", "model", metavar="MODEL", help="The model's name, if it has another in RUN.")
@click.option(
    "--out",
    type=FILE,
    help="Write to this file instead of beside your configuration; see 'answers.calibration'.",
)
@common
@session_options
def calibrate(
    runs: tuple[Path, ...],
    name: str | None,
    data: tuple[Path, ...],
    parts: dict[str, str],
    limit: int | None,
    workers: int,
    keep: Path | None,
    model: str | None,
    out: Path | None,
    session: Session,
) -> Output:
    """Fit probabilities to a model's answers to labelled questions.

    With --on, a labelled benchmark is run through every stage of auto. Existing RUNs of any method
    can be used as well; labels stay in this process. Each combination of method, model and kind of
    footage gets its own fit, measured on held-out videos. It is written beside your configuration,
    replaces an earlier one, and is used from then on.

    \b
    Example:
      longtake calibrate --on nextqa-captions --data nextqa --model http://127.0.0.1:8080/v1#qwen
      longtake calibrate runs/videoagent runs/a4vl --data nextqa
    """
    reports = [read_labelled(path, data) for path in runs]
    if name is not None:
        benchmark = load(name, data[0] if data else None, parts)
        benchmark = benchmark.draw(limit=limit, sample=None, seed=session.seed)
        reports.append(_run_all_stages(benchmark, workers, keep, session))
    if not reports:
        raise ConfigError("missing RUN, or a benchmark with --on")
    sources = [f"{each.benchmark}: {each.method}, {each.models}" for each in reports]
    date = datetime.now(UTC).date().isoformat()
    fits = fits_of(reports, model, {"runs": sources, "date": date, "longtake": __version__})
    if not fits:
        raise ConfigError(f"a fit needs at least {LEAST} answered questions with labels")
    place, kept = out or session.calibration_file, {each.about: each for each in fits}
    with suppress(ConfigError):  # missing, or written by an earlier version
        kept |= {each.about: each for each in read(place) if each.about not in kept}
    calibration = [asdict(each) for each in kept.values()]
    place.parent.mkdir(parents=True, exist_ok=True)
    write_text(place, json.dumps(calibration, indent=1) + "\n")
    return Output(
        {"file": place, "calibration": calibration}, chain.from_iterable(map(_lines, fits))
    )


def _run_all_stages(
    benchmark: Benchmark, workers: int, keep: Path | None, session: Session
) -> RunReport:
    """Every question through every stage of auto."""
    assignment = replace(session.assignment, replies=False)
    session = replace(session, assignment=assignment).with_fields("auto", {"every_stage": True})
    check_models(session, methods.get("auto").roles)
    say(f"asking {len(benchmark.items)} questions in every stage of auto")
    solver, folder = Solver("auto", session), None if keep is None else RunFolder(keep)
    scored = evaluate(solver, benchmark, folder, workers=workers, resume=True)
    spec = specify(solver, benchmark)
    return RunReport(keep or Path(benchmark.name), spec, scored.items, scored.rows, scored)


def _lines(fit: Fit) -> Iterator[str]:
    """The measures on held-out videos, by benchmark."""
    yield f"{fit.method} with {fit.model} on {fit.footage}, on held-out videos"
    for benchmark, measures in fit.provenance["measured"].items():
        yield f"  {benchmark}"
        for name, value in measures.items():
            if name != "reliability":
                yield f"    {name:<14}{value:>8.4g}"
    if fit.stop_at is not None:
        yield f"  stops at a probability of {fit.stop_at:g}; these were tried:"
        for stop, (right, tokens) in fit.provenance["stopping"].items():
            yield f"    {stop:<6}{right:>8.1%} right{tokens:>10,.0f} tokens"
