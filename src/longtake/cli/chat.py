"""``longtake chat``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from longtake.cli.asking import AskOptions
from longtake.cli.chatting import Chatting, read_line
from longtake.cli.indexing import look_through
from longtake.cli.options import PATH, common, film_path, verbose_option
from longtake.cli.output import say
from longtake.cli.session import answering_options, check_models, question_method_option
from longtake.errors import ConfigError, LongtakeError
from longtake.session.asking import Session
from longtake.session.films import open_film

WELCOME = "Ask about {name}. /help lists commands, Ctrl-C ends a question, Ctrl-D the conversation."


@click.command()
@film_path
@question_method_option
@click.option("--subtitles", type=PATH, metavar="FILE", help="SRT, VTT, ASS or JSON.")
@verbose_option
@common
@answering_options
def chat(
    path: Path,
    method: str | None,
    subtitles: Path | None,
    verbose: bool,
    session: Session,
    as_json: bool,
) -> None:
    """Ask a film one question after another.

    A question goes along with the earlier ones and their answers; the text that is carried is
    shown, and /forget drops it. /frames 12:31 saves a frame, /search finds moments, /why shows what
    the last answer rests on, /open plays it. Questions can also come from a pipe, one per line.

    \b
    Example:
      longtake chat lecture.mp4
    """
    if as_json:
        raise ConfigError("chat is for people; programs use 'longtake ask --questions FILE --json'")
    film = open_film(path, session.settings, subtitles=subtitles)
    options = AskOptions(session, method or session.casting.default_method, verbose=verbose)
    check_models(session, options.roles)
    look_through(film)
    talk = Chatting(film, options)
    typed = sys.stdin.isatty()
    if typed:
        say(WELCOME.format(name=film.name))
    while (line := read_line(typed=typed)) is not None:
        try:
            if not talk.hear(line):
                return
        except LongtakeError as error:
            # one question that fails does not end the conversation
            say(str(error))
