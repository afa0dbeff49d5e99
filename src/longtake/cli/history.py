"""``longtake history``."""

from __future__ import annotations

import shlex
import time
from datetime import datetime
from pathlib import Path

import click

from longtake._util import visible
from longtake._util.timecode import clock
from longtake.cli.options import COUNT, common
from longtake.cli.output import bold, emit_json, faint, in_one_line, say
from longtake.config import Settings
from longtake.errors import ConfigError
from longtake.runner.history import PastQuestion, forget, history_file, past_questions
from longtake.runner.rendering import plural


@click.command()
@click.argument("words", nargs=-1, metavar="[WORDS]...")
@click.option("--top", type=COUNT, default=20, help="Maximum number of questions.")
@click.option("--show", "number", type=COUNT, metavar="N", help="Show one with its citations.")
@click.option("--clear", is_flag=True, help="Delete the history.")
@common
def history(
    words: tuple[str, ...],
    top: int,
    number: int | None,
    clear: bool,
    settings: Settings,
    as_json: bool,
) -> None:
    """Show earlier questions and answers, newest first.

    With WORDS, only questions and answers that contain all of them are shown.

    The history is a file in your cache that only you can read. '--set answers.history=false', or
    the same in your configuration, turns it off.

    \b
    Example:
      longtake history exam
      longtake history --show 1
    """
    if clear:
        click.echo(f"deleted {plural(forget(settings), 'question')}")
        return
    # numbered before filtering, so that --show takes the same numbers
    newest = list(enumerate(reversed(past_questions(settings)), start=1))
    if number is not None:
        if number > len(newest):
            raise ConfigError(f"--show {number}: there are {plural(len(newest), 'question')}")
        newest = [newest[number - 1]]
    chosen = [(place, past) for place, past in newest if _contains(past, words)][:top]
    if as_json:
        rows = [{"number": place, **vars(past)} for place, past in chosen]
        emit_json({"file": str(history_file(settings)), "questions": rows})
    elif number is not None:
        _show_whole(chosen[0][1])
    else:
        for place, past in chosen:
            head = f"{place:>4}  {_ago(past.at)}  {Path(past.film).name}"
            click.echo(faint(visible(head)))
            click.echo(f"      {in_one_line(past.question, taken=6)}")
            click.echo(f"      {bold(in_one_line(past.answer, taken=6))}")
        if not chosen:
            say("nothing was asked yet, or nothing that contains these words")


def _contains(past: PastQuestion, words: tuple[str, ...]) -> bool:
    text = f"{past.film} {past.question} {past.answer}".casefold()
    return all(word.casefold() in text for word in words)


def _show_whole(past: PastQuestion) -> None:
    click.echo(faint(visible(f"{past.film}\n{past.question}")))
    click.echo(bold(visible(past.answer)))
    for cited in past.result.get("evidence", []):
        start = f"  {clock(cited['start'])}  {visible(str(cited['source']))}"
        click.echo(f"{start}  {in_one_line(str(cited['text']), taken=len(start) + 2)}".rstrip())
    click.echo(faint(f'  ask again: longtake ask {visible(shlex.quote(past.film))} "…"'))


def _ago(at: float) -> str:
    """``14:05`` today, else the day."""
    moment = datetime.fromtimestamp(at)
    today = datetime.fromtimestamp(time.time()).date()
    return moment.strftime("%H:%M" if moment.date() == today else "%Y-%m-%d")
