"""``longtake index``."""

from __future__ import annotations

import time
from pathlib import Path

import click

from longtake.cli.options import common, full_hash
from longtake.cli.output import emit_json, human_seconds, progress, say, telling
from longtake.config import Settings
from longtake.errors import MediaError, RunError
from longtake.index.film import Film
from longtake.index.tasks import TASKS, Task, tasks
from longtake.session.films import open_film, open_store
from longtake.timecode import clock


@click.command()
@click.argument("films", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--subtitles",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="SRT, VTT, ASS or JSON; otherwise the file beside the film, or its own stream.",
)
@click.option(
    "--only",
    multiple=True,
    type=click.Choice(TASKS),
    metavar="PART",
    help=f"Only this part, of {', '.join(TASKS)}; repeatable.",
)
@full_hash
@common
def index(
    films: tuple[Path, ...],
    subtitles: Path | None,
    only: tuple[str, ...],
    full_hash: bool,
    settings: Settings,
    as_json: bool,
) -> int:
    """Look through films once, so that questions are quick.

    Prints what each part will cost, then does the cheap parts first. Stop it at any time: the next run goes
    on where this one was. A film that was indexed before takes no time; one that cannot be used is named, and the
    others are indexed all the same.

    \b
    Example:
      longtake index holiday.mp4 lectures/*.mkv
    """
    reports, failures = [], []
    for film in films:
        try:
            with telling():
                footage = open_film(film, settings, subtitles=subtitles, full_hash=full_hash)
                reports.append({"film": str(film), **_indexed(footage, only)})
        except (MediaError, RunError) as error:
            say(f"longtake: {error}")
            failures.append((film, error))
            continue
        for gone in open_store(settings).evict(keep=footage.fingerprint):
            say(
                f"  dropped {gone.name} from the cache to stay under {settings.cache.limit_gb:g} GB"
            )
    if as_json:
        emit_json(
            {
                "films": reports,
                "failed": [{"film": str(film), "error": str(why)} for film, why in failures],
            }
        )
    return failures[0][1].exit_code if failures else 0


def _indexed(footage: Film, only: tuple[str, ...]) -> dict[str, object]:
    """Do what is missing of one film; gives the report of it."""
    say(f"{footage.path}: {clock(footage.duration)}")
    began = time.perf_counter()
    parts = [(task, *_announced(task)) for task in tasks(footage) if not only or task.name in only]
    for part, was_done, estimated in parts:
        if not was_done:
            if not estimated:
                _announced(part)  # known by now
            with progress(part.name) as advance:
                part.build(advance)
    seconds = round(time.perf_counter() - began, 3)
    say(f"  indexed in {seconds:.1f} s")
    return {
        "fingerprint": footage.fingerprint,
        "duration": footage.duration,
        "seconds": seconds,
        "layers": [
            {"name": part.name, "what": part.describe(), "was_done": was} for part, was, _ in parts
        ],
    }


def _announced(task: Task) -> tuple[bool, bool]:
    """Say what a task will cost; gives whether it is done, and whether the cost is known."""
    done = task.done()
    seconds = 0.0 if done else task.estimate()
    cost = "done" if done else "known later" if seconds is None else human_seconds(seconds)
    say(f"  {task.name:<12} {cost:<14} {task.describe()}")
    return done, seconds is not None
