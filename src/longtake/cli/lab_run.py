"""``longtake lab run``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from longtake.build import DEFAULT_METHOD, Asking, with_fields
from longtake.cli.asking import asking_options
from longtake.cli.options import common
from longtake.cli.output import emit_json, say
from longtake.config import Settings
from longtake.evals.items import Benchmark
from longtake.evals.lab import lab
from longtake.evals.runner import Scored, evaluate
from longtake.evals.scoring import Difference, Rate, by_tag, paired
from longtake.evals.solving import Solver
from longtake.lab.profile import PROFILE
from longtake.plots.events import check
from longtake.plots.sweep import draw

ACUITIES = (0.4, 0.6, 0.8, 1.0)
NOISES = (0.0, 1.0, 2.0, 4.0)


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
            "profile": PROFILE.hash, "method": self.method, "models": list(self.models),
            "questions": len(self.scored.items), "accuracy": self.scored.accuracy.value,
            "interval": [self.scored.accuracy.low, self.scored.accuracy.high],
            "by_type": {kind: vars(rate) for kind, rate in self.types().items()},
            "frames": self.scored.mean("frames"), "calls": self.scored.mean("calls"), "tokens": tokens,
            "critical_path_s": self.scored.mean("seconds"),
            "uniform": {"frames": self.uniform_frames, "accuracy": self.uniform.accuracy.value},
            "lead": vars(self.lead),
        }  # fmt: skip

    def types(self) -> dict[str, Rate]:
        """Accuracy by kind of question."""
        return dict(by_tag(self.scored.items, self.scored.right, "type"))


@click.command("run")
@click.option("--method", default=DEFAULT_METHOD, show_default=True, metavar="NAME", help="See 'longtake methods'.")
@click.option("--minutes", type=click.IntRange(1, 255), default=30, show_default=True, help="Length of each world.")
@click.option("--worlds", type=click.IntRange(1), default=3, show_default=True, help="Worlds, by consecutive seeds.")
@click.option("--questions", type=click.IntRange(1), default=40, show_default=True, help="Questions of each world.")
@click.option("--first-seed", type=click.IntRange(0), default=0, show_default=True,
              help="Seed of the first world; 0 to 99 for development, 1000 and up to publish.")  # fmt: skip
@click.option("--noise", type=float, metavar="X", help="Noise of the simulated encoder.  [default: the profile's]")
@click.option("--encoded", type=click.Path(path_type=Path), metavar="DIR",
              help="Use films that 'lab make' wrote to DIR/<seed>_<minutes>.")  # fmt: skip
@click.option("--workers", type=click.IntRange(min=1), default=2, show_default=True, help="Processes.")
@click.option("--sweep", is_flag=True, help=f"Every acuity of {ACUITIES} with every noise of {NOISES}.")
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="Draw the grid of --sweep (extra plot).")  # fmt: skip
@common
@asking_options
def run_command(
    method: str, minutes: int, worlds: int, questions: int, first_seed: int, noise: float | None,
    encoded: Path | None, workers: int, sweep: bool, plot: Path | None, options: tuple[str, ...],
    subtitles: Path | None, asking: Asking, settings: Settings, as_json: bool,
) -> None:  # fmt: skip
    """Measure a method on worlds with known truth, beside as many uniform frames.

    Without --model the simulated model of the profile is used. The figure in seconds is how long a question took,
    which is the critical path where the model sleeps (lab/…,latency=0.5,sleep=1).

    \b
    Example:
      longtake lab run --method videoagent --minutes 60 --worlds 3 --questions 40
      longtake lab run --method videoagent --model lab/acuity=0.6 --sweep --json
    """
    del options, subtitles  # the worlds bring their own
    seeds = range(first_seed, first_seed + worlds)
    casting = asking.casting
    if not (casting.models or casting.team):
        casting = replace(casting, models=(f"lab/acuity={PROFILE.model.acuity:g}",))
    solver = Solver(method, settings, casting, asking.seed)
    if plot is not None:
        check(plot)
    if sweep:
        cells = _sweep(solver, seeds, minutes, questions, workers, as_json)
        if plot is not None:
            draw(cells, plot, title=f"{method} minus uniform at equal frames, points ({PROFILE.hash})")
        return
    benchmark = lab(seeds, minutes, questions, noise=noise, films=encoded)
    measured = measure(solver, benchmark, workers)
    if as_json:
        emit_json(measured.plain())
    else:
        _show(measured)


def measure(solver: Solver, benchmark: Benchmark, workers: int) -> Measured:
    """The method, then uniform with as many frames as it used on average."""
    scored = evaluate(solver, benchmark, workers=workers)
    frames = max(1, round(scored.mean("frames")))
    plain = replace(solver, method="uniform", settings=with_fields(solver.settings, "uniform", {"frames": frames}))
    return Measured(
        solver.method, tuple(solver.casting.models), scored, evaluate(plain, benchmark, workers=workers), frames
    )


def _sweep(
    solver: Solver, seeds: Sequence[int], minutes: int, questions: int, workers: int, as_json: bool
) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = []
    for acuity in ACUITIES:
        for noise in NOISES:
            cast = replace(solver.casting, models=(f"lab/acuity={acuity:g}",))
            cell = measure(replace(solver, casting=cast), lab(seeds, minutes, questions, noise=noise), workers)
            cells.append({"acuity": acuity, "noise": noise, **cell.plain()})
            say(f"acuity {acuity:g}, noise {noise:g}: {cell.scored.accuracy}, lead {cell.lead}")
    if as_json:
        emit_json({"profile": PROFILE.hash, "method": solver.method, "cells": cells})
        return cells
    click.echo(f"{solver.method} minus uniform at equal frames, points; rows acuity, columns noise ({PROFILE.hash})")
    click.echo("      " + "".join(f"{noise:>22g}" for noise in NOISES))
    for acuity in ACUITIES:
        row = [c["lead"] for c in cells if c["acuity"] == acuity]
        texts = [f"{100 * d['value']:+.1f} [{100 * d['low']:+.1f}, {100 * d['high']:+.1f}]" for d in row]
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
        click.echo("not answered: " + ", ".join(f"{ended.count(s)} {s}" for s in sorted(set(ended))))
