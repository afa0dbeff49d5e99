"""``longtake lab run``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from longtake.cli.cluster import asking_on, on
from longtake.cli.options import COUNT, PATH, common, plot, workers
from longtake.cli.output import emit_json, say
from longtake.cli.places import check_place, plot_kind
from longtake.cli.session import check_models, method_option, no_question_options, session_options
from longtake.cluster.engines import Where
from longtake.display import visible
from longtake.errors import ConfigError
from longtake.evals import experiment
from longtake.evals.experiment import ACUITIES, BASELINE, NOISES, Cell, Measured
from longtake.evals.items import Benchmark
from longtake.evals.lab import lab as lab_experiment
from longtake.evals.outcomes import count_statuses, in_text, list_errors
from longtake.evals.solving import Solver
from longtake.lab.profile import CURRENT
from longtake.plots.events import check_plot_path
from longtake.plots.sweep import draw_sweep
from longtake.session.asking import Session
from longtake.session.casting import roles_of
from longtake.types import GIVEN


@click.command("run")
@method_option
@click.option(
    "--minutes",
    type=click.IntRange(1, 255),
    default=30,
    show_default=True,
    help="Length of each world.",
)
@click.option(
    "--worlds", type=COUNT, default=3, show_default=True, help="Number of worlds, one per seed."
)
@click.option(
    "--questions", type=COUNT, default=40, show_default=True, help="Questions about each world."
)
@click.option(
    "--first-seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Seed of the first world; 0 to 99 for development, 1000 and up to publish.",
)
@click.option(
    "--noise",
    type=float,
    metavar="X",
    help="Noise of the simulated encoder.  [default: the profile's]",
)
@click.option(
    "--encoded",
    type=PATH,
    metavar="DIR",
    help="Use films that 'lab make' wrote to DIR/<seed>_<minutes>.",
)
@workers(2)
@on
@click.option(
    "--sweep", is_flag=True, help=f"Every acuity of {ACUITIES} with every noise of {NOISES}."
)
@plot("Draw the grid of --sweep")
@common
@no_question_options("a world")
@session_options
def run_command(
    method: str,
    minutes: int,
    worlds: int,
    questions: int,
    first_seed: int,
    noise: float | None,
    encoded: Path | None,
    workers: int,
    where: Where | None,
    sweep: bool,
    plot: Path | None,
    session: Session,
    as_json: bool,
) -> None:
    """Measure a method on worlds with known truth, against as many uniform frames.

    Without --model the profile's simulated model fills all roles; with --model ROLE=NAME it fills
    the others. The seconds are the time per question, which is the critical path if the model
    sleeps (lab/…,latency=0.5,sleep=1). --sweep sets the acuity of the simulated model and keeps its
    other parameters.

    Exit code 4: every question failed.

    \b
    Example:
      longtake lab run --method videoagent --minutes 60 --worlds 3 --questions 40
      longtake lab run --method videoagent --model lab/seed=9 --sweep --json
    """
    casting = experiment.with_profile_model(session.casting, method)
    session = replace(session, casting=casting)
    solver = Solver(method, session)
    _check_options(session, sweep=sweep, plot=plot, noise=noise)
    seeds = range(first_seed, first_seed + worlds)

    def make_worlds(noise: float | None) -> Benchmark:
        return lab_experiment(
            seeds, minutes, questions, noise=noise, films=encoded, opened_with=session.settings
        )

    # unknown names and missing films are rejected before anything runs
    experiment.check(solver, make_worlds(noise), all_films=encoded is not None)
    check_models(session, roles_of((method, BASELINE)), here=where is None)
    with asking_on(where) as ask_all:
        if not sweep:
            measured = experiment.measure(solver, make_worlds(noise), workers, ask_all)
            if as_json:
                emit_json(measured.plain())
            else:
                _show(measured)
            return
        cells = []
        for cell in experiment.sweep(solver, make_worlds, workers, ask_all):
            cells.append(cell)
            measured = cell.measured
            accuracy, lead = measured.scored.accuracy, measured.lead
            say(f"acuity {cell.acuity:g}, noise {cell.noise:g}: {accuracy}, lead {lead}")
    _show_sweep(method, cells, CURRENT.hash, as_json)
    if plot is not None:
        title = f"{method} minus uniform at equal frames, points ({CURRENT.hash})"
        draw_sweep([cell.plain() for cell in cells], plot, title=title)


def _check_options(
    session: Session, *, sweep: bool, plot: Path | None, noise: float | None
) -> None:
    """Reject options that would have no effect."""
    if not sweep:
        if plot is not None:
            raise ConfigError("--plot draws the grid of --sweep; give both")
        return
    if noise is not None:
        raise ConfigError("--sweep sets the noise itself; leave --noise out")
    if session.casting.team is not None:
        raise ConfigError("--sweep sets the acuity of every model; leave --team out")
    experiment.with_acuity(session.casting, ACUITIES[0])
    if plot is not None:
        check_plot_path(plot)
        check_place(plot, plot_kind(plot))


def _show_sweep(method: str, cells: Sequence[Cell], profile: str, as_json: bool) -> None:
    if as_json:
        plain = [cell.plain() for cell in cells]
        emit_json({"profile": profile, "method": method, "cells": plain})
        return
    click.echo(
        f"{method} minus uniform at equal frames, points; rows acuity, columns noise ({profile})"
    )
    click.echo("      " + "".join(f"{noise:>22g}" for noise in NOISES))
    for acuity in ACUITIES:
        leads = [cell.measured.lead for cell in cells if cell.acuity == acuity]
        texts = [
            f"{100 * lead.value:+.1f} [{100 * lead.low:+.1f}, {100 * lead.high:+.1f}]"
            for lead in leads
        ]
        click.echo(f"{acuity:<6g}" + "".join(f"{text:>22}" for text in texts))


def _show(measured: Measured) -> None:
    scored = measured.scored
    click.echo(f"{measured.method} with {', '.join(measured.models)} ({measured.profile})")
    click.echo(f"accuracy  {scored.accuracy}")
    click.echo(
        f"a question: {scored.mean('frames'):.1f} frames "
        f"({in_text(scored.count('seen'))} distinct), "
        f"{in_text(scored.count('rounds'))} rounds, {scored.mean('calls'):.1f} calls, "
        f"{scored.tokens:,.0f} tokens, {scored.mean('seconds'):.2f} s"
    )
    for kind, rate in measured.types().items():
        click.echo(f"  {kind:<14}{rate}")
    click.echo(f"uniform with {measured.uniform_frames} frames  {measured.uniform.accuracy}")
    click.echo(f"lead      {measured.lead}")
    if measured.citations is not None:
        for name, value in measured.citations.figures().items():
            click.echo(f"  {name:<40}{value:.2f}")
    ended = count_statuses(scored.rows)
    for given in GIVEN:
        del ended[given]
    if ended:
        listed = [f"{count} {status}" for status, count in sorted(ended.items())]
        click.echo("not answered: " + ", ".join(listed))
    for line in list_errors(scored.errors):
        click.echo(visible(f"  {line}"))
