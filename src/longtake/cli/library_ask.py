"""``longtake library search`` and ``longtake library ask``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from longtake.cli.answers import STATUS, exit_code, plain, report_spending, spent
from longtake.cli.options import COUNT, common, quiet_option, verbose_option
from longtake.cli.output import emit_json, say
from longtake.cli.painting import bold, in_one_line, wrapped
from longtake.cli.session import (
    answering_options,
    check_models,
    method_option,
    question_options,
    read_question,
)
from longtake.cli.shelves import entry_data, library_option, open_library, where_option
from longtake.cli.watching import watching
from longtake.config import Settings
from longtake.display import visible
from longtake.errors import ConfigError
from longtake.events import Sink
from longtake.library import FilmHits, LibraryAnswer, Moment, ask_library
from longtake.library.asking import TRIES
from longtake.registry import methods
from longtake.session.asking import Session
from longtake.session.sharing import kind_of, quoted, said
from longtake.sinks.meter import Meter
from longtake.timecode import clock


@click.command()
@click.argument("text")
@where_option
@click.option("--top", type=COUNT, default=10, show_default=True, help="Most films.")
@click.option("--moments", type=COUNT, default=3, show_default=True, help="Most moments per film.")
@library_option
@common
def search(
    text: str,
    where: str,
    top: int,
    moments: int,
    folder: Path | None,
    backend: str,
    settings: Settings,
    as_json: bool,
) -> None:
    """Find moments in all films by words: said, shown, described, or seen in the picture.

    Results are grouped by film. A star marks moments that a source is sure of. A clip that occurs
    in several films is shown once, with the other places after it.

    \b
    Example:
      longtake library search "pricing change" --where "tag=meeting"
    """
    found = open_library(folder, backend, settings).search(
        text, where=where, films=top, moments=moments
    )
    if as_json:
        films = [_film(hits) for hits in found.films]
        emit_json({"text": text, "searched": found.searched, "films": films})
        return
    for hits in found.films:
        click.echo(visible(f"{hits.entry.name}  ({hits.entry.path})"))
        for moment in hits.moments:
            _show(moment)
    if not found.sure:
        say("nothing found with confidence")
    say(f"{found.searched} films searched")


def _show(moment: Moment) -> None:
    star = "*" if moment.sure else " "
    quoted = f"  “{moment.text}”" if moment.text else ""
    click.echo(visible(f"  {star} [{clock(moment.time)}]  {', '.join(moment.sources)}{quoted}"))
    for name, time in moment.copies:
        click.echo(visible(f"      also in {name} @ {clock(time)}"))


def _film(hits: FilmHits) -> dict[str, Any]:
    return {**entry_data(hits.entry), "score": hits.score, "moments": [*map(_plain, hits.moments)]}


def _plain(moment: Moment) -> dict[str, Any]:
    return {
        "time": moment.time,
        "start": moment.segment.start,
        "end": moment.segment.end,
        "score": moment.score,
        "sure": moment.sure,
        "sources": list(moment.sources),
        "text": moment.text,
        "copies": [{"film": name, "time": time} for name, time in moment.copies],
    }


@click.command()
@click.argument("question")
@method_option
@where_option
@click.option(
    "--films",
    "tries",
    type=COUNT,
    default=TRIES,
    show_default=True,
    help="Most films that are asked for a single answer.",
)
@quiet_option
@verbose_option
@library_option
@common
@question_options
@answering_options
def ask(
    question: str,
    method: str,
    where: str,
    tries: int,
    quiet: bool,
    verbose: bool,
    folder: Path | None,
    backend: str,
    options: tuple[str, ...],
    subtitles: Path | None,
    session: Session,
    as_json: bool,
) -> int:
    """Ask all films a question; get an answer that cites films and times.

    Films are chosen by a search and by a model that reads what is known about them; the method then
    looks at the likely ones in turn, under one budget, until one supports an answer. A question for
    every occurrence ("list every time …", "which films …") goes over all candidates.

    Exit code 0: answered; 3: in no film, or the budget ran out.

    \b
    Example:
      longtake library ask "Where did we talk about the pricing change?" --method lookup
      longtake library ask "Which films show a lighthouse?" --where "year>=2024"
    """
    if subtitles is not None:
        raise ConfigError("--subtitles is for one film; put the file beside its film")
    asked = read_question(question, options)
    check_models(session, tuple(dict.fromkeys((*methods.get(method).roles, "llm"))))
    meter = Meter()
    chosen = open_library(folder, backend, session.settings)
    with report_spending(meter), watching(quiet=quiet, verbose=verbose) as shown:
        sinks: list[Sink] = [meter, *shown]
        result = ask_library(chosen, session, asked, method, where=where, tries=tries, sinks=sinks)
    if as_json:
        emit_json({"question": question, **_answer_data(result)})
    else:
        _show_answer(result)
    return exit_code(result.answer)


def _show_answer(result: LibraryAnswer) -> None:
    answer = result.answer
    click.echo(bold(wrapped(said(answer, none="(in no film)"))))
    if answer.status != "abstained" and STATUS[answer.status]:
        click.echo(f"  {STATUS[answer.status]}")
    if answer.reason:
        click.echo(wrapped(answer.reason, indent="  "))
    for number, cited in enumerate(result.cited, start=1):
        start = visible(f"  [{number}] {cited}  {kind_of(cited.evidence)}")
        words = quoted(cited.evidence)
        quote = f"  “{in_one_line(words, taken=len(start) + 4)}”" if words else ""
        click.echo(f"{start}{quote}")
    looked = f"{len(result.films)} looked at, {result.candidates} candidates"
    click.echo(f"  {result.searched} films searched, {looked}; {spent(result.usage)}")


def _answer_data(result: LibraryAnswer) -> dict[str, Any]:
    answer = result.answer
    return {
        "status": answer.status,
        "choice": answer.choice,
        "text": answer.text,
        "reason": answer.reason,
        "confidence": answer.confidence,
        "every": result.every,
        "searched": result.searched,
        "candidates": result.candidates,
        "evidence": [
            {
                "film": str(cited.film.path),
                "name": cited.film.name,
                "start": cited.evidence.segment.start,
                "end": cited.evidence.segment.end,
                "source": cited.evidence.source,
                "text": cited.evidence.text,
            }
            for cited in result.cited
        ],
        "films": [
            {"film": str(each.film.path), "name": each.film.name, **plain(each.result)}
            for each in result.films
        ],
        "usage": asdict(result.usage),
    }
