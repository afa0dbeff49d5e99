"""``--on``: indexing and asking in processes of this machine or on a Ray cluster."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from longtake._util.timecode import clock
from longtake.cli.options import COUNT
from longtake.cli.output import progress, say
from longtake.cluster.backends import BackendAddress, parse_backend
from longtake.cluster.indexing import FilmIndexResult, FilmTask, for_workers, index_films
from longtake.config import Settings
from longtake.errors import ConfigError
from longtake.index.tasks import TASKS
from longtake.runner.rendering import plural

on = click.option(
    "--on",
    "where",
    metavar="ENGINE",
    callback=lambda _context, _option, text: None if text is None else parse_backend(text),
    help="Run on processes, ray or ray://HOST:PORT (extra: ray); see docs/scale.md.",
)
only_option = click.option(
    "--only",
    multiple=True,
    type=click.Choice(TASKS),
    metavar="PART",
    help=f"Only this part, one of {', '.join(TASKS)}; repeatable.",
)
workers_option = click.option(
    "--workers", type=COUNT, metavar="N", help="Workers, with --on.  [default: as many as fit]"
)


def check_workers(where: BackendAddress | None, workers: int | None) -> None:
    """Reject ``--workers`` without ``--on``, where it would have no effect."""
    if where is None and workers is not None:
        raise ConfigError("--workers needs --on; add --on processes")


def given_workers() -> int | None:
    """``--workers`` if it was given; its default is meant for this machine only."""
    context = click.get_current_context()
    given = context.get_parameter_source("workers") != click.core.ParameterSource.DEFAULT
    return context.params["workers"] if given else None


def index_on(
    where: BackendAddress,
    paths: Sequence[Path],
    settings: Settings,
    *,
    workers: int | None,
    only: Sequence[str] = (),
    subtitles: Path | None = None,
) -> list[FilmIndexResult]:
    """Index films on an engine, and print the outcome of each."""
    settings = for_workers(settings, where.threads(workers))
    given = None if subtitles is None else subtitles.absolute()
    # a film that is given twice is indexed once
    unique = dict.fromkeys(path.absolute() for path in paths)
    tasks = [FilmTask(path, given, tuple(only), settings) for path in unique]
    films = []
    with (
        where.open(workers) as engine,
        progress(f"indexing {plural(len(tasks), 'film')}") as advance,
    ):
        for film in index_films(engine, tasks, say, advance):
            _announce(film)
            films.append(film)
    return films


def _announce(film: FilmIndexResult) -> None:
    if film.failure is not None:
        text = film.failure.message
        # most messages begin with the path
        named = text if text.startswith(str(film.path)) else f"{film.path}: {text}"
        say(f"longtake: {named}")
    elif film.indexed is not None:
        known = film.indexed
        say(f"{film.path}: {clock(known.duration)}, indexed in {known.seconds:.1f} s")
