"""``longtake chapters``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from longtake._util import visible
from longtake._util.timecode import clock
from longtake.cli.indexing import look_through
from longtake.cli.options import FILE, answering_options, check_models, common, film_path
from longtake.cli.output import Kind, check_place, emit_json, progress, say, write_text
from longtake.index.film import Film
from longtake.library.overview import FORMATS, FilmOverview, make_overview
from longtake.runner.films import open_film
from longtake.runner.session import Session


def overview_of(path: Path, session: Session) -> tuple[Film, FilmOverview]:
    """The film and its overview; a model writes it only if one was named."""
    film = open_film(path, session.settings)
    asks = bool(session.assignment.models)
    if asks:
        check_models(session, ("llm",))
    look_through(film)
    with session.under_way(), progress(f"reading {film.name}"):
        overview = make_overview(film, session if asks else None)
    if overview.by == "film":
        say("quoted from the film; --model NAME lets a model write it")
    return film, overview


CHAPTERS = Kind("a list of chapters", (b"# ", b"{", b"0:00", b";FFMETADATA1", b"WEBVTT"))


@click.command()
@film_path
@click.option(
    "--format",
    "kind",
    type=click.Choice(tuple(FORMATS)),
    metavar="NAME",
    help=f"One of {', '.join(FORMATS)}.",
)
@click.option("--out", type=FILE, metavar="FILE", help="Write to a file instead.")
@common
@answering_options
def chapters(
    path: Path, kind: str | None, out: Path | None, session: Session, as_json: bool
) -> None:
    """Show a film's chapters, or export them.

    Chapters begin where what is visible changes. Titles are quoted from what is said and shown,
    with the moment they refer to; with --model a model writes them, once.

    \b
    Example:
      longtake chapters lecture.mp4
      longtake chapters lecture.mp4 --model http://127.0.0.1:8000/v1#my-model --format youtube
    """
    if out is not None:
        check_place(out, CHAPTERS, inputs=(path,))
    film, overview = overview_of(path, session)
    if out is not None:
        write_text(out, FORMATS[kind or "markdown"](film.name, overview))
    elif kind is not None:
        click.echo(FORMATS[kind](film.name, overview), nl=False)
    elif as_json:
        emit_json({"film": str(path), **asdict(overview)})
    else:
        for chapter in overview.chapters:
            cited = "" if chapter.cited is None else f"  [{clock(chapter.cited)}]"
            click.echo(visible(f"{clock(chapter.start)}  {chapter.title}{cited}"))


@click.command()
@film_path
@common
@answering_options
def summary(path: Path, session: Session, as_json: bool) -> None:
    """Summarise a film, with its chapters.

    Without --model the summary quotes the film, each quotation after its time; with --model a model
    writes it from what is said and shown, once.

    \b
    Example:
      longtake summary meeting.mp4 --model local/qwen2.5-1.5b
    """
    _, overview = overview_of(path, session)
    if as_json:
        emit_json({"film": str(path), **asdict(overview)})
        return
    click.echo(visible(overview.summary or "nothing is said or shown in this film"))
    for chapter in overview.chapters:
        click.echo(visible(f"  {clock(chapter.start)}  {chapter.title}"))
