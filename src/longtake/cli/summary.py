"""``longtake summary``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from longtake.cli.options import common, film_path
from longtake.cli.output import emit_json
from longtake.cli.overviews import overview_of
from longtake.cli.session import answering_options, no_question_options
from longtake.display import visible
from longtake.session.asking import Session
from longtake.timecode import clock


@click.command()
@film_path
@common
@no_question_options("an overview")
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
