"""Indexing films on many workers: one task per film, layer and part.

::

    open ──┬─> frames part, frames part, … ──> join ──> onscreen part, … ──> join
           └─> speech part, speech part, … ──> join

Parts are published into the store by a rename, so a part that is computed twice is harmless, and a
run that is killed continues where it stopped. Joining is what one process does with parts that an
earlier run has left: the layers are the same, byte for byte.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from longtake.cluster.parts import IndexTask, Opened, OpenFilm, Place, Stage
from longtake.process_pool import Failure, Notice, TaskFailed, TaskFinished, TaskValue, WorkerPool

Advance: TypeAlias = Callable[[float], None]


@dataclass
class Progress:
    """How far one film is."""

    place: Place
    began: float
    opened: Opened | None = None
    left: int = 1
    """Tasks that are under way or known to follow."""
    stages: set[IndexTask] = field(default_factory=set)
    """Stages that have begun, by their last task."""
    failure: Failure | None = None
    """The first failure; there may be more of the same kind, which are not reported."""


@dataclass(frozen=True)
class Indexed:
    """A film that is finished or has failed."""

    path: Path
    seconds: float
    opened: Opened | None
    failure: Failure | None


@dataclass
class _Group:
    """Parts of a stage that are under way, and what follows them."""

    then: IndexTask
    left: int


@dataclass
class Indexing:
    """Films on their way through the stages."""

    pool: WorkerPool[IndexTask]
    say: Callable[[str], None]
    advance: Advance
    films: dict[Path, Progress] = field(default_factory=dict)
    _groups: dict[IndexTask, _Group] = field(default_factory=dict)
    _known: int = 0
    _done: int = 0

    def run(self, places: Sequence[Place], only: Sequence[str]) -> Iterator[Indexed]:
        """Index the films; each is returned when it is finished or has failed."""
        for place in places:
            self.films[place.path] = Progress(place, time.perf_counter())
            self._known += 1
            self.pool.submit(OpenFilm(place, tuple(only)))
        for report in self.pool.reports():
            match report:
                case Notice(text):
                    self.say(text)
                case TaskValue(task, value):
                    self._take(task, value)
                case TaskFinished(task):
                    yield from self._finish(task)
                case TaskFailed(task, _, failure):
                    yield from self._fail(task, failure)

    def _submit(self, *tasks: IndexTask) -> None:
        self._known += len(tasks)
        # a film is finished before the next one is opened, so that a killed run leaves whole films
        self.pool.submit(*tasks, first=True)

    def _take(self, task: IndexTask, value: Opened | Stage) -> None:
        film = self.films[task.place.path]
        if isinstance(value, Opened):
            film.opened = value
        elif film.failure is None:
            self._begin(film, value)

    def _begin(self, film: Progress, stage: Stage) -> None:
        """Start the parts of a stage; what follows starts when the last of them is done."""
        # a task that is run again after a loss plans the same stages again
        if stage.then in film.stages:
            return
        film.stages.add(stage.then)
        film.left += len(stage.parts) + 1
        if not stage.parts:
            self._submit(stage.then)
            return
        group = _Group(stage.then, len(stage.parts))
        for part in stage.parts:
            self._groups[part] = group
        self._submit(*stage.parts)

    def _finish(self, task: IndexTask) -> Iterator[Indexed]:
        film = self.films[task.place.path]
        group = self._groups.pop(task, None)
        if group is not None:
            group.left -= 1
            if group.left == 0 and film.failure is None:
                self._submit(group.then)
        yield from self._count(film)

    def _fail(self, task: IndexTask, failure: Failure) -> Iterator[Indexed]:
        """Report a film once, and leave out the rest of it."""
        film = self.films[task.place.path]
        self._groups.pop(task, None)
        if film.failure is None:
            film.failure = failure
            dropped = self.pool.withdraw(lambda other: other.place == task.place)
            self._done += dropped
            yield self._outcome(film)
        yield from self._count(film)

    def _count(self, film: Progress) -> Iterator[Indexed]:
        film.left -= 1
        self._done += 1
        self.advance(self._done / self._known)
        if film.left == 0 and film.failure is None:
            yield self._outcome(film)

    @staticmethod
    def _outcome(film: Progress) -> Indexed:
        seconds = round(time.perf_counter() - film.began, 3)
        return Indexed(film.place.path, seconds, film.opened, film.failure)
