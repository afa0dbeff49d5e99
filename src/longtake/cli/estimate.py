"""``longtake estimate``."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import click

from longtake.build import Asking, open_method, open_run
from longtake.cli.asking import asking_options, read_question
from longtake.cli.options import common, film
from longtake.cli.output import emit_json
from longtake.config import Settings
from longtake.estimate import Estimate
from longtake.estimate import estimate as bound
from longtake.index.film import Film
from longtake.opening import open_film
from longtake.registry import methods
from longtake.types import Question


@click.command()
@film
@click.argument("question")
@click.option(
    "--method", "chosen", multiple=True, metavar="NAME", help="Repeatable.  [default: every method]"
)
@common
@asking_options
def estimate(
    film: Path,
    question: str,
    chosen: tuple[str, ...],
    options: tuple[str, ...],
    subtitles: Path | None,
    asking: Asking,
    settings: Settings,
    as_json: bool,
) -> None:
    """What a question can cost at most, before it is asked.

    From each method's own bounds: calls, pictures, tokens, money where prices are known. Nothing is sent. Replies
    that must be asked for again, and models that write more than they are asked for, come on top. A method without
    bounds is shown as unknown.

    \b
    Example:
      longtake estimate film.mp4 "Who leaves first?" --option "the man" --option "the woman"
    """
    opened = open_film(film, settings, subtitles=subtitles)
    found = estimates(
        opened, read_question(question, options), chosen or tuple(methods.names()), asking, settings
    )
    if as_json:
        emit_json({"film": str(film), "estimates": [dataclasses.asdict(each) for each in found]})
    else:
        show_estimates(found)


def estimates(
    film: Film, question: Question, names: Sequence[str], asking: Asking, settings: Settings
) -> list[Estimate]:
    """One per method."""
    found = []
    casting = asking.casting.among(names)
    for name in names:
        method = open_method(name, settings)
        run = open_run(method, film, settings, casting, seed=asking.seed)
        found.append(bound(method, film.duration, question, run))
    return found


def show_estimates(found: Sequence[Estimate], *, err: bool = False) -> None:
    """A table."""
    wide = first_column([each.method for each in found])
    click.echo(
        f"{'at most':<{wide}}{'calls':>8}{'frames':>9}{'tokens in':>11}{'out':>9}{'cost':>10}",
        err=err,
    )
    for each in found:
        cost = "unknown" if each.cost is None else f"${each.cost:.4f}"
        calls, frames = shown_figure(each.calls), shown_figure(each.frames)
        tokens_in, tokens_out = shown_figure(each.tokens_in), shown_figure(each.tokens_out)
        row = f"{each.method:<{wide}}{calls:>8}{frames:>9}{tokens_in:>11}{tokens_out:>9}{cost:>10}"
        click.echo(row, err=err)


def shown_figure(value: int | None) -> str:
    """A figure of an estimate; a method without ``bounds`` has none."""
    return "unknown" if value is None else f"{value:,}"


def first_column(names: Sequence[str]) -> int:
    """Characters for a column of methods: addresses are long."""
    return max([16, *(len(name) + 1 for name in names)])
