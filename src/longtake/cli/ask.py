"""``longtake ask``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from longtake.cli.answers import exit_code, plain, show, telling_what_was_spent
from longtake.cli.asking import asking_options, name_hosts, read_question
from longtake.cli.looking import look_through
from longtake.cli.options import common, film
from longtake.cli.output import emit_json, on_terminal, say
from longtake.cli.places import TRACE, check_place, plot_kind
from longtake.events import ScoresSet, Sink
from longtake.index.film import Film
from longtake.plots import answer as drawing
from longtake.plots import belief
from longtake.plots import events as plots
from longtake.registry import methods
from longtake.session.asking import DEFAULT_METHOD, Session
from longtake.session.films import open_film
from longtake.sinks.console import ConsoleSink
from longtake.sinks.jsonl import JsonlSink
from longtake.sinks.meter import Meter
from longtake.types import Result


@click.command()
@film
@click.argument("question")
@click.option(
    "--method",
    default=DEFAULT_METHOD,
    show_default=True,
    metavar="NAME",
    help="See 'longtake methods'.",
)
@click.option(
    "--trace",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Record the run; the file holds the frames that were looked at.",
)
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Draw the cited frames or the search, with what was scored in the film (extra plot).",
)
@click.option("--quiet", is_flag=True, help="Do not show what the method does.")
@common
@asking_options
def ask(
    film: Path,
    question: str,
    method: str,
    trace: Path | None,
    plot: Path | None,
    quiet: bool,
    options: tuple[str, ...],
    subtitles: Path | None,
    session: Session,
    as_json: bool,
) -> int:
    """Ask a question about a film; get an answer with evidence.

    Without --option the question is open-ended. Without --model everything runs on this machine, on small
    built-in models ('longtake models pull local/qwen2.5-1.5b' fetches the language model once).
    Exit code 0: answered; 1: answered, but the trace or the plot could not be written; 3: the budget ended it, or
    no reply could be read.

    \b
    Example:
      longtake ask film.mp4 "What does the sign over the door say?"
      longtake ask film.mp4 "Who leaves first?" --option "the man" --option "the woman" --trace run.jsonl
    """
    asked = read_question(question, options)
    kind = methods.get(method)
    opened = open_film(film, session.settings, subtitles=subtitles)
    inputs = (film, opened.subtitle_file, session.casting.team)
    if trace is not None:
        check_place(trace, TRACE, inputs=inputs)
    if plot is not None:
        plots.check(plot)
        check_place(plot, plot_kind(plot), inputs=(*inputs, trace))
    name_hosts(session, kind.roles)
    look_through(opened)
    meter = Meter()
    sinks: list[Sink] = [meter]
    if on_terminal() and not quiet:
        sinks.append(ConsoleSink(sys.stderr))
    recording = None if trace is None else JsonlSink(trace)
    if recording is not None:
        say(f"{trace} will hold the frames that are looked at")
        sinks.append(recording)
    with telling_what_was_spent(meter):
        result = session.ask(opened, asked, method, sinks=sinks)
    # the answer first: it was paid for, whatever becomes of its plot
    if as_json:
        emit_json({"film": str(film), "question": question, **plain(result)})
    else:
        show(result.answer, result.usage)
    if plot is not None:
        _draw(opened, result, plot)
    if recording is not None and recording.problem:
        say(f"{trace}: the trace ends too early ({recording.problem})")
        return exit_code(result.answer) or 1
    return exit_code(result.answer)


def _draw(film: Film, result: Result, path: Path) -> None:
    scores = [event for event in result.trace.events if isinstance(event, ScoresSet)]
    if (search := belief.read(scores)) is not None:
        moments = [
            (number + 0.5) * film.duration / belief.THUMBNAILS
            for number in range(belief.THUMBNAILS)
        ]
        belief.draw(search, result.answer, film.at(moments, width=160), film.duration, path)
    else:
        times = [min(cited.segment.middle, film.duration) for cited in result.answer.evidence]
        drawing.draw(result.answer, film.at(times, width=320), scores, film.duration, path)
    say(f"plot: {path}")
