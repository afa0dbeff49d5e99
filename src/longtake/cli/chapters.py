"""``longtake chapters``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from longtake.cli.options import FILE, common, film_path
from longtake.cli.output import emit_json
from longtake.cli.overviews import format_option, overview_of, write
from longtake.cli.places import Kind, check_place
from longtake.cli.session import answering_options, no_question_options
from longtake.display import visible
from longtake.library.exports import FORMATS
from longtake.session.asking import Session
from longtake.timecode import clock

CHAPTERS = Kind("a list of chapters", (b"# ", b"{", b"0:00", b";FFMETADATA1", b"WEBVTT"))


@click.command()
@film_path
@format_option
@click.option("--out", type=FILE, metavar="FILE", help="Write to a file instead.")
@common
@no_question_options("an overview")
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
    if kind is not None:
        write(FORMATS[kind](film.name, overview), out)
    elif out is not None:
        write(FORMATS["markdown"](film.name, overview), out)
    elif as_json:
        emit_json({"film": str(path), **asdict(overview)})
    else:
        for chapter in overview.chapters:
            cited = "" if chapter.cited is None else f"  [{clock(chapter.cited)}]"
            click.echo(visible(f"{clock(chapter.start)}  {chapter.title}{cited}"))
