"""The tasks of ``longtake index``, and a first look at a film that is not indexed.

The first look recognises as much speech and on-screen text as fits into a few seconds.

::

    tiles of sound   |  4  |  2  |  5  |  1  |  6  |  3  |  7  |      in this order
    frames to read   |  4  |  2  |  5  |  1  |  6  |  3  |  7  |

Tiles and frames are spread over the film, ever more densely, until the time is up. Indexing
continues from the speech that was recognised. On-screen text is stored for its exact moment, since
the frames that represent shots are known only after the whole film was decoded.
"""

from __future__ import annotations

import contextvars
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias, TypeVar

from longtake._util.cancellation import Stop, stopping
from longtake.index.film import Film
from longtake.index.layers import GLIMPSES, Advance
from longtake.index.text_layers import TileOrder
from longtake.types import Segment

T = TypeVar("T")

SECONDS = 8.0
"""Time for a first look."""


def glance(film: Film, seconds: float = SECONDS) -> None:
    """Recognise speech and text until the time is up; subtitles are read in any case."""
    film.words.subtitles.lines()
    deadline = time.perf_counter() + seconds
    film.video  # noqa: B018 - creates the folder that the lock is in
    speech, readable = film.words.recognised, film.words.readable
    hear: list[Callable[[], object]] = []
    read: list[Callable[[], object]] = []
    if speech is not None:
        tiles = speech.missing()
        hear = [partial(speech.hear, tiles[number]) for number in spread(len(tiles))]
    if readable is not None:
        moments = film.times.tolist()
        read = [partial(readable.exactly, moments[row]) for row in spread(len(moments))]
    with film.folder.building(), _beside(partial(_until, deadline, hear)) as hearing:
        _until(deadline, read)
        hearing.result()


def spread(count: int) -> Iterator[int]:
    """The numbers from 0 to ``count`` − 1, each far from those before it."""
    known: set[int] = set()
    denominator = 2
    while len(known) < count:
        # the odd multiples of 1/2, 1/4, 1/8 …
        for numerator in range(1, denominator, 2):
            number = count * numerator // denominator
            if number not in known:
                known.add(number)
                yield number
        denominator *= 2
        if denominator > 4 * count:
            yield from (number for number in range(count) if number not in known)
            return


def _until(deadline: float, steps: Sequence[Callable[[], object]]) -> None:
    """Run one step after another while the longest so far still fits into the time."""
    longest = 0.0
    for step in steps:
        began = time.perf_counter()
        if began + longest > deadline:
            return
        step()
        longest = max(longest, time.perf_counter() - began)


TASKS = ("subtitles", "frames", "speech", "onscreen")
"""Names of the tasks, cheapest first."""


@dataclass(frozen=True)
class IndexTask:
    """One part of indexing."""

    name: str
    describe: Callable[[], str]
    """What it computes, in a few words."""
    done: Callable[[], bool]
    """Whether nothing is left to do."""
    build: Callable[[Advance], None]
    """Computes what is missing."""
    build_held: Callable[[Advance], None] | None = None
    """The same for a caller that holds the build lock, from any thread."""


Show: TypeAlias = Callable[[IndexTask], AbstractContextManager[Advance]]
"""Announces a task and gives the function that shows its progress."""


def tasks(film: Film) -> list[IndexTask]:
    """Everything that ``longtake index`` does for one film, cheapest first."""
    return [subtitle_task(film), frame_task(film), speech_task(film), onscreen_task(film)]


def subtitle_task(film: Film) -> IndexTask:
    """Subtitles from a file or a stream inside the film."""
    subtitles = film.words.subtitles

    def describe() -> str:
        if subtitles.key() is None:
            return "none beside or inside the film"
        file = subtitles.file
        return f"from {file.name}" if file else "from the film's own stream"

    def done() -> bool:
        key = subtitles.key()
        return key is None or film.source.text.has(key)

    def build(advance: Advance) -> None:
        subtitles.lines()
        advance(1.0)

    return IndexTask("subtitles", describe, done, build)


