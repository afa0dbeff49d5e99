"""``longtake calibrate``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from longtake import __version__
from longtake.agents.calibration import FILE as CALIBRATION
from longtake.agents.calibration import Calibration, from_plain
from longtake.cli.options import (
    COUNT,
    FILE,
    PATH,
    benchmark_parts,
    check_models,
    common,
    session_options,
    workers,
)
from longtake.cli.output import emit_json, say, worth_a_line, write_text
from longtake.config import user_config_file
from longtake.errors import ConfigError
from longtake.evals.benchmarks import load
from longtake.evals.calibration import corrected, fit_runs, of_run
from longtake.evals.report import RunReport, read_labelled
from longtake.evals.runner import Solver, evaluate
from longtake.evals.runs import RunFolder
from longtake.methods.auto.method import shipped
from longtake.registry import methods
from longtake.runner.session import Session

METHOD = "auto"


@click.command()
@click.argument("runs", nargs=-1, type=PATH, metavar="[RUN...]")
@click.option("--on", "name", metavar="BENCHMARK", help="Ask these questions first, all stages.")
@click.option("--data", multiple=True, type=PATH, metavar="DIR", help="Files of benchmarks.")
@benchmark_parts
@click.option("--limit", type=COUNT, metavar="N", help="Only the first N questions.")
@workers(1)
@click.option("--keep", type=PATH, metavar="RUN", help="Keep the results of --on in this folder.")
@click.option(
    "--out",
    type=FILE,
    metavar="FILE",
    help="Write there instead of beside your configuration; see 'answers.calibration'.",
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
    out: Path | None,
    session: Session,
    as_json: bool,
) -> None:
    """Turn confidences into probabilities, and fit when the method auto stops.

    With --on, a benchmark with labels is run through every stage of auto. Existing RUNs, of any
    method, count as well; labels stay in this process. The calibration is written beside your
    configuration with its provenance, and is used from then on.

    RUNs of auto itself, without a budget, keep its rule and correct the probabilities that it
    states in the end, which takes far fewer tokens.

    \b
    Example:
      longtake calibrate --on lab --of seeds=40-49 --of minutes=60 --model lab/profile=lab-2
      longtake calibrate runs/videoagent runs/a4vl --data nextqa
      longtake calibrate runs/auto --data nextqa
    """
    reports = [read_labelled(path, data) for path in runs]
    if name is not None:
        reports.append(_run_all_stages(name, data, parts, limit, workers, keep, session))
    if not reports:
        raise ConfigError("name runs, or a benchmark with --on")
    rule = _fitted(reports)
    place = out or _place(session)
    place.parent.mkdir(parents=True, exist_ok=True)
    write_text(place, json.dumps(rule.plain(), indent=1) + "\n")
    if as_json:
        emit_json({"file": str(place), "calibration": rule.plain()})
    else:
        _show(rule)


def _place(session: Session) -> Path:
    chosen = session.settings.answers.calibration
    return Path(chosen).expanduser() if chosen else user_config_file().with_name(CALIBRATION)


def _run_all_stages(
    name: str,
    data: Sequence[Path],
    parts: dict[str, str],
    limit: int | None,
    workers: int,
    keep: Path | None,
    session: Session,
) -> RunReport:
    """Every question through every stage of auto."""
    benchmark = load(name, data[0] if data else None, parts).draw(
        limit=limit, sample=None, seed=session.seed
    )
    assignment = replace(session.assignment, replies=False)
    session = replace(session, assignment=assignment).with_fields(METHOD, {"stop": "never"})
    check_models(session, methods.get(METHOD).roles)
    folder = None if keep is None else RunFolder(keep)
    total, done = len(benchmark.items), 0

    def announce(row: Any) -> None:  # noqa: ARG001 - results are not shown one by one
        nonlocal done
        done += 1
        if worth_a_line(done, total - done):
            say(f"{done}/{total}")

    solver = Solver(METHOD, session)
    scored = evaluate(solver, benchmark, folder, workers=workers, resume=True, progress=announce)
    spec = {
        "benchmark": {"name": name, "options": parts, **benchmark.settings},
        "method": {"name": METHOD},
        "models": session.assignment.names(methods.get(METHOD).roles),
        "questions": total,
    }
    return RunReport(keep or Path(name), spec, scored.items, scored.rows, scored)


def _fitted(reports: Sequence[RunReport]) -> Calibration:
    """A new rule; or, from runs in which auto stopped by a rule, that rule corrected."""
    stopped = [each for each in reports if _stopped_by_rule(each)]
    if not stopped:
        return fit_runs([(each.method, each.scored) for each in reports], _about(reports))
    rules = [each.spec["method"]["fields"].get("rule") or {} for each in stopped]
    if len(stopped) < len(reports) or any(rule != rules[0] for rule in rules):
        raise ConfigError("runs in which auto stopped by itself correct one rule: give no others")
    rule = from_plain(rules[0], "auto.rule") if rules[0] else shipped()
    ends = [ending for each in stopped for ending in of_run(each.scored)]
    return corrected(rule, ends, _about(reports))


def _stopped_by_rule(report: RunReport) -> bool:
    if report.method != METHOD:
        return False
    fields = report.spec["method"].get("fields", {})
    return fields.get("stop") == "calibrated" and not report.limits


def _about(reports: Sequence[RunReport]) -> dict[str, Any]:
    """Where a calibration comes from."""
    benchmarks = []
    for report in reports:
        spec = report.spec["benchmark"]
        known = {key: spec[key] for key in ("seeds", "minutes", "profile_hash") if key in spec}
        benchmarks.append(
            {"name": spec["name"], **known, "method": report.method, "models": report.models}
        )
    names = dict.fromkeys(report.benchmark for report in reports)
    return {
        "benchmark": ", ".join(names),
        "runs": benchmarks,
        "questions": sum(len(report.scored.items) for report in reports),
        "date": datetime.now(UTC).date().isoformat(),
        "longtake": __version__,
    }


def _show(rule: Calibration) -> None:
    click.echo(f"{'method':<18}{'answers':>8}{'ECE before':>12}{'after':>8}")
    for method, row in rule.provenance["calibration_error"].items():
        before = f"{row['before']:.3f}" if "before" in row else "–"
        after = f"{row['after']:.3f}" if "after" in row else "–"
        click.echo(f"{method:<18}{row['answers']:>8}{before:>12}{after:>8}")
    if rule.stages:
        measured = rule.provenance["auto"]
        click.echo(
            f"auto stops at {rule.stop_at:.2f} or a gain below {rule.least_gain:.2f} per 100,000 "
            f"tokens: {measured['accuracy']:.1%} right with {measured['tokens']:,.0f} tokens, "
            f"ECE {measured['calibration_error']:.3f}"
        )
    if "final" in rule.provenance:
        final = rule.provenance["final"]
        click.echo(
            f"auto's final probabilities, {final['questions']} questions: ECE "
            f"{final['before']:.3f} before, {final['calibration_error']:.3f} after"
        )
    click.echo("Errors after calibration are measured on films held out of the fit.")
