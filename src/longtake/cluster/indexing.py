"""Films on many workers: one call per film, which computes its layers into the shared store.

Only a path travels: frames and sound stay in the worker that decodes them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from longtake._util.process_pool import Failure, Workers, run_groups
from longtake.config import Settings, cache_folder
from longtake.index.layers import Advance, ignore
from longtake.index.tasks import TASKS, tasks
from longtake.runner.films import open_film
from longtake.tracing.events import Stream
from longtake.tracing.sinks import NoteSink


@dataclass(frozen=True)
class FilmTask:
    """A film to index."""

    path: Path
    subtitles: Path | None = None
    only: tuple[str, ...] = ()
    """Names of the parts to compute; empty: all."""
    settings: Settings = field(default_factory=Settings, repr=False)


@dataclass(frozen=True)
class IndexFacts:
    """What is known of a film once it is indexed."""

    fingerprint: str
    duration: float
    layers: tuple[dict[str, Any], ...]
    """What each part of indexing computes, and whether it was done before."""
    seconds: float
    notes: tuple[str, ...] = ()
    """What the user should know, such as that the file is damaged."""


@dataclass(frozen=True)
class FilmIndexResult:
    """A film that is finished or has failed."""

    path: Path
    indexed: IndexFacts | None
    failure: Failure | None = None


def index_film(task: FilmTask) -> IndexFacts:
    """Compute the parts of a film that are missing."""
    began = time.perf_counter()
    notes: list[str] = []
    with Stream(NoteSink(notes.append)).active():
        film = open_film(task.path, task.settings, subtitles=task.subtitles)
        duration = film.duration  # the first look at the film makes its folder
        layers = []
        for part in tasks(film):
            if part.name in (task.only or TASKS):
                was_done = part.done()
                layers.append({"name": part.name, "what": part.describe(), "was_done": was_done})
                if not was_done:
                    part.build(ignore)
    seconds = round(time.perf_counter() - began, 3)
    return IndexFacts(film.fingerprint, duration, tuple(layers), seconds, tuple(notes))


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


def index_films(
    workers: Workers, films: Sequence[FilmTask], say: Callable[[str], None], advance: Advance
) -> Iterator[FilmIndexResult]:
    """Index films side by side; each is returned when it is finished or has failed."""
    results = run_groups(workers, index_film, ([film] for film in films))
    for done, (film, result) in enumerate(results, 1):
        advance(done / len(films))
        if isinstance(result, Failure):
            yield FilmIndexResult(film.path, None, result)
        else:
            for text in result.notes:
                say(text)
            yield FilmIndexResult(film.path, result)
