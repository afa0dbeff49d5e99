"""``longtake estimate``."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from longtake import registry
from longtake.cli.options import (
    answering_options,
    common,
    film_path,
    methods_option,
    question_options,
    read_question,
)
from longtake.cli.output import emit_json, show_estimates
from longtake.runner.estimate import estimate_all
from longtake.runner.films import open_film
from longtake.runner.session import Session


@click.command()
@film_path
@click.argument("question")
@methods_option
@common
@question_options
@answering_options
def estimate(
    path: Path,
    question: str,
    methods: tuple[str, ...],
    options: tuple[str, ...],
    subtitles: Path | None,
    session: Session,
    as_json: bool,
) -> None:
    """Show the most a question can cost, without asking it.

    Each method states its own upper bounds: calls, pictures, tokens, and money where prices are
    known. The check of the answer is included. Nothing is sent. Not included: replies that have to
    be requested again, and replies longer than requested. A method without bounds is shown as
    unknown.

    \b
    Example:
      longtake estimate film.mp4 "Who leaves first?" --option "the man" --option "the woman"
    """
    parsed = read_question(question, options)
    film = open_film(path, session.settings, subtitles=subtitles)
    names = methods or tuple(registry.methods.names())
    estimates = estimate_all(session, film, parsed, names)
    if as_json:
        plain = [dataclasses.asdict(each) for each in estimates]
        emit_json({"film": str(path), "estimates": plain})
    else:
        show_estimates(estimates)
