"""``longtake library``: many films at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from longtake._util import visible
from longtake._util.timecode import clock
from longtake.cli.answers import citation, exit_code, report_spending, spent, watching
from longtake.cli.indexing import show_notes
from longtake.cli.jobs import check_workers, index_on, on, only_option, workers_option
from longtake.cli.options import (
    COUNT,
    FOLDER,
    PATH,
    answering_options,
    check_models,
    common,
    question_method_option,
    question_options,
    quiet_option,
    read_question,
    verbose_option,
)
from longtake.cli.output import (
    Output,
    bold,
    hit_data,
    human_bytes,
    human_seconds,
    in_columns,
    prints_json,
    progress,
    say,
    worth_a_line,
    wrapped,
)
from longtake.cluster.backends import BackendAddress
from longtake.config import Settings
from longtake.errors import ConfigError, MediaError
from longtake.index.layers import Advance, ignore
from longtake.index.tasks import TASKS
from longtake.library import (
    Adder,
    AddProgress,
    AddReport,
    Entry,
    Library,
    LibraryAnswer,
    ask_library,
)
from longtake.library.add import State, SurveyedFile, rebuild
from longtake.library.ask import TRIES
from longtake.library.collection import problems
from longtake.library.collection import status as state_of
from longtake.registry import methods
from longtake.runner.rendering import answer_text, outcome, plural
from longtake.runner.results import answer_data, evidence_data, result_data
from longtake.runner.session import Session
from longtake.tracing.events import Sink
from longtake.tracing.sinks import Meter
from longtake.types import QuestionKind
from longtake.video.container import films_in

where_option = click.option(
    "--in",
    "where",
    default="",
    show_default=False,
    metavar="TEXT",
    help="Only films whose name, folder or tag contains this.",
)


library_option = click.option(
    "--library",
    "folder",
    type=FOLDER,
    help="The library's folder.  [default: 'library' in the cache]",
)


def entry_data(entry: Entry) -> dict[str, Any]:
    """A film for ``--json``."""
    return {
        "fingerprint": entry.fingerprint,
        "name": entry.name,
        "path": str(entry.path),
        "missing": entry.missing,
        "duration": entry.duration,
        "date": entry.date or None,
        "place": entry.place or None,
        "tags": list(entry.tags),
        "problem": entry.problem or None,
    }


@click.command()
@click.argument("text")
@where_option
@click.option("--top", type=COUNT, default=10, help="Maximum number of films.")
@click.option("--moments", type=COUNT, default=3, help="Maximum number of moments per film.")
@library_option
@common
def search(
    text: str, where: str, top: int, moments: int, folder: Path | None, settings: Settings
) -> Output:
    """Find moments in all films by words: in speech, on-screen text, descriptions and pictures.

    Results are grouped by film. A star marks confident hits.

    \b
    Example:
      longtake library search "pricing change" --in meetings
    """
    library = Library(folder, settings)
    found = library.search(text, where=where, films=top, moments=moments)
    if not found.sure:
        say("nothing was found with confidence")
    say(f"{plural(found.searched, 'film')} searched")
    films, lines = [], []
    for hits in found.films:
        rows = [hit_data(moment) for moment in hits.moments]
        films.append({**entry_data(hits.entry), "score": hits.score, "moments": rows})
        lines.append(visible(f"{hits.entry.name}  ({hits.entry.path})"))
        for moment in hits.moments:
            star, sources = "*" if moment.sure else " ", ", ".join(moment.sources)
            line = f"  {star} [{clock(moment.time)}]  {sources}  {moment.words}"
            lines.append(visible(line.rstrip()))
    return Output({"text": text, "searched": found.searched, "films": films}, lines)


@click.command()
@click.argument("question")
@question_method_option
@where_option
@click.option(
    "--films",
    "tries",
    type=COUNT,
    default=TRIES,
    help="Maximum number of films that are asked for a single answer.",
)
@quiet_option
@verbose_option
@library_option
@common
@question_options
@answering_options
def ask(
    question: str,
    method: str | None,
    where: str,
    tries: int,
    quiet: bool,
    verbose: bool,
    folder: Path | None,
    options: tuple[str, ...],
    asked_as: QuestionKind | None,
    subtitles: Path | None,
    session: Session,
) -> Output:
    """Ask all films a question; get an answer that cites films and times.

    A search and a model that reads its results choose likely films. The method then asks them in
    turn, under one budget, until one supports an answer. A question for every occurrence ("list
    every time …", "which films …") is put to all candidates.

    Exit code 0: answered; 3: in no film, or the budget ran out.

    \b
    Example:
      longtake library ask "Where did we talk about the pricing change?"
      longtake library ask "Which films show a lighthouse?" --in 2024
    """
    if subtitles is not None:
        raise ConfigError("--subtitles is for one film; put the file beside the film instead")
    parsed = read_question(question, options, asked_as)
    method = method or session.assignment.default_method
    check_models(session, tuple(dict.fromkeys((*methods.get(method).roles, "llm"))))
    meter = Meter()
    chosen = Library(folder, session.settings)
    with (
        report_spending(meter),
        watching(quiet=quiet, verbose=verbose, drafts=not prints_json()) as shown,
    ):
        sinks: list[Sink] = [meter, *shown]
        result = ask_library(chosen, session, parsed, method, where=where, tries=tries, sinks=sinks)
    data = {"question": question, **_answer_data(result)}
    return Output(data, _answer_lines(result), exit_code(result.answer))


def _answer_lines(result: LibraryAnswer) -> Iterator[str]:
    answer = result.answer
    yield bold(wrapped(answer_text(answer, none="(in no film)")))
    if answer.status != "abstained" and (meaning := outcome(answer, result.usage)):
        yield f"  {meaning}"
    if answer.reason:
        yield wrapped(answer.reason, indent="  ")
    for number, cited in enumerate(result.cited, start=1):
        yield citation(number, cited.evidence, str(cited))
    searched = f"{plural(result.searched, 'film')} searched, {len(result.films)} looked at"
    candidates = plural(result.candidates, "candidate")
    yield f"  {searched}, {candidates}; {spent(result.usage)}"


def _answer_data(result: LibraryAnswer) -> dict[str, Any]:
    return {
        **answer_data(result.answer),
        "every": result.every,
        "searched": result.searched,
        "candidates": result.candidates,
        "evidence": [
            {**_named(cited.film), **evidence_data(cited.evidence)} for cited in result.cited
        ],
        "films": [{**_named(each.film), **result_data(each.result)} for each in result.films],
        "usage": result.usage,
    }


def _named(film: Entry) -> dict[str, str]:
    return {"film": str(film.path), "name": film.name}


@click.group()
def library() -> None:
    """Search and ask many films at once.

    \b
    Example:
      longtake library add ~/lectures --tag lecture
      longtake library search "gradient descent" --in lectures
      longtake library ask "Where did we talk about the pricing change?"
    """


@library.command()
@click.argument("paths", nargs=-1, required=True, type=PATH, metavar="PATH...")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Tag the films; repeatable.")
@only_option
@on
@workers_option
@library_option
@common
def add(
    paths: tuple[Path, ...],
    tags: tuple[str, ...],
    only: tuple[str, ...],
    where: BackendAddress | None,
    workers: int | None,
    folder: Path | None,
    settings: Settings,
) -> Output:
    """Add films, and all films below folders.

    Films are recognised by their content: a file that was moved or renamed keeps its index, and a
    changed one is indexed again. Quick parts come first for the whole folder, so that it can be
    searched by subtitles within seconds. Stop it at any time: the next run continues from there.

    With --on, all films are indexed in parallel first, and then added.

    \b
    Example:
      longtake library add ~/lectures ~/meetings --tag work
      longtake library add --on processes ~/lectures
    """
    check_workers(where, workers)
    chosen = Library(folder, settings)
    for path in paths:
        if not path.exists():
            raise MediaError(path, "not_found", "no such file or folder")

    with show_notes():
        failed: dict[Path, str] = {}
        if where is not None:
            files = [place.path for place in films_in(paths)]
            films = index_on(where, files, settings, workers=workers, only=only)
            failed = {film.path: film.failure.message for film in films if film.failure}
        parts = only or TASKS
        adder = Adder(chosen, tags=tags, parts=parts, on_survey=_surveyed, on_job=_announce_job)
        report = adder.add(paths, failed=failed)
    _summed(report)
    states = [
        {"path": each.path, "state": each.state, "fingerprint": each.entry.fingerprint}
        for each in report.surveyed
    ]
    errors = [{"path": path, "error": error} for path, error in report.failed]
    data = {"films": states, "failed": errors, "indexed": sorted(set(report.indexed))}
    # messages have said it already
    return Output(data, exit_code=2 if errors else 0)


def _surveyed(outcome: SurveyedFile | MediaError) -> None:
    if isinstance(outcome, MediaError):
        say(f"longtake: {outcome}")
    elif outcome.state in ("moved", "changed"):
        say(f"{outcome.path}: {outcome.state}")


def _announce_job(at: AddProgress) -> Advance:
    left = "" if at.left is None else f", {human_seconds(at.left)} left"
    if worth_a_line(at.job - 1, at.jobs - at.job):
        say(f"[{at.job}/{at.jobs}{left}] {at.part}: {at.film.name}")
    return ignore


STATES: tuple[State, ...] = ("new", "changed", "moved", "copy", "known")


def _summed(report: AddReport) -> None:
    counts = Counter(each.state for each in report.surveyed)
    named = ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state])
    states = f" ({named})" if named else ""
    say(f"{plural(len(report.surveyed), 'film')}{states}, {len(set(report.indexed))} indexed now")
    for path, error in report.failed:
        # most messages begin with the path
        say(f"  {error}" if error.startswith(str(path)) else f"  {path}: {error}")
    if report.dropped:
        films = plural(len(report.dropped), "film")
        say(f"  removed data of {films} from the cache to stay below cache.limit_gb")


@library.command("list")
@where_option
@library_option
@common
def list_command(where: str, folder: Path | None, settings: Settings) -> Output:
    """List the films with their dates, durations and tags.

    \b
    Example:
      longtake library list --in lectures
    """
    entries = Library(folder, settings).entries(where)
    say(plural(len(entries), "film"))
    lines = []
    for entry in entries:
        gone = "  (gone)" if entry.missing else ""
        tags = f"  {' '.join('#' + tag for tag in entry.tags)}" if entry.tags else ""
        line = f"{entry.fingerprint[:8]}  {clock(entry.duration)}  {entry.date:<10}  {entry.name}"
        lines.append(visible(f"{line}{tags}{gone}"))
    return Output({"films": [entry_data(entry) for entry in entries]}, lines)


@library.command()
@library_option
@common
def status(folder: Path | None, settings: Settings) -> Output:
    """Show the number of films, the size of the index, and what is incomplete.

    \b
    Example:
      longtake library status
    """
    chosen = Library(folder, settings)
    state = state_of(chosen)
    rows = [
        ("folder", str(chosen.folder)),
        ("films", f"{state.films}, {human_seconds(state.seconds)}"),
        ("index", f"{state.segments:,} segments, {human_bytes(state.bytes)}"),
        ("incomplete", str(state.incomplete)),
        ("missing", str(state.missing)),
        ("failed", str(state.failed)),
    ]
    return Output({"folder": chosen.folder, **asdict(state)}, in_columns(rows))


@library.command()
@click.argument("names", nargs=-1, required=True, metavar="FILM...")
@library_option
@common
def remove(names: tuple[str, ...], folder: Path | None, settings: Settings) -> Output:
    """Remove films from the library, by path, name or fingerprint.

    Their files stay, and so do the data derived from them, which 'longtake cache clear' deletes.

    \b
    Example:
      longtake library remove holiday.mp4
    """
    chosen = Library(folder, settings)
    gone: dict[str, Entry] = {}
    for name in names:
        matching = chosen.find(name)
        if not matching:
            raise ConfigError(f"{name}: no such film in the library; see 'longtake library list'")
        gone |= {entry.fingerprint: entry for entry in matching}
    chosen.remove(list(gone))
    removed = [entry_data(entry) for entry in gone.values()]
    return Output({"removed": removed}, [f"removed {plural(len(gone), 'film')}"])


@library.command()
@click.option("--rebuild", "again", is_flag=True, help="Repair the library.")
@library_option
@common
def doctor(again: bool, folder: Path | None, settings: Settings) -> Output:
    """Check the library; --rebuild repairs it.

    --rebuild creates the index anew from the data derived from the films, and also the catalogue if
    it is damaged. Films stay as they are. Exit code 2: something is wrong.

    \b
    Example:
      longtake library doctor
    """
    chosen = Library(folder, settings)
    if again:
        with progress("rebuilding the index") as advance, show_notes():
            lost = rebuild(chosen, advance)
        for message in lost:
            say(f"lost: {message}")
    listed = problems(chosen)
    say(plural(len(listed), "problem") if listed else "nothing is wrong")
    lines = [visible(f"{problem.what}\n  → {problem.remedy}") for problem in listed]
    return Output({"problems": listed}, lines, exit_code=2 if listed else 0)


library.add_command(search)
library.add_command(ask)
