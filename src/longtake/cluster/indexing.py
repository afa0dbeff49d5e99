"""Films on many workers: one task per film, which computes its layers into the shared store.

Only a path travels: frames and sound stay in the worker that decodes them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from longtake._util.process_pool import (
    Failure,
    Notice,
    TaskFailed,
    TaskFinished,
    TaskValue,
    WorkerPool,
)
from longtake.cluster.backends import with_notes
from longtake.config import Settings, cache_folder
from longtake.index.layers import Advance, ignore
from longtake.index.tasks import TASKS, tasks
from longtake.runner.films import open_film


@dataclass(frozen=True)
class OpenedFilm:
    """What is known of a film once it is open."""

    fingerprint: str
    duration: float
    layers: tuple[dict[str, Any], ...]
    """What each part of indexing computes, and whether it was done before."""


@dataclass(frozen=True)
class FilmTask:
    """Indexes one film."""

    path: Path
    subtitles: Path | None = None
    only: tuple[str, ...] = ()
    """Names of the parts to compute; empty: all."""
    settings: Settings = field(default_factory=Settings, repr=False)

    @property
    def name(self) -> str:
        """The film's path."""
        return str(self.path)

    @with_notes
    def run(self) -> Iterator[OpenedFilm | str]:
        """The film's facts, then the name of each part that is done."""
        film = open_film(self.path, self.settings, subtitles=self.subtitles)
        duration = film.duration  # the first look at the film makes its folder
        chosen = [task for task in tasks(film) if task.name in (self.only or TASKS)]
        layers = []
        for task in chosen:
            layers.append({"name": task.name, "what": task.describe(), "was_done": task.done()})
        yield OpenedFilm(film.fingerprint, duration, tuple(layers))
        for task in chosen:
            if not task.done():
                task.build(ignore)
            yield task.name

    def rest(self, done: int) -> FilmTask:  # noqa: ARG002
        """The whole task: layers that are stored already are not computed again."""
        return self


def for_workers(settings: Settings, threads: int) -> Settings:
    """The settings of workers: the same store wherever they are, and no more threads than theirs.

    With as many workers as cores, one thread each is fastest; numbers that the user has set stay.
    """
    cache = replace(settings.cache, folder=str(cache_folder(settings).absolute()))
    media, perception = settings.media, settings.perception
    return replace(
        settings,
        cache=cache,
        media=replace(media, workers=media.workers or threads),
        perception=replace(perception, threads=perception.threads or threads),
    )


@dataclass(frozen=True)
class FilmIndexResult:
    """A film that is finished or has failed."""

    path: Path
    seconds: float
    opened: OpenedFilm | None
    failure: Failure | None = None


def index_films(
    pool: WorkerPool[FilmTask],
    films: Sequence[FilmTask],
    say: Callable[[str], None],
    advance: Advance,
) -> Iterator[FilmIndexResult]:
    """Index films side by side; each is returned when it is finished or has failed."""
    opened: dict[Path, OpenedFilm] = {}
    began: dict[Path, float] = {}
    # a set: a task that is run again after a loss reports the same parts again
    done: set[tuple[Path, str]] = set()
    total = sum(len(film.only or TASKS) for film in films)

    def outcome(task: FilmTask, failure: Failure | None = None) -> FilmIndexResult:
        now = time.perf_counter()
        seconds = round(now - began.get(task.path, now), 3)
        return FilmIndexResult(task.path, seconds, opened.get(task.path), failure)

    pool.submit(*films)
    for report in pool.reports():
        match report:
            case Notice(text):
                say(text)
            case TaskValue(task, OpenedFilm() as film):
                opened.setdefault(task.path, film)
                began.setdefault(task.path, time.perf_counter())
            case TaskValue(task, part):
                done.add((task.path, part))
                advance(len(done) / total)
            case TaskFinished(task):
                yield outcome(task)
            case TaskFailed(task, _, failure):
                yield outcome(task, failure)
