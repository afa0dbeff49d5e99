"""``longtake lab run``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from longtake import prompts
from longtake.build import (
    DEFAULT_METHOD,
    Asking,
    Casting,
    open_method,
    open_run,
    roles_of,
    with_fields,
)
from longtake.cli.asking import asking_options, name_hosts
from longtake.cli.options import common
from longtake.cli.output import emit_json, say
from longtake.config import Settings
from longtake.display import visible
from longtake.errors import ConfigError, ModelError
from longtake.evals.items import Benchmark
from longtake.evals.lab import lab
from longtake.evals.runner import Scored, evaluate
from longtake.evals.scoring import Difference, Rate, by_tag, paired
from longtake.evals.solving import Solver
from longtake.lab.acuity import parse
from longtake.lab.profile import PROFILE
from longtake.plots.events import check
from longtake.plots.sweep import draw

ACUITIES = (0.4, 0.6, 0.8, 1.0)
NOISES = (0.0, 1.0, 2.0, 4.0)
ERRORS_SHOWN = 3
"""Distinct errors that are told; the others are counted."""
_SIMULATED = re.compile(r"(?P<role>([a-z_]+=)?)lab/(?P<parameters>.*)")

Worlds = Callable[[float | None], Benchmark]
"""The worlds of a run, with the noise of the simulated encoder; ``None``: the profile's."""


@dataclass(frozen=True)
class Measured:
    """A method on some worlds, beside uniform frames of the same number."""

    method: str
    models: tuple[str, ...]
    scored: Scored
    uniform: Scored
    uniform_frames: int

    @property
    def lead(self) -> Difference:
        """The method minus uniform, on the same questions."""
        videos = [item.asked.video for item in self.scored.items]
        return paired(self.scored.right, self.uniform.right, videos)

    def plain(self) -> dict[str, Any]:
        """As ``--json`` has it."""
        tokens = self.scored.mean("tokens_in") + self.scored.mean("tokens_out")
        return {
            "profile": PROFILE.hash,
            "method": self.method,
            "models": list(self.models),
            "questions": len(self.scored.items),
            "accuracy": self.scored.accuracy.value,
            "interval": [self.scored.accuracy.low, self.scored.accuracy.high],
            "by_type": {kind: vars(rate) for kind, rate in self.types().items()},
            "frames": self.scored.mean("frames"),
            "calls": self.scored.mean("calls"),
            "tokens": tokens,
            "critical_path_s": self.scored.mean("seconds"),
            "uniform": {"frames": self.uniform_frames, "accuracy": self.uniform.accuracy.value},
            "lead": vars(self.lead),
            "errors": dict(errors_of(self.scored)),
        }

    def types(self) -> dict[str, Rate]:
        """Accuracy by kind of question."""
        return dict(by_tag(self.scored.items, self.scored.right, "type"))


