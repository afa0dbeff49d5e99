"""``longtake compare``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import click

from longtake import registry
from longtake._util import visible
from longtake.cli.answers import exit_code, plain, report_spending
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
from longtake.cli.output import confirm, emit_json, first_column, say, show_estimates
from longtake.errors import LongtakeError, ModelError
from longtake.runner.assignment import roles_of
from longtake.runner.estimate import estimate_all
from longtake.runner.films import open_film
from longtake.runner.rendering import answer_text
from longtake.runner.session import Session
from longtake.tracing.sinks import Meter
from longtake.types import QuestionKind, Result


@click.command()
@film_path
@click.argument("question")
@methods_option
@click.option("--dry-run", is_flag=True, help="Show the most it can cost; send nothing.")
@click.option("--yes", is_flag=True, help="Do not ask before a long or paid comparison.")
@common
@question_options
@answering_options
def compare(
    path: Path,
    question: str,
    methods: tuple[str, ...],
    dry_run: bool,
    yes: bool,
    options: tuple[str, ...],
    asked_as: QuestionKind | None,
    subtitles: Path | None,
    session: Session,
    as_json: bool,
) -> int:
    """Compare several methods on one question, or what they can cost.

    All methods use the same index, models and budget. Earlier replies are not reused, so that each
    method shows what it costs. The estimate is shown first; on a terminal you are asked before
    anything that costs money or may take more than ten minutes (--max-seconds limits each method).

    The estimate is each method's own upper bound on calls, pictures, tokens, and money where prices
    are known, with the check of the answer. Replies that have to be requested again, or are longer
    than requested, are not in it. A method without bounds is shown as unknown.

    Exit code 0: a method answered; 3: none did, because the budget ran out or replies could not be
    read; 4: all failed.

    \b
    Example:
      longtake compare film.mp4 "Who leaves first?" --option "the man" --option "the woman"
      longtake compare film.mp4 "Who leaves first?" --dry-run
    """
    parsed = read_question(question, options, asked_as)
    names = methods or tuple(registry.methods.names())
    film = open_film(path, session.settings, subtitles=subtitles)
    if dry_run:
        estimates = estimate_all(session, film, parsed, names)
        if as_json:
            emit_json({"film": str(path), "estimates": [asdict(each) for each in estimates]})
        else:
            show_estimates(estimates)
        return 0
    # a reply that one method paid for would be free for the next one
    assignment = replace(session.assignment.among(names), replies=False)
    session = replace(session, assignment=assignment)
    # also opens every model, so that unknown names fail before the first method runs
    estimates = estimate_all(session, film, parsed, names)
    show_estimates(estimates, err=True)
    check_models(session, roles_of(names))
    seconds = session.settings.budget.seconds
    # ten minutes, as the help says
    too_long = seconds is None or seconds * len(estimates) > 600.0
    if not yes and (too_long or any(each.paid for each in estimates)):
        confirm()
    look_through(film)
    rows: list[tuple[str, Result | LongtakeError]] = []
    meter = Meter()
    for name in names:
        say(f"{name} …")
        try:
            with report_spending(meter):
                rows.append((name, session.ask(film, parsed, name, sinks=[meter])))
        except ModelError as error:
            # the other methods may succeed; this row says what went wrong
            rows.append((name, error))
    if as_json:
        results = [
            plain(row)
            if isinstance(row, Result)
            else {"method": name, "status": "error", "error": str(row)}
            for name, row in rows
        ]
        emit_json({"film": str(path), "question": question, "results": results})
    else:
        _show_table(rows)
    # one answer is enough for success
    return min((exit_code(row.answer) for _, row in rows if isinstance(row, Result)), default=4)


def _show_table(rows: Sequence[tuple[str, Result | LongtakeError]]) -> None:
    width = first_column([name for name, _ in rows])
    usage = f"{'frames':>8}{'calls':>7}{'tokens':>9}{'cost':>10}{'s':>8}"
    click.echo(f"{'method':<{width}}{'answer':<32}{'conf.':>6}{usage}")
    for name, row in rows:
        line = f"error: {row}" if isinstance(row, LongtakeError) else _line(row)
        click.echo(visible(f"{name:<{width}}{line}"))


def _line(result: Result) -> str:
    answer, used = result.answer, result.usage
    status = "" if answer.status == "answered" else f" [{answer.status}]"
    words = answer_text(answer, none="(none)")[: 31 - len(status)] + status
    confidence = "" if answer.confidence is None else f"{answer.confidence:.0%}"
    tokens = used.tokens_in + used.tokens_out
    cost = "unknown" if used.cost is None else f"${used.cost:.4f}"
    usage = f"{used.frames:>8}{used.calls:>7}{tokens:>9,}{cost:>10}{used.seconds:>8.1f}"
    return f"{words:<32}{confidence:>6}{usage}"
