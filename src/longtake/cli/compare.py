"""``longtake compare``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from longtake._util import visible
from longtake.cli.answers import exit_code, report_spending
from longtake.cli.indexing import look_through
from longtake.cli.options import (
    answering_options,
    check_models,
    common,
    film_path,
    methods_option,
    question_options,
    read_question,
)
from longtake.cli.output import Output, confirm, say
from longtake.errors import ModelError
from longtake.runner.assignment import BUILT_IN_METHOD, roles_of
from longtake.runner.films import open_film
from longtake.runner.rendering import answer_text
from longtake.runner.results import result_data
from longtake.runner.session import Session
from longtake.tracing.sinks import Meter
from longtake.types import QuestionKind, Result

PAPERS = ("videoagent", "lvagent", "a4vl", "videodetective", "symphony")
"""The methods of the papers."""


@click.command()
@film_path
@click.argument("question")
@methods_option
@click.option("--yes", is_flag=True, help="Do not ask before words and pictures are sent.")
@common
@question_options
@answering_options
def compare(
    path: Path,
    question: str,
    methods: tuple[str, ...],
    yes: bool,
    options: tuple[str, ...],
    asked_as: QuestionKind | None,
    subtitles: Path | None,
    session: Session,
) -> Output:
    """Compare several methods on one question.

    Without --method, these are lookup and auto, and with a model that sees also the methods of the
    papers. All use the same index, models and budget. Earlier replies are not reused, so that each
    method shows what it costs. On a terminal you are asked before anything is sent to another
    machine.

    The columns: confidence; pictures shown to models; calls of models; tokens read and written;
    US dollars; seconds.

    Exit code 0: a method answered; 3: none did, because the budget ran out or replies could not be
    read; 4: all failed.

    \b
    Example:
      longtake compare film.mp4 "Who leaves first?" --option "the man" --option "the woman"
      longtake compare film.mp4 "Who leaves first?" --method lookup --method videoagent
    """
    parsed = read_question(question, options, asked_as)
    names = methods or compared(session)
    film = open_film(path, session.settings, subtitles=subtitles)
    # a reply to one method would be free for the next one
    assignment = replace(session.assignment.among(names), replies=False)
    session = replace(session, assignment=assignment)
    check_models(session, roles_of(names))
    if not yes and session.hosts(roles_of(names)):
        confirm()
    look_through(film)
    rows: list[Mapping[str, Any]] = []
    # a method named by its address can be long
    width = max([16, *(len(name) + 1 for name in names)])
    usage = f"{'frames':>8}{'calls':>7}{'tokens':>9}{'cost':>10}{'s':>8}"
    lines = [f"{'method':<{width}}{'answer':<32}{'conf.':>6}{usage}"]
    codes = [4]
    meter = Meter()
    for name in names:
        say(f"{name} …")
        try:
            with report_spending(meter):
                result = session.ask(film, parsed, name, sinks=[meter])
        except ModelError as error:
            # the other methods may succeed
            rows.append({"method": name, "status": "error", "error": str(error)})
            lines.append(visible(f"{name:<{width}}error: {error}"))
            continue
        rows.append(result_data(result))
        lines.append(visible(f"{name:<{width}}{_line(result)}"))
        codes.append(exit_code(result.answer))
    lines += ["", "frames: pictures shown to models; calls of models; tokens read and written"]
    # one answer is enough for success
    return Output({"film": path, "question": question, "results": rows}, lines, min(codes))


def compared(session: Session) -> tuple[str, ...]:
    """The methods that are compared by default."""
    # those of the papers look at pictures
    sees = session.assignment.default_method != BUILT_IN_METHOD
    return ("lookup", "auto", *(PAPERS if sees else ()))


def _line(result: Result) -> str:
    answer, used = result.answer, result.usage
    status = "" if answer.status == "answered" else f" [{answer.status}]"
    words = answer_text(answer, none="(none)")[: 31 - len(status)] + status
    confidence = "" if answer.confidence is None else f"{answer.confidence:.0%}"
    tokens = used.tokens_in + used.tokens_out
    cost = "unknown" if used.cost is None else f"${used.cost:.4f}"
    usage = f"{used.frames:>8}{used.calls:>7}{tokens:>9,}{cost:>10}{used.seconds:>8.1f}"
    return f"{words:<32}{confidence:>6}{usage}"
