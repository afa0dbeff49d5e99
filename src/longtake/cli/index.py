"""``longtake index``."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import click

from longtake._util.timecode import clock
from longtake.cli.indexing import show_notes
from longtake.cli.jobs import check_workers, index_on, on, only_option, workers_option
from longtake.cli.options import FILM, PATH, common
from longtake.cli.output import emit_json, progress, say
from longtake.cluster.backends import BackendAddress
from longtake.cluster.indexing import FilmIndexResult
from longtake.config import Settings
from longtake.errors import LongtakeError, MediaError, RunError
from longtake.index.film import Film
from longtake.index.tasks import build_tasks, tasks
from longtake.methods.lookup.method import prepare
from longtake.runner.films import open_film, open_store

MEANINGS = "meanings"
"""What the last step is called; it is no part that can be chosen, because it takes seconds."""


@click.command()
@click.argument("paths", nargs=-1, required=True, type=FILM, metavar="FILM...")
@click.option(
    "--subtitles",
    type=PATH,
    metavar="FILE",
    help="SRT, VTT, ASS or JSON.  [default: the file beside the film, or its own stream]",
)
@only_option
@on
@workers_option
@common
def index(
    paths: tuple[Path, ...],
    subtitles: Path | None,
    only: tuple[str, ...],
    where: BackendAddress | None,
    workers: int | None,
    settings: Settings,
    as_json: bool,
) -> int:
    """Index films, so that questions are answered quickly.

    Does the cheap parts first, and shows how far each one is. Stop it at any time: the next
    run continues from there. An indexed film takes no time. A film that cannot be read is reported,
    and the others are indexed all the same.

    With --on, films are indexed side by side.

    \b
    Example:
      longtake index holiday.mp4 lectures/*.mkv
      longtake index --on processes lectures/*.mkv
    """
    check_workers(where, workers)
    if where is not None:
        films = index_on(where, paths, settings, workers=workers, only=only, subtitles=subtitles)
        return _conclude(films, settings, as_json)
    reports = []
    failures: list[tuple[Path, LongtakeError]] = []
    for path in paths:
        try:
            with show_notes():
                film = open_film(path, settings, subtitles=subtitles)
                reports.append({"film": str(path), **_indexed(film, only)})
        except (MediaError, RunError) as error:
            say(f"longtake: {error}")
            failures.append((path, error))
            # the other films may be fine
            continue
        # only now is it known how much space the film takes
        _evict(settings, film.fingerprint)
    if as_json:
        failed = [{"film": str(path), "error": str(error)} for path, error in failures]
        emit_json({"films": reports, "failed": failed})
    return failures[0][1].exit_code if failures else 0


def _evict(settings: Settings, keep: str) -> None:
    for dropped in open_store(settings).evict(keep=keep):
        limit = f"{settings.cache.limit_gb:g} GB"
        say(f"  dropped {dropped.name} from the cache to stay under {limit}")


def _conclude(films: Sequence[FilmIndexResult], settings: Settings, as_json: bool) -> int:
    """Print what an engine has done, as for one process, and return the exit code."""
    reports, failed, code = [], [], 0
    for film in films:
        if film.failure is not None:
            failed.append({"film": str(film.path), "error": film.failure.message})
            code = code or film.failure.exit_code
        elif film.opened is not None:
            facts = {"fingerprint": film.opened.fingerprint, "duration": film.opened.duration}
            layers = list(film.opened.layers)
            reports.append(
                {"film": str(film.path), **facts, "seconds": film.seconds, "layers": layers}
            )
            # not before all are done: films in progress must not be dropped
            last = film.opened.fingerprint
    if reports:
        _evict(settings, last)
    if as_json:
        emit_json({"films": reports, "failed": failed})
    return code


def _indexed(film: Film, only: Sequence[str]) -> dict[str, object]:
    """Do what is missing for one film, and return the report on it."""
    say(f"{film.path}: {clock(film.duration)}")
    began = time.perf_counter()
    chosen = [task for task in tasks(film) if not only or task.name in only]
    missing = [task for task in chosen if not task.done()]
    for task in chosen:
        say(f"  {task.name:<12} {'to do' if task in missing else 'done':<6} {task.describe()}")
    cpu = time.process_time()
    took = build_tasks(film, missing, lambda task: progress(task.name))
    if missing and not only:
        # the first question would wait for the meanings of what is said and shown
        started = time.perf_counter()
        with progress(MEANINGS):
            prepare(film)
        took[MEANINGS] = time.perf_counter() - started
    layers = []
    for task in chosen:
        layer = {"name": task.name, "what": task.describe(), "was_done": task not in missing}
        if task.name in took:
            layer["seconds"] = round(took[task.name], 3)
        layers.append(layer)
    seconds = round(time.perf_counter() - began, 3)
    parts = ", ".join(f"{name} {part:.1f} s" for name, part in took.items())
    say(f"  indexed in {seconds:.1f} s" + (f" ({parts})" if parts else ""))
    if not only and film.words.speech_note:
        say(f"  {film.words.speech_note}")
    return {
        "fingerprint": film.fingerprint,
        "duration": film.duration,
        "seconds": seconds,
        "cpu_seconds": round(time.process_time() - cpu, 3),
        "layers": layers,
    }
