"""``longtake library``: many films at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from longtake.cli.cluster import check_workers, index_on, on_with_workers
from longtake.cli.indexing import show_notes
from longtake.cli.library_ask import ask, search
from longtake.cli.options import PATH, common
from longtake.cli.output import (
    emit_json,
    human_bytes,
    human_seconds,
    progress,
    rows,
    say,
    worth_a_line,
)
from longtake.cli.shelves import entry_data, library_option, open_library, where_option
from longtake.cluster.engines import Where
from longtake.config import Settings
from longtake.display import visible
from longtake.errors import ConfigError, MediaError
from longtake.index.layers import Advance
from longtake.library import Entry
from longtake.library.adding import PARTS, Adder, Progress, Report, Surveyed, rebuild
from longtake.library.status import problems
from longtake.library.status import status as state_of
from longtake.library.watching import watch
from longtake.library.where import parse
from longtake.media.folders import films_in
from longtake.timecode import clock


@click.group()
def library() -> None:
    """Search and ask many films at once.

    \b
    Example:
      longtake library add ~/lectures --tag lecture
      longtake library search "gradient descent" --where "tag=lecture and year>=2025"
      longtake library ask "Where did we talk about the pricing change?"
    """


@library.command()
@click.argument("paths", nargs=-1, required=True, type=PATH, metavar="PATH...")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="A tag for all; repeatable.")
@click.option(
    "--first",
    "first",
    default="",
    metavar="FILTER",
    help="Index these films first and whole, as in --first year>=2025.",
)
@click.option(
    "--only",
    multiple=True,
    type=click.Choice(PARTS),
    metavar="PART",
    help=f"Only this part, one of {', '.join(PARTS)}; repeatable.",
)
@click.option("--watch", "watching", is_flag=True, help="Go on and add films as they appear.")
@on_with_workers
@library_option
@common
def add(
    paths: tuple[Path, ...],
    tags: tuple[str, ...],
    first: str,
    only: tuple[str, ...],
    watching: bool,
    where: Where | None,
    workers: int | None,
    folder: Path | None,
    backend: str,
    settings: Settings,
    as_json: bool,
) -> int:
    """Add films, and all films below folders.

    Films are recognised by their content: a file that was moved or renamed keeps its index, a
    changed one is indexed again. Cheap parts come first over the whole folder, so it can be
    searched by subtitles within seconds. Stop it at any time: the next run continues from there.

    With --on all films are indexed side by side first, and then entered.

    \b
    Example:
      longtake library add ~/lectures ~/meetings --tag work --first "name~budget"
      longtake library add --on processes ~/lectures
    """
    check_workers(where, workers)
    chosen = open_library(folder, backend, settings)
    ahead = parse(first) if first else None
    for path in paths:
        # a mistake now; later it is a drive that may come back
        if not path.exists():
            raise MediaError(path, "not_found", "no such file or folder")

    def run() -> Report:
        failed = {}
        there = [path for path in paths if path.exists()]
        if where is not None:
            files = [place.path for place in films_in(there)]
            films = index_on(where, files, settings, workers=workers, only=only)
            failed = {film.path: film.failure.message for film in films if film.failure}
        adder = Adder(
            chosen, tags=tags, first=ahead, parts=only or PARTS, on_survey=_surveyed, on_job=_Jobs()
        )
        return adder.add(there, failed=failed)

    with show_notes():
        if watching:
            say("watching; press Ctrl-C to stop")
            chosen.catalogue.watch(path.absolute() for path in paths if path.is_dir())
            watch(chosen, paths, run, on_round=_summed)
            return 0
        report = run()
    if as_json:
        states = [
            {"path": str(each.path), "state": each.state, "fingerprint": each.entry.fingerprint}
            for each in report.surveyed
        ]
        failed = [{"path": str(path), "error": error} for path, error in report.failed]
        emit_json({"films": states, "failed": failed, "indexed": sorted(set(report.indexed))})
    else:
        _summed(report)
    return 2 if report.failed else 0


def _surveyed(outcome: Surveyed | MediaError) -> None:
    if isinstance(outcome, MediaError):
        say(f"longtake: {outcome}")
    elif outcome.state in ("moved", "changed"):
        say(f"{outcome.path}: {outcome.state}")


class _Jobs:
    """Announces jobs: each on a terminal, some of them elsewhere."""

    def __call__(self, at: Progress) -> Advance:
        left = "" if at.left is None else f", {human_seconds(at.left)} left"
        if worth_a_line(at.job - 1, at.jobs - at.job):
            say(f"[{at.job}/{at.jobs}{left}] {at.part}: {at.film.name}")
        return lambda share: None  # noqa: ARG005


def _summed(report: Report) -> None:
    counts = {state: report.count(state) for state in ("new", "changed", "moved", "copy", "known")}
    told = ", ".join(f"{count} {state}" for state, count in counts.items() if count)
    say(f"{len(report.surveyed)} films ({told or 'none'}), {len(set(report.indexed))} indexed now")
    for path, error in report.failed:
        say(f"  {path}: {error}")
    if report.dropped:
        say(f"  layers of {len(report.dropped)} films were dropped to stay below cache.limit_gb")


@library.command("list")
@where_option
@library_option
@common
def list_command(
    where: str, folder: Path | None, backend: str, settings: Settings, as_json: bool
) -> None:
    """List the films with their dates, lengths and tags.

    \b
    Example:
      longtake library list --where "tag=lecture and minutes>30"
    """
    entries = open_library(folder, backend, settings).entries(where)
    if as_json:
        emit_json({"films": [entry_data(entry) for entry in entries]})
        return
    for entry in entries:
        gone = "  (gone)" if entry.missing else ""
        tags = f"  {' '.join('#' + tag for tag in entry.tags)}" if entry.tags else ""
        line = f"{entry.fingerprint[:8]}  {clock(entry.duration)}  {entry.date:<10}  {entry.name}"
        click.echo(visible(f"{line}{tags}{gone}"))
    say(f"{len(entries)} films")


@library.command()
@library_option
@common
def status(folder: Path | None, backend: str, settings: Settings, as_json: bool) -> None:
    """Show how many films there are, and what is missing.

    \b
    Example:
      longtake library status
    """
    chosen = open_library(folder, backend, settings)
    state = state_of(chosen)
    if as_json:
        emit_json({"folder": str(chosen.folder), **asdict(state)})
        return
    rows(
        [
            ("folder", str(chosen.folder)),
            ("films", f"{state.films}, {human_seconds(state.seconds)}"),
            ("index", f"{state.backend}, {state.segments:,} segments, {human_bytes(state.bytes)}"),
            ("incomplete", str(state.incomplete)),
            ("missing", str(state.missing)),
            ("failed", str(state.failed)),
            ("watched", ", ".join(state.folders) or "none"),
        ]
    )


@library.command()
@click.argument("names", nargs=-1, required=True, metavar="FILM...")
@library_option
@common
def remove(
    names: tuple[str, ...], folder: Path | None, backend: str, settings: Settings, as_json: bool
) -> None:
    """Take films out of the library, by path, name or fingerprint.

    Their files stay, and so does what was derived from them: 'longtake cache clear' deletes that.

    \b
    Example:
      longtake library remove holiday.mp4
    """
    chosen = open_library(folder, backend, settings)
    gone: dict[str, Entry] = {}
    for name in names:
        found = chosen.find(name)
        if not found:
            raise ConfigError(f"{name}: no such film in the library; see 'longtake library list'")
        gone |= {entry.fingerprint: entry for entry in found}
    chosen.remove(list(gone))
    if as_json:
        emit_json({"removed": [entry_data(entry) for entry in gone.values()]})
    else:
        click.echo(f"removed {len(gone)} films")


@library.command()
@click.option("--rebuild", "again", is_flag=True, help="Derive the index from the films' layers.")
@library_option
@common
def doctor(
    again: bool, folder: Path | None, backend: str, settings: Settings, as_json: bool
) -> int:
    """Check the library; --rebuild makes its index again.

    Exit code 2: something is wrong.

    \b
    Example:
      longtake library doctor
    """
    chosen = open_library(folder, backend, settings)
    if again:
        with progress("rebuilding the index") as advance, show_notes():
            lost = rebuild(chosen, _counted(advance, len(chosen.catalogue.entries())))
        for entry in lost:
            say(f"{entry.path}: could not be read; it is no longer found")
    found = problems(chosen)
    if as_json:
        emit_json({"problems": [asdict(problem) for problem in found]})
    else:
        for problem in found:
            click.echo(visible(f"{problem.what}\n  → {problem.remedy}"))
        say("nothing is wrong" if not found else f"{len(found)} problems")
    return 2 if found else 0


def _counted(advance: Callable[[float], None], total: int) -> Callable[[Any], None]:
    done = 0

    def count(_: Any) -> None:
        nonlocal done
        done += 1
        advance(done / max(1, total))

    return count


library.add_command(search)
library.add_command(ask)
