"""What ``longtake chapters`` and ``longtake summary`` share."""

from __future__ import annotations

from pathlib import Path

import click

from longtake.cli.indexing import look_through
from longtake.cli.output import progress, say
from longtake.cli.session import check_models
from longtake.index.film import Film
from longtake.library.exports import FORMATS
from longtake.library.overviews import Overview, make_overview
from longtake.replacing import replacing
from longtake.session.asking import Session
from longtake.session.films import open_film

format_option = click.option(
    "--format",
    "kind",
    type=click.Choice(tuple(FORMATS)),
    metavar="NAME",
    help=f"One of {', '.join(FORMATS)}.",
)


def overview_of(path: Path, session: Session) -> tuple[Film, Overview]:
    """The film and its overview; a model writes it only if one was named."""
    film = open_film(path, session.settings)
    asks = bool(session.casting.models)
    if asks:
        check_models(session, ("llm",))
    look_through(film)
    with session.under_way(), progress(f"reading {film.name}"):
        overview = make_overview(film, session if asks else None)
    if overview.by == "film":
        say("quoted from the film; --model NAME lets a model write it")
    return film, overview


def write(text: str, out: Path | None) -> None:
    """Print a text, or replace a file with it."""
    if out is None:
        click.echo(text, nl=False)
        return
    with replacing(out) as draft:
        draft.write_text(text, encoding="utf-8")
    say(f"{out}: written")
