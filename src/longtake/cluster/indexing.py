"""The tasks of indexing: open a film, compute a part of a layer, join the parts.

Paths and ranges travel; frames and sound stay in the worker that decodes them, and what it computes
goes to the store.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

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
from longtake.errors import RunError
from longtake.index.film import Film
from longtake.index.layers import FrameLayer, build_parts, chunked
from longtake.index.tasks import TASKS, tasks
from longtake.index.text_layers import TILE, OnscreenLayer, SpeechLayer
from longtake.perception.protocols import Heard, UnsupportedSpeech
from longtake.perception.runtime import batches
from longtake.runner.films import open_film
from longtake.types import Line, Segment

TILES = 10
"""Tiles of speech that one task transcribes: ten minutes."""
SHOTS = 64
"""Shots whose text one task reads."""


@dataclass(frozen=True)
class IndexTarget:
    """A film and how it is indexed."""

    path: Path
    subtitles: Path | None = None
    chunks: int = 10
    """Parts of the frame layers that one task computes: ten minutes, at one frame a second."""
    # not part of the identity, which a worker uses to open a film once for many tasks
    settings: Settings = field(default_factory=Settings, compare=False, repr=False)

    def film(self) -> Film:
        """The film, opened once per worker."""
        return _opened(self, cache_folder(self.settings))


@lru_cache(maxsize=4)
def _opened(place: IndexTarget, root: Path) -> Film:
    film = open_film(place.path, place.settings, subtitles=place.subtitles)
    # a worker that cannot write falls back to a folder that nobody else sees
    if root not in film.folder.path.parents:
        raise RunError(f"{root}: the store cannot be written from every machine")
    return film


@dataclass(frozen=True)
class OpenedFilm:
    """What is known of a film once it is open."""

    fingerprint: str
    duration: float
    layers: tuple[dict[str, Any], ...]
    """What each part of indexing computes, and whether it was done before."""


@dataclass(frozen=True)
class _Once:
    """A task that can be repeated as it is."""

    place: IndexTarget

    @property
    def name(self) -> str:
        """The film's path."""
        return str(self.place.path)

    def rest(self, done: int) -> Any:  # noqa: ARG002
        """The whole task: what it has published already is not computed again."""
        return self


@dataclass(frozen=True)
class OpenFilmTask(_Once):
    """Reads a film's packet table and subtitles, and plans the rest."""

    only: tuple[str, ...] = ()

    @with_notes
    def run(self) -> Iterator[OpenedFilm | IndexStage]:
        """The film's facts, and the stages that can begin at once."""
        film = self.place.film()
        # the first look at the film makes its folder, which the tasks look into
        duration = film.duration
        wanted = self.only or TASKS
        chosen = [task for task in tasks(film) if task.name in wanted]
        layers = []
        for task in chosen:
            layers.append({"name": task.name, "what": task.describe(), "was_done": task.done()})
        yield OpenedFilm(film.fingerprint, duration, tuple(layers))
        if "subtitles" in wanted:
            film.words.subtitles.lines()
        if "speech" in wanted:
            yield from _speech_stage(self.place, film)
        if "frames" in wanted:
            yield _frame_stage(self.place, film, then_onscreen="onscreen" in wanted)
        elif "onscreen" in wanted:
            yield from _onscreen_stage(self.place, film)


@dataclass(frozen=True)
class PartsTask(_Once):
    """Computes some parts of a layer: chunks of frames, tiles of speech, or shots to read."""

    layer: str
    numbers: tuple[int, ...]

    @with_notes
    def run(self) -> Iterator[IndexStage]:
        """Publish the parts, one by one."""
        film = self.place.film()
        if self.layer == "frames":
            # all frame layers in one pass over a stretch of the film
            build_parts(
                film.folder, film.video, _missing(film), fps=film.source.fps, numbers=self.numbers
            )
            return
        layer = film.words.recognised if self.layer == "speech" else film.words.readable
        assert layer is not None
        present = film.folder.parts(layer.key)
        numbers = [number for number in self.numbers if number not in present]
        for number, value in _read_parts(layer, numbers):
            film.folder.write_part(layer.key, number, _packed(value))
        yield from ()


