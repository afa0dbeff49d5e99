"""``longtake summary``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click

from longtake._util import visible
from longtake._util.timecode import clock
from longtake.agents.overview import QUOTED, FilmOverview, make_overview
from longtake.cli.indexing import look_through
from longtake.cli.options import FILE, answering_options, check_models, common, film_path
from longtake.cli.output import Kind, Output, check_place, progress, say, write_text
from longtake.index.film import Film
from longtake.library.overview import FORMATS, cited
from longtake.runner.films import open_film
from longtake.runner.session import Session


def overview_of(path: Path, session: Session) -> tuple[Film, FilmOverview]:
    """The film and its overview, which a model writes only if one is chosen."""
    film = open_film(path, session.settings)
    asks = bool(session.assignment.models)
    if asks:
        check_models(session, ("llm",))
    look_through(film)
    with session.under_way(), progress(f"reading {film.name}"):
        run = session.reader(folder=film.replies_folder) if asks else None
        overview = make_overview(film, run)
    if overview.by == QUOTED:
        say("quoted from the film; use --model NAME to let a model write it")
    return film, overview


CHAPTERS = Kind("a list of chapters", (b"# ", b"{", b"0:00", b";FFMETADATA1", b"WEBVTT"))


@click.command()
@film_path
@click.option("--chapters", "only", is_flag=True, help="Only chapters, with two sentences each.")
@click.option(
    "--format",
    "kind",
    type=click.Choice(tuple(FORMATS)),
    metavar="NAME",
    help=f"Export the chapters: {', '.join(FORMATS)}.",
)
@click.option("--out", type=FILE, help="Write to a file instead, as Markdown.")
@common
@answering_options
def summary(
    path: Path, only: bool, kind: str | None, out: Path | None, session: Session
) -> Output | None:
    """Summarise a film, and show or export its chapters.

    Chapters begin where the topic of the talk changes, or the picture if little is said. Without
    --model, sentences are quoted from speech and on-screen text; with --model, a model writes them,
    once. Each sentence is followed by the moment that it is based on.

    \b
    Example:
      longtake summary meeting.mp4 --model local/qwen2.5-coder-1.5b
      longtake summary lecture.mp4 --chapters
      longtake summary lecture.mp4 --format youtube
    """
    if out is not None:
        check_place(out, CHAPTERS, inputs=(path,))
    film, overview = overview_of(path, session)
    if film.words.speech_note and not only:
        say(film.words.speech_note)
    if out is not None:
        write_text(out, FORMATS[kind or "markdown"](film.name, overview))
        return None
    if kind is not None:
        click.echo(FORMATS[kind](film.name, overview), nl=False)
        return None
    return Output({"film": path, **asdict(overview)}, _lines(overview, only))


def _lines(overview: FilmOverview, by_chapters: bool) -> Iterator[str]:
    for sentence in () if by_chapters else overview.summary:
        yield visible(cited(sentence))
    if not (by_chapters or overview.summary):
        yield "there is no speech or on-screen text to quote"
    for chapter in overview.chapters:
        indent = "" if by_chapters else "  "
        yield visible(f"{indent}{clock(chapter.start)}  {chapter.title}")
        for sentence in chapter.sentences if by_chapters else ():
            yield visible(f"          {cited(sentence)}")
