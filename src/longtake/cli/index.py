"""``longtake index``."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from longtake._util.timecode import clock
from longtake.agents.overview import prepare
from longtake.cli.indexing import show_notes
from longtake.cli.jobs import check_workers, index_on, on, only_option, workers_option
from longtake.cli.options import FILM, PATH, common
from longtake.cli.output import Output, progress, say
from longtake.cluster.backends import BackendAddress
from longtake.config import Settings
from longtake.errors import MediaError, RunError
from longtake.index.film import Film
from longtake.index.tasks import build_tasks, tasks
from longtake.runner.films import open_film, open_store

MEANINGS = "meanings"
"""The last step; it takes seconds, so --only cannot choose it."""


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
) -> Output:
    """Index films, so that questions are answered quickly.

    Quick parts come first, and the progress of each is shown. Stop it at any time: the next run
    continues from there, and skips indexed films. A film that cannot be read is reported; the
    others are indexed all the same.

    With --on, films are indexed in parallel.

    \b
    Example:
      longtake index holiday.mp4 lectures/*.mkv
      longtake index --on processes lectures/*.mkv
    """
    check_workers(where, workers)
    reports: list[Mapping[str, Any]] = []
    failures: list[tuple[Path, str, int]] = []
    if where is not None:
        for done in index_on(
            where, paths, settings, workers=workers, only=only, subtitles=subtitles
        ):
            if done.failure is not None:
                failure = done.failure
                failures.append((done.path, failure.message, failure.exit_code))
            elif done.indexed is not None:
                facts = asdict(done.indexed)
                facts.pop("notes")
                reports.append({"film": done.path, **facts})
        if reports:
            # after all films, since those in progress must not be removed
            _evict(settings, reports[-1]["fingerprint"])
    here = paths if where is None else ()
    for path in here:
        try:
            with show_notes():
                film = open_film(path, settings, subtitles=subtitles)
                reports.append({"film": path, **_indexed(film, only)})
        except (MediaError, RunError) as error:
            # the other films may be fine
            say(f"longtake: {error}")
            failures.append((path, str(error), error.exit_code))
            continue
        # its size is known only now
        _evict(settings, film.fingerprint)
    failed = [{"film": path, "error": error} for path, error, _ in failures]
    code = failures[0][2] if failures else 0
    # progress was printed meanwhile
    return Output({"films": reports, "failed": failed}, exit_code=code)


def _evict(settings: Settings, keep: str) -> None:
    for dropped in open_store(settings).evict(keep=keep):
        limit = f"{settings.cache.limit_gb:g} GB"
        say(f"  removed {dropped.name} from the cache to stay below {limit}")


def _indexed(film: Film, only: Sequence[str]) -> dict[str, object]:
    """Index what is missing of a film, and return the report for ``--json``."""
    say(f"{film.path}: {clock(film.duration)}")
    began = time.perf_counter()
    chosen = [task for task in tasks(film) if not only or task.name in only]
    missing = [task for task in chosen if not task.done()]
    for task in chosen:
        say(f"  {task.name:<12} {'to do' if task in missing else 'done':<6} {task.describe()}")
    cpu = time.process_time()
    took = build_tasks(film, missing, lambda task: progress(task.name))
    if missing and not only:
        # otherwise the first question would wait for it
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