def _read_parts(
    layer: SpeechLayer | OnscreenLayer, numbers: Sequence[int]
) -> Iterator[tuple[int, Any]]:
    if isinstance(layer, OnscreenLayer):
        yield from layer.texts(numbers)
        return
    tiles = _tiles(layer)
    for number in numbers:
        if number in tiles:
            yield number, _plain(layer.hear(tiles[number]))


@dataclass(frozen=True)
class JoinTask(_Once):
    """Joins the parts of a layer."""

    layer: str
    then_onscreen: bool = False

    @with_notes
    def run(self) -> Iterator[IndexStage]:
        """Publish the layer; thumbnails tell which shots there are to read."""
        film = self.place.film()
        if self.layer == "frames":
            film.pictures.build(film.pictures.layers())
        else:
            _join_text(film, self.layer)
        if self.then_onscreen:
            yield from _onscreen_stage(self.place, film)


def _join_text(film: Film, name: str) -> None:
    """Store what was heard or read, in the film's order, which decides between repeated lines."""
    layer = film.words.recognised if name == "speech" else film.words.readable
    assert layer is not None
    tiles = _tiles(layer) if isinstance(layer, SpeechLayer) else {}
    rows = set(layer.missing()) if isinstance(layer, OnscreenLayer) else set()
    with film.folder.building():
        for number, path in sorted(film.folder.parts(layer.key).items()):
            value = json.loads(np.load(path).tobytes())
            if isinstance(layer, SpeechLayer) and number in tiles:
                layer.keep(tiles[number], _heard(value))
            elif isinstance(layer, OnscreenLayer) and number in rows:
                layer.keep(number, value)
        film.folder.drop_parts(layer.key)
    # nothing is left unless parts have been damaged
    layer.build()


IndexTask: TypeAlias = OpenFilmTask | PartsTask | JoinTask


@dataclass(frozen=True)
class IndexStage:
    """Tasks that may run side by side, and the one that follows the last of them."""

    parts: tuple[IndexTask, ...]
    then: IndexTask


def _frame_stage(place: IndexTarget, film: Film, *, then_onscreen: bool) -> IndexStage:
    parts: list[IndexTask] = []
    if _missing(film):
        parts += [
            PartsTask(place, "frames", some) for some in split_at_keyframes(film, place.chunks)
        ]
    return IndexStage(tuple(parts), JoinTask(place, "frames", then_onscreen))


def _speech_stage(place: IndexTarget, film: Film) -> Iterator[IndexStage]:
    layer = film.words.recognised
    numbers = [] if layer is None else sorted(_tiles(layer))
    if numbers:
        parts = [PartsTask(place, "speech", tuple(some)) for some in batches(numbers, TILES)]
        yield IndexStage(tuple(parts), JoinTask(place, "speech"))


def _onscreen_stage(place: IndexTarget, film: Film) -> Iterator[IndexStage]:
    layer: OnscreenLayer | None = film.words.readable
    rows = [] if layer is None else layer.missing()
    if rows:
        parts = [PartsTask(place, "onscreen", tuple(some)) for some in batches(rows, SHOTS)]
        yield IndexStage(tuple(parts), JoinTask(place, "onscreen"))


def split_at_keyframes(film: Film, max_chunks: int) -> list[tuple[int, ...]]:
    """The numbers of all chunks, in stretches of about ``max_chunks``.

    A stretch begins where decoding can begin at most one chunk earlier. A film without keyframes
    stays whole: every stretch of it would be decoded from the start.
    """
    times, table = film.times, film.video.table
    stretches: list[list[int]] = [[]]
    previous = 0
    for number, rows in enumerate(chunked(len(times))):
        (first,) = table.on_screen([float(times[rows[0]])])
        if len(stretches[-1]) >= max_chunks and table.entry(int(first)) >= previous:
            stretches.append([])
        stretches[-1].append(number)
        previous = int(first)
    return [tuple(numbers) for numbers in stretches]


def _missing(film: Film) -> list[FrameLayer]:
    return [layer for layer in film.pictures.layers() if not film.pictures.has(layer)]


