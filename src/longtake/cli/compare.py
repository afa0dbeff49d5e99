"""``longtake compare``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from longtake.cli.answers import exit_code, plain, telling_what_was_spent
from longtake.cli.asking import asking_options, name_hosts, read_question
from longtake.cli.looking import look_through
from longtake.cli.options import common, film
from longtake.cli.output import emit_json, say
from longtake.cli.tables import first_column, show_estimates
from longtake.config import Settings
from longtake.display import visible
from longtake.errors import LongtakeError, ModelError
from longtake.registry import methods
from longtake.session.asking import Session
from longtake.session.casting import roles_of
from longtake.session.estimate import Estimate, estimate_all
from longtake.session.films import open_film
from longtake.sinks.meter import Meter
from longtake.types import Result

LONG = 600.0
"""Seconds of work above which a person is asked first."""


@click.command()
@film
@click.argument("question")
@click.option(
    "--method", "chosen", multiple=True, metavar="NAME", help="Repeatable.  [default: every method]"
)
@click.option("--yes", is_flag=True, help="Do not ask before a long or paid comparison.")
@common
@asking_options
def compare(
    film: Path,
    question: str,
    chosen: tuple[str, ...],
    yes: bool,
    options: tuple[str, ...],
    subtitles: Path | None,
    session: Session,
    as_json: bool,
) -> int:
    """Several methods on one question, side by side.

    The same index, models and budget for all, and no earlier replies: each method shows what it costs. Shows the
    estimate first, and on a terminal asks before anything that costs money or may take more than ten minutes (give
    --max-seconds to bound each method).
    Exit code 0: a method answered; 3: none did, for its budget or for replies that could not be read; 4: all failed.

    \b
    Example:
      longtake compare film.mp4 "Who leaves first?" --option "the man" --option "the woman" --max-seconds 60
    """
    asked = read_question(question, options)
    names = chosen or tuple(methods.names())
    opened = open_film(film, session.settings, subtitles=subtitles)
    # replies are not shared: one that another method paid for would be free to the next
    casting = replace(session.casting.among(names), replies=False)
    session = replace(session, casting=casting)
    bounds = estimate_all(session, opened, asked, names)
    show_estimates(bounds, err=True)
    name_hosts(session, roles_of(names))
    if (
        not yes
        and sys.stdin.isatty()
        and sys.stderr.isatty()
        and _worth_asking(bounds, session.settings)
    ):
        click.confirm("go on?", abort=True, err=True)
    look_through(opened)
    rows: list[tuple[str, Result | LongtakeError]] = []
    meter = Meter()
    for name in names:
        say(f"{name} …")
        try:
            with telling_what_was_spent(meter):
                rows.append((name, session.ask(opened, asked, name, sinks=[meter])))
        except ModelError as error:
            rows.append((name, error))  # the others may do better; the row says what went wrong
    if as_json:
        emit_json(
            {"film": str(film), "question": question, "results": [_plain(n, r) for n, r in rows]}
        )
    else:
        _table(rows)
    return min((exit_code(row.answer) for _, row in rows if isinstance(row, Result)), default=4)


def _worth_asking(bounds: Sequence[Estimate], settings: Settings) -> bool:
    seconds = settings.budget.seconds
    return any(each.paid for each in bounds) or seconds is None or seconds * len(bounds) > LONG


def _plain(name: str, row: Result | LongtakeError) -> dict[str, object]:
    if isinstance(row, Result):
        return plain(row)
    return {"method": name, "status": "error", "error": str(row)}


def _table(rows: Sequence[tuple[str, Result | LongtakeError]]) -> None:
    wide = first_column([name for name, _ in rows])
    click.echo(
        f"{'method':<{wide}}{'answer':<32}{'conf.':>6}{'frames':>8}{'calls':>7}{'tokens':>9}{'cost':>10}{'s':>8}"
    )
    for name, row in rows:
        if isinstance(row, LongtakeError):
            click.echo(visible(f"{name:<{wide}}error: {row}"))
            continue
        answer, used = row.answer, row.usage
        said = f"{answer.choice}. {answer.text}" if answer.choice else answer.text or "(none)"
        if answer.status != "answered":
            said = f"{said} [{answer.status}]"
        trust = "" if answer.confidence is None else f"{answer.confidence:.0%}"
        cost = "unknown" if used.cost is None else f"${used.cost:.4f}"
        click.echo(
            visible(
                f"{name:<{wide}}{said[:31]:<32}{trust:>6}{used.frames:>8}{used.calls:>7}"
                f"{used.tokens_in + used.tokens_out:>9,}{cost:>10}{used.seconds:>8.1f}"
            )
        )
