"""``longtake ask``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from longtake.cli.answers import exit_code, plain, report_spending, show
from longtake.cli.clipping import check_clips_folder, open_player, write_clips
from longtake.cli.indexing import look_through
from longtake.cli.options import FILE, FOLDER, common, film_path, plot
from longtake.cli.output import emit_json, on_terminal, say
from longtake.cli.places import TRACE, check_place, plot_kind
from longtake.cli.session import (
    answering_options,
    name_hosts,
    question_method_option,
    question_options,
    read_question,
)
from longtake.events import ScoresSet, Sink
from longtake.index.film import Film
from longtake.plots import answer as drawing
from longtake.plots import belief
from longtake.plots import events as plots
from longtake.registry import methods
from longtake.session.asking import Session
from longtake.session.films import open_film
from longtake.sinks.console import ConsoleSink
from longtake.sinks.jsonl import JsonlSink
from longtake.sinks.meter import Meter
from longtake.types import Result


@click.command()
@film_path
@click.argument("question")
@question_method_option
@click.option(
    "--trace",
    type=FILE,
    metavar="FILE",
    help="Record the run; the file holds the frames shown to models.",
)
@plot("Draw the cited frames or the search, with the scores over the film")
@click.option(
    "--clips", type=FOLDER, metavar="DIR", help="Cut the cited stretches into a new folder."
)
@click.option("--open", "play", is_flag=True, help="Start your player at the first citation.")
@click.option("--quiet", is_flag=True, help="Do not show what the method does.")
@common
@question_options
@answering_options
def ask(
    path: Path,
    question: str,
    method: str | None,
    trace: Path | None,
    plot: Path | None,
    clips: Path | None,
    play: bool,
    quiet: bool,
    options: tuple[str, ...],
    subtitles: Path | None,
    session: Session,
    as_json: bool,
) -> int:
    """Ask a question about a film; get an answer with evidence.

    Without --option the question is open-ended. Without --model everything runs on this machine,
    with small built-in models ('longtake models pull local/qwen2.5-1.5b' downloads the language
    model once).

    Exit code 0: answered; 1: answered, but the trace or the plot could not be written; 3: the
    budget ran out, or no reply could be read.

    \b
    Example:
      longtake ask film.mp4 "What does the sign over the door say?"
      longtake ask film.mp4 "Who leaves first?" --option "the man" --option "the woman"
    """
    asked = read_question(question, options)
    method = method or session.casting.default_method
    roles = methods.get(method).roles
    film = open_film(path, session.settings, subtitles=subtitles)
    # outputs are checked before any work is done for them
    inputs = (path, film.subtitle_file, session.casting.team)
    if trace is not None:
        check_place(trace, TRACE, inputs=inputs)
    if plot is not None:
        plots.check(plot)
        check_place(plot, plot_kind(plot), inputs=(*inputs, trace))
    if clips is not None:
        check_clips_folder(clips)
    name_hosts(session, roles)
    session.check_models(roles)
    # indexed here, with a progress bar, rather than inside the first search of the method; if the
    # time is limited, the method may have a first answer before it needs the index
    if session.settings.budget.seconds is None:
        look_through(film)
    meter = Meter()
    sinks: list[Sink] = [meter]
    if on_terminal() and not quiet:
        sinks.append(ConsoleSink(sys.stderr))
    recording = None if trace is None else JsonlSink(trace)
    if recording is not None:
        say(f"{trace} will hold the frames shown to models")
        sinks.append(recording)
    with report_spending(meter):
        result = session.ask(film, asked, method, sinks=sinks)
    # the answer comes first: it is paid for, even if drawing the plot fails
    if as_json:
        emit_json({"film": str(path), "question": question, **plain(result)})
    else:
        show(result.answer, result.usage)
    if clips is not None:
        write_clips(film, result.answer.evidence, clips)
    if play:
        open_player(path, result.answer.evidence)
    if plot is not None:
        _draw(film, result, plot)
    if recording is not None and recording.problem:
        say(f"{trace}: the trace is incomplete ({recording.problem})")
        return exit_code(result.answer) or 1
    return exit_code(result.answer)


def _draw(film: Film, result: Result, path: Path) -> None:
    """Draw the search of a method that keeps a belief over the film, or else the cited frames."""
    scores = [event for event in result.trace.events if isinstance(event, ScoresSet)]
    search = belief.read(scores)
    if search is not None:
        spacing = film.duration / belief.THUMBNAILS
        times = [(number + 0.5) * spacing for number in range(belief.THUMBNAILS)]
        belief.draw(search, result.answer, film.at(times, width=160), film.duration, path)
    else:
        times = [min(cited.segment.middle, film.duration) for cited in result.answer.evidence]
        drawing.draw(result.answer, film.at(times, width=320), scores, film.duration, path)
    say(f"plot: {path}")