@click.command("run")
@click.option(
    "--method",
    default=DEFAULT_METHOD,
    show_default=True,
    metavar="NAME",
    help="See 'longtake methods'.",
)
@click.option(
    "--minutes",
    type=click.IntRange(1, 255),
    default=30,
    show_default=True,
    help="Length of each world.",
)
@click.option(
    "--worlds",
    type=click.IntRange(1),
    default=3,
    show_default=True,
    help="Worlds, by consecutive seeds.",
)
@click.option(
    "--questions",
    type=click.IntRange(1),
    default=40,
    show_default=True,
    help="Questions of each world.",
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
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Use films that 'lab make' wrote to DIR/<seed>_<minutes>.",
)
@click.option(
    "--workers", type=click.IntRange(min=1), default=2, show_default=True, help="Processes."
)
@click.option(
    "--sweep", is_flag=True, help=f"Every acuity of {ACUITIES} with every noise of {NOISES}."
)
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Draw the grid of --sweep (extra plot).",
)
@common
@asking_options
def run_command(
    method: str,
    minutes: int,
    worlds: int,
    questions: int,
    first_seed: int,
    noise: float | None,
    encoded: Path | None,
    workers: int,
    sweep: bool,
    plot: Path | None,
    options: tuple[str, ...],
    subtitles: Path | None,
    asking: Asking,
    settings: Settings,
    as_json: bool,
) -> None:
    """Measure a method on worlds with known truth, beside as many uniform frames.

    Without --model the simulated model of the profile is used, and with --model ROLE=NAME for the other roles. The
    figure in seconds is how long a question took, which is the critical path where the model sleeps
    (lab/…,latency=0.5,sleep=1). --sweep sets the acuity of the simulated model and keeps its other parameters.
    Exit code 4: every question ended in an error.

    \b
    Example:
      longtake lab run --method videoagent --minutes 60 --worlds 3 --questions 40
      longtake lab run --method videoagent --model lab/seed=9 --sweep --json
    """
    if options or subtitles:
        raise ConfigError("a world brings its own options and subtitles")
    seeds = range(first_seed, first_seed + worlds)
    asking = replace(asking, casting=_cast(asking.casting, method))
    solver = Solver(method, settings, asking.casting, asking.seed, asking.prompts)
    _check_options(solver, sweep=sweep, plot=plot, noise=noise)

    def made(noise: float | None) -> Benchmark:
        return lab(seeds, minutes, questions, noise=noise, films=encoded, opened_with=settings)

    _check(solver, made(noise), all_films=encoded is not None)
    name_hosts(asking, roles_of((method, "uniform")), settings)
    if sweep:
        cells = _sweep(solver, made, workers, as_json)
        if plot is not None:
            draw(
                cells,
                plot,
                title=f"{method} minus uniform at equal frames, points ({PROFILE.hash})",
            )
        return
    measured = measure(solver, made(noise), workers)
    if as_json:
        emit_json(measured.plain())
    else:
        _show(measured)


def _cast(casting: Casting, method: str) -> Casting:
    """Who answers: whoever is named, and the profile's simulated model in the roles that nobody is named for."""
    if not casting.everyone:
        casting = replace(casting, models=(f"lab/acuity={PROFILE.model.acuity:g}", *casting.models))
    return casting.among((method, "uniform"))


def _check_options(solver: Solver, *, sweep: bool, plot: Path | None, noise: float | None) -> None:
    """Refuse options that would be without effect."""
    if not sweep:
        if plot is not None:
            raise ConfigError("--plot draws the grid of --sweep; give both")
        return
    if noise is not None:
        raise ConfigError("--sweep sets the noise itself; leave --noise out")
    if solver.casting.team is not None:
        raise ConfigError("--sweep sets the acuity of every model; leave --team out")
    with_acuity(solver.casting, ACUITIES[0])
    if plot is not None:
        check(plot)


def _check(solver: Solver, benchmark: Benchmark, *, all_films: bool) -> None:
    """Open what the first question needs, so that a name that nobody knows is refused before anything runs."""
    videos = list(dict.fromkeys(item.asked.video for item in benchmark.items))
    with prompts.override(solver.prompts):
        for video in videos if all_films else videos[:1]:
            footage = benchmark.source.footage(video)
            for name in (solver.method, "uniform"):
                open_run(
                    open_method(name, solver.settings), footage, solver.settings, solver.casting
                )


def measure(solver: Solver, benchmark: Benchmark, workers: int) -> Measured:
    """The method, then uniform with as many frames as it used on average."""
    scored = _answered(solver, benchmark, workers)
    frames = max(1, round(scored.mean("frames")))
    plain = replace(
        solver,
        method="uniform",
        settings=with_fields(solver.settings, "uniform", {"frames": frames}),
    )
    uniform = _answered(plain, benchmark, workers)
    return Measured(solver.method, tuple(solver.casting.models), scored, uniform, frames)