def frame_task(film: Film) -> IndexTask:
    """The layers of pictures, in one pass over the film."""
    pictures = film.pictures
    layers = pictures.layers()
    names = ", ".join(layer.key.name for layer in layers)
    return IndexTask(
        "frames",
        lambda: f"{names} at {film.source.fps:g} fps",
        lambda: all(map(pictures.has, layers)),
        partial(pictures.build, layers),
    )


def speech_task(film: Film, within: Segment | None = None, order: TileOrder = list) -> IndexTask:
    """Recognised speech of the film or a segment, unless there are subtitles."""
    words = film.words

    def describe() -> str:
        if words.subtitles.key() is not None:
            return "not needed, there are subtitles"
        if not film.video.info.audio:
            return "the film has no sound"
        # the message names the extra to install
        if words.unheard:
            return words.unheard
        if words.recognised is None:
            return "switched off (perception.listener)"
        return f"by {film.settings.perception.listener}"

    def done() -> bool:
        # nothing is left to do if speech cannot be transcribed
        return words.recognised is None or not words.recognised.missing(within)

    def build_held(advance: Advance) -> None:
        if words.recognised is not None:
            words.recognised.transcribe(within, advance, order)
            film.senses.free(film.senses.listener)

    def build(advance: Advance) -> None:
        film.source.ensure(done, partial(build_held, advance))

    return IndexTask("speech", describe, done, build, build_held)


def onscreen_task(film: Film) -> IndexTask:
    """On-screen text of every distinct shot."""
    words = film.words
    reads = film.settings.perception.reader and bool(film.has)

    def has_glimpses() -> bool:
        # counting the shots that are missing would compute the thumbnails first
        return film.pictures.has(GLIMPSES)

    def describe() -> str:
        if not reads:
            return "no pictures, or switched off (perception.reader)"
        if not has_glimpses():
            return "one frame for each distinct shot"
        return f"{len(words.readable.missing()) if words.readable else 0} shots left to read"

    def done() -> bool:
        if reads and not has_glimpses():
            return False
        return words.readable is None or not words.readable.missing()

    def build(advance: Advance) -> None:
        # the networks for pictures are done, and reading needs their memory
        film.senses.free(film.senses.tagger)
        if words.readable is not None:
            words.readable.build(advance=advance)
            # its memory has grown to the largest frame, which matters for a server
            film.senses.free(film.senses.reader)

    return IndexTask("onscreen", describe, done, build)


def build_tasks(film: Film, parts: Sequence[IndexTask], show: Show) -> dict[str, float]:
    """Compute the given tasks; returns the seconds that each one took.

    Speech is recognised in parallel to the other tasks, since it uses one core and no pictures.
    More parallel tasks would only need more memory. The build lock is held until all are done.
    """
    seconds: dict[str, float] = {}
    if not parts:
        return seconds
    film.video  # noqa: B018 - creates the folder that the lock is in
    speech = next((part for part in parts if part.build_held), None)
    with film.folder.building():
        if speech is None or speech.build_held is None or len(parts) == 1:
            return {part.name: _build(part, show) for part in parts}
        shares = [0.0]
        with _beside(partial(_timed, partial(speech.build_held, shares.append))) as recognition:
            for part in parts:
                if part is not speech:
                    seconds[part.name] = _build(part, show)
            with show(speech) as advance:
                # progress of what is left now
                before = shares[-1]
                # often enough for a progress bar
                while not wait([recognition], 0.2).done:
                    advance((shares[-1] - before) / max(1 - before, 1e-9))
            seconds[speech.name] = recognition.result()
    return seconds


def _build(part: IndexTask, show: Show) -> float:
    with show(part) as advance:
        return _timed(partial(part.build, advance))


def _timed(work: Callable[[], None]) -> float:
    """Do the work and return the seconds that it took."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


@contextmanager
def _beside(work: Callable[[], T]) -> Iterator[Future[T]]:
    """Do the work in a thread in parallel to the block, and stop it when the block ends or fails.

    Recognition stops at the next line and keeps the lines before.
    """
    stop = Stop(stopping.get())

    def run() -> T:
        with stop.in_force():
            return work()

    try:
        with ThreadPoolExecutor(1, "beside") as pool:
            try:
                # with the context, so that events of the thread belong to the same run
                yield pool.submit(contextvars.copy_context().run, run)
            finally:
                stop.set()
    finally:
        stop.release()
