"""``longtake chat``."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from textwrap import indent

import click

from longtake._util import visible
from longtake._util.cancellation import Stop
from longtake._util.timecode import clock, parse_time
from longtake.cli.answers import AnsweredQuestion, AskOptions, ask_film, show_answered
from longtake.cli.clips import file_clock, open_player
from longtake.cli.indexing import look_through
from longtake.cli.options import (
    PATH,
    answering_options,
    check_models,
    film_path,
    question_method_option,
    read_question,
    settings_options,
    verbose_option,
)
from longtake.cli.output import say, with_quote, wrapped
from longtake.errors import ConfigError, LongtakeError, MediaError, unknown
from longtake.index.film import Film
from longtake.index.search import search
from longtake.runner.films import open_film
from longtake.runner.rendering import answer_text, kind_of, quoted, times_of
from longtake.runner.session import Session, carry_on, with_carried
from longtake.types import Evidence, Segment
from longtake.video.pictures import save_png

PROMPT = "> "
HELP = """\
/frames 12:31    save the frame at that time (several: 12:31,12:40)
/search WORDS    find moments by words
/why             show the reason for the last answer, and its citations in full
/open [N]        play the film at citation N of the last answer, or at a time
/carried         show the conversation so far that is sent with the next question
/forget          send the next question without the conversation so far
/history         list the questions and answers of this conversation
/quit            quit (or Ctrl-D)"""


def read_line(*, typed: bool) -> str | None:
    """The next line, or ``None`` at the end of the input."""
    if not typed:
        line = sys.stdin.readline()
        return line.strip() if line else None
    # not part of every build of Python
    with suppress(ImportError):
        import readline  # noqa: F401 - gives input() line editing and history
    while True:
        try:
            return input(PROMPT).strip()
        except EOFError:
            click.echo()
            return None
        except KeyboardInterrupt:
            # drops the line, as in a shell
            click.echo()


class Conversation:
    """A conversation about one film."""

    def __init__(self, film: Film, options: AskOptions) -> None:
        self.carried = ""
        """Earlier questions and answers, which are sent with the next question."""
        self._film, self._options = film, options
        self._last: AnsweredQuestion | None = None
        self._turns: list[tuple[str, str]] = []
        self._commands: dict[str, Callable[[str], None]] = {
            "help": lambda _: click.echo(HELP),
            "frames": self._frames,
            "search": self._search,
            "why": self._why,
            "open": self._open,
            "carried": lambda _: click.echo(visible(self.carried or "(nothing)")),
            "forget": self._forget,
            "history": lambda _: click.echo(
                visible("\n".join(f"{question}\n  {answer}" for question, answer in self._turns))
            ),
        }

    def hear(self, line: str) -> bool:
        """Handle a line; return false if it ends the conversation."""
        if line in ("/quit", "/exit"):
            return False
        if line.startswith("/"):
            name, _, rest = line[1:].partition(" ")
            command = self._commands.get(name)
            if command is None:
                raise unknown("command", f"/{name}", [f"/{each}" for each in self._commands])
            command(rest.strip())
        elif line:
            self._ask(line)
        return True

    def _ask(self, line: str) -> None:
        """Ask a question; Ctrl-C ends it with the best answer so far."""
        question = read_question(with_carried(line, self.carried), ())
        if self.carried:
            say("carried from the conversation (/forget drops it):")
            say(indent(self.carried, "  | "))
        with ended_by_interrupt() as stop:
            answered = ask_film(self._options, self._film, question, stop=stop)
        show_answered(answered, "text", self._options)
        answer = answer_text(answered.result.answer)
        self._last = answered
        self._turns.append((line, answer))
        # the next question cannot refer to a cancelled one
        if answered.result.answer.status != "cancelled":
            self.carried = carry_on(self.carried, line, answer)

    def _frames(self, rest: str) -> None:
        times = [parse_time(moment) for moment in rest.split(",") if moment.strip()]
        if not times:
            raise ConfigError("/frames: give a time, such as /frames 12:31")
        if not self._film.has:
            raise MediaError(self._film.path, "no_video", "has sound only, no pictures")
        for frame in self._film.at(times):
            name = f"{Path(self._film.name).stem}_{file_clock(frame.time, millis=True)}.png"
            file = Path(name)
            if file.exists():
                raise ConfigError(f"{file} already exists")
            save_png(frame.pixels, file)
            click.echo(visible(str(file)))

    def _search(self, words: str) -> None:
        hits = search(self._film, words, top=5).hits
        for hit in hits:
            star = "*" if hit.sure else " "
            start = f"{star} {clock(hit.time)}  {', '.join(hit.sources)}"
            click.echo(with_quote(start, hit.text))
        if not hits:
            click.echo("nothing found")

    def _why(self, _: str) -> None:
        answer = self._answered().result.answer
        if answer.reason:
            click.echo(wrapped(answer.reason))
        for number, cited in enumerate(answer.evidence, start=1):
            # in full; the answer showed one line
            words = quoted(cited)
            quote = f": “{words}”" if words else ""
            click.echo(wrapped(f"[{number}] {times_of(cited)} {kind_of(cited)}{quote}"))
        if not answer.evidence:
            click.echo("the answer cites nothing")

    def _open(self, rest: str) -> None:
        if ":" in rest:
            moment = parse_time(rest)
            open_player(self._film.path, [Evidence(Segment(moment, moment), "frame")])
            return
        cited = self._answered().result.answer.evidence
        place = int(rest) - 1 if rest.isdigit() else 0
        open_player(self._film.path, cited[place : place + 1])

    def _forget(self, _: str) -> None:
        self.carried = ""
        click.echo("the next question will be sent alone")

    def _answered(self) -> AnsweredQuestion:
        if self._last is None:
            raise ConfigError("ask a question first")
        return self._last


@contextmanager
def ended_by_interrupt() -> Iterator[Stop]:
    """Inside the block, the first Ctrl-C sets the flag that is yielded, and a second interrupts."""
    stop = Stop()

    def interrupt(signum: int, frame: object) -> None:  # noqa: ARG001 - as signal calls it
        signal.signal(signal.SIGINT, before)
        # in another thread, since this one may hold the flag's lock
        threading.Thread(target=stop.set, daemon=True).start()

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)


@click.command()
@film_path
@question_method_option
@click.option("--subtitles", type=PATH, metavar="FILE", help="SRT, VTT, ASS or JSON.")
@verbose_option
@settings_options
@answering_options
def chat(
    path: Path, method: str | None, subtitles: Path | None, verbose: bool, session: Session
) -> None:
    """Ask a film one question after another.

    Earlier questions and answers are shown and sent with each new question; /forget drops them.
    /frames 12:31 saves a frame, /search finds moments, /why shows the reason for the last answer,
    /open plays it. Questions can also come from a pipe, one per line.

    \b
    Example:
      longtake chat lecture.mp4
    """
    film = open_film(path, session.settings, subtitles=subtitles)
    options = AskOptions(session, method or session.assignment.default_method, verbose=verbose)
    check_models(session, options.roles)
    look_through(film)
    talk = Conversation(film, options)
    typed = sys.stdin.isatty()
    if typed:
        say(f"Ask about {film.name}. /help lists commands, Ctrl-C ends a question, Ctrl-D quits.")
    while (line := read_line(typed=typed)) is not None:
        try:
            if not talk.hear(line):
                return
        except LongtakeError as error:
            # a question that fails does not end the conversation
            say(str(error))
