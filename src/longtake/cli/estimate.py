"""``longtake estimate``."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from longtake.cli.asking import asking_options, read_question
from longtake.cli.options import common, film
from longtake.cli.output import emit_json
from longtake.cli.tables import show_estimates
from longtake.registry import methods
from longtake.session.asking import Session
from longtake.session.estimate import estimate_all
from longtake.session.films import open_film


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
    session: Session,
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
    opened = open_film(film, session.settings, subtitles=subtitles)
    names = chosen or tuple(methods.names())
    estimates = estimate_all(session, opened, read_question(question, options), names)
    if as_json:
        plain = [dataclasses.asdict(each) for each in estimates]
        emit_json({"film": str(film), "estimates": plain})
    else:
        show_estimates(estimates)