def _answered(solver: Solver, benchmark: Benchmark, workers: int) -> Scored:
    """The results of a method; that every question failed is no result."""
    scored = evaluate(solver, benchmark, workers=workers)
    found = errors_of(scored)
    if scored.rows and found.total() == len(scored.rows):
        detail = f"{solver.method}: every question ended in an error ({'; '.join(told(found))})"
        raise ModelError(", ".join(solver.casting.models), "unavailable", detail)
    return scored


def errors_of(scored: Scored) -> Counter[str]:
    """How many questions ended in which error."""
    return Counter(row["error"] for row in scored.rows if row["status"] == "error")


def told(errors: Counter[str]) -> list[str]:
    """Errors with their counts, the most frequent first."""
    texts = [f"{count} × {text}" for text, count in errors.most_common(ERRORS_SHOWN)]
    rest = errors.total() - sum(count for _, count in errors.most_common(ERRORS_SHOWN))
    return [*texts, f"{rest} × something else"] if rest else texts


def with_acuity(casting: Casting, acuity: float) -> Casting:
    """The same simulated models with this acuity; others cannot be swept."""
    models = []
    for text in casting.models:
        named = _SIMULATED.fullmatch(text)
        if named is None:
            raise ConfigError(
                f"--sweep sets the acuity of simulated models, and {text} is none; write lab/…",
                key=text,
            )
        model = parse(named["parameters"])
        if model.acuity != PROFILE.model.acuity:
            raise ConfigError(
                f"--sweep sets the acuity itself; leave it out of --model {text}", key=text
            )
        models.append(f"{named['role']}{replace(model, acuity=acuity).name}")
    return replace(casting, models=tuple(models))


def _sweep(solver: Solver, worlds: Worlds, workers: int, as_json: bool) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = []
    for acuity in ACUITIES:
        for noise in NOISES:
            cast = with_acuity(solver.casting, acuity)
            cell = measure(replace(solver, casting=cast), worlds(noise), workers)
            cells.append({"acuity": acuity, "noise": noise, **cell.plain()})
            say(f"acuity {acuity:g}, noise {noise:g}: {cell.scored.accuracy}, lead {cell.lead}")
    if as_json:
        emit_json({"profile": PROFILE.hash, "method": solver.method, "cells": cells})
        return cells
    click.echo(
        f"{solver.method} minus uniform at equal frames, points; rows acuity, columns noise ({PROFILE.hash})"
    )
    click.echo("      " + "".join(f"{noise:>22g}" for noise in NOISES))
    for acuity in ACUITIES:
        row = [c["lead"] for c in cells if c["acuity"] == acuity]
        texts = [
            f"{100 * d['value']:+.1f} [{100 * d['low']:+.1f}, {100 * d['high']:+.1f}]" for d in row
        ]
        click.echo(f"{acuity:<6g}" + "".join(f"{text:>22}" for text in texts))
    return cells


def _show(measured: Measured) -> None:
    scored = measured.scored
    click.echo(f"{measured.method} with {', '.join(measured.models)} ({PROFILE.hash})")
    click.echo(f"accuracy  {scored.accuracy}")
    tokens = scored.mean("tokens_in") + scored.mean("tokens_out")
    click.echo(
        f"a question: {scored.mean('frames'):.1f} frames, {scored.mean('calls'):.1f} calls, {tokens:,.0f} tokens, "
        f"{scored.mean('seconds'):.2f} s"
    )
    for kind, rate in measured.types().items():
        click.echo(f"  {kind:<14}{rate}")
    click.echo(f"uniform with {measured.uniform_frames} frames  {measured.uniform.accuracy}")
    click.echo(f"lead      {measured.lead}")
    ended = [row["status"] for row in scored.rows if row["status"] != "answered"]
    if ended:
        click.echo(
            "not answered: " + ", ".join(f"{ended.count(s)} {s}" for s in sorted(set(ended)))
        )
    for line in told(errors_of(scored)):
        click.echo(visible(f"  {line}"))