def _tiles(layer: SpeechLayer) -> dict[int, Segment]:
    """The tiles that have not been transcribed, by number."""
    return {round(tile.start / TILE): tile for tile in layer.missing()}


def _packed(value: Any) -> NDArray[np.uint8]:
    """Text as an array of bytes: parts of every layer are kept in the same way."""
    return np.frombuffer(json.dumps(value).encode(), np.uint8)


def _plain(heard: Heard) -> dict[str, Any]:
    lines = [[line.segment.start, line.segment.end, line.text] for line in heard.lines]
    left_out = [[part.segment.start, part.segment.end, part.reason] for part in heard.unsupported]
    return {"lines": lines, "unsupported": left_out}


def _heard(value: dict[str, Any]) -> Heard:
    lines = [Line(Segment(start, end), text) for start, end, text in value["lines"]]
    left_out = [
        UnsupportedSpeech(Segment(start, end), reason)
        for start, end, reason in value["unsupported"]
    ]
    return Heard(tuple(lines), tuple(left_out))


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


Advance: TypeAlias = Callable[[float], None]


@dataclass
class FilmProgress:
    """How far one film is."""

    place: IndexTarget
    began: float
    opened: OpenedFilm | None = None
    left: int = 1
    """Tasks that are under way or known to follow."""
    stages: set[IndexTask] = field(default_factory=set)
    """Stages that have begun, by their last task."""
    failure: Failure | None = None
    """The first failure; there may be more of the same kind, which are not reported."""


@dataclass(frozen=True)
class FilmIndexResult:
    """A film that is finished or has failed."""

    path: Path
    seconds: float
    opened: OpenedFilm | None
    failure: Failure | None


@dataclass
class _Group:
    """Parts of a stage that are under way, and what follows them."""

    then: IndexTask
    left: int


@dataclass
class ClusterIndexer:
    """Films on their way through the stages."""

    pool: WorkerPool[IndexTask]
    say: Callable[[str], None]
    advance: Advance
    films: dict[Path, FilmProgress] = field(default_factory=dict)
    _groups: dict[IndexTask, _Group] = field(default_factory=dict)
    _known: int = 0
    _done: int = 0

    def run(self, places: Sequence[IndexTarget], only: Sequence[str]) -> Iterator[FilmIndexResult]:
        """Index the films; each is returned when it is finished or has failed."""
        for place in places:
            self.films[place.path] = FilmProgress(place, time.perf_counter())
            self._known += 1
            self.pool.submit(OpenFilmTask(place, tuple(only)))
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

    def _take(self, task: IndexTask, value: OpenedFilm | IndexStage) -> None:
        film = self.films[task.place.path]
        if isinstance(value, OpenedFilm):
            film.opened = value
        elif film.failure is None:
            self._begin(film, value)

    def _begin(self, film: FilmProgress, stage: IndexStage) -> None:
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

    def _finish(self, task: IndexTask) -> Iterator[FilmIndexResult]:
        film = self.films[task.place.path]
        group = self._groups.pop(task, None)
        if group is not None:
            group.left -= 1
            if group.left == 0 and film.failure is None:
                self._submit(group.then)
        yield from self._count(film)

    def _fail(self, task: IndexTask, failure: Failure) -> Iterator[FilmIndexResult]:
        """Report a film once, and leave out the rest of it."""
        film = self.films[task.place.path]
        self._groups.pop(task, None)
        if film.failure is None:
            film.failure = failure
            dropped = self.pool.withdraw(lambda other: other.place == task.place)
            self._done += dropped
            yield self._outcome(film)
        yield from self._count(film)

    def _count(self, film: FilmProgress) -> Iterator[FilmIndexResult]:
        film.left -= 1
        self._done += 1
        self.advance(self._done / self._known)
        if film.left == 0 and film.failure is None:
            yield self._outcome(film)

    @staticmethod
    def _outcome(film: FilmProgress) -> FilmIndexResult:
        seconds = round(time.perf_counter() - film.began, 3)
        return FilmIndexResult(film.place.path, seconds, film.opened, film.failure)
