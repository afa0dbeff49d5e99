"""What ``longtake index`` does, task by task, and a first look at a film that was never seen.

The first look hears and reads what fits into a few seconds.

::

    tiles of sound   |  4  |  2  |  5  |  1  |  6  |  3  |  7  |      in this order
    frames to read   |  4  |  2  |  5  |  1  |  6  |  3  |  7  |

Minutes and moments are spread over the film, ever closer together, until the time is up. What was
heard stays in the layer of speech, so indexing goes on from there. What was read stays as the text
of its very moment: which frames represent shots is not known before all of them were decoded.
"""

from __future__ import annotations

import contextvars
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Protocol, TypeAlias, TypeVar

from longtake._util.cancellation import Stop, stopping
from longtake.index.film import Film
from longtake.index.layers import Advance, FrameLayer, Glimpses
from longtake.index.text_layers import SpeechLayer, TileOrder
from longtake.types import Segment

T = TypeVar("T")

SECONDS = 8.0
"""Time for a first look."""


def glance(film: Film, seconds: float = SECONDS) -> None:
    """Hear and read what fits into the time; subtitles are read in any case."""
    film.words.subtitles.lines()
    deadline = time.perf_counter() + seconds
    film.video  # noqa: B018 - creates the folder that the lock is in
    speech, readable = film.words.recognised, film.words.readable
    hear: list[Callable[[], None]] = []
    read: list[Callable[[], None]] = []
    if speech is not None:
        tiles = speech.missing()
        hear = [partial(_hear, speech, tiles[number]) for number in spread(len(tiles))]
    if readable is not None:
        moments = film.times.tolist()
        read = [partial(readable.exactly_held, moments[row]) for row in spread(len(moments))]
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


def _hear(layer: SpeechLayer, tile: Segment) -> None:
    layer.keep(tile, layer.hear(tile))


def _until(deadline: float, steps: Sequence[Callable[[], None]]) -> None:
    """Take one step after another while the longest so far still fits into the time."""
    # the next step may take as long as the longest one before it
    longest = 0.0
    for step in steps:
        began = time.perf_counter()
        if began + longest > deadline:
            return
        step()
        longest = max(longest, time.perf_counter() - began)


TASKS = ("subtitles", "frames", "speech", "onscreen")
"""Names of the tasks, cheapest first."""


class IndexTask(Protocol):
    """One part of indexing."""

    name: str

    def describe(self) -> str:
        """What it computes, in a few words."""

    def done(self) -> bool:
        """Whether nothing is left to do."""

    def build(self, advance: Advance) -> None:
        """Compute what is missing."""


Show: TypeAlias = Callable[[IndexTask], AbstractContextManager[Advance]]
"""Announces a task and gives the function that shows its progress."""


def tasks(film: Film) -> list[IndexTask]:
    """Everything that ``longtake index`` does for one film, cheapest first."""
    return [
        SubtitleTask(film),
        FrameTask(film, film.pictures.layers()),
        SpeechTask(film),
        OnscreenTask(film),
    ]


class SubtitleTask:
    """Subtitles from a file or a stream inside the film."""

    name = "subtitles"

    def __init__(self, film: Film) -> None:
        self._film, self._subtitles = film, film.words.subtitles

    def describe(self) -> str:
        """Where the lines come from."""
        if self._subtitles.key() is None:
            return "none beside or inside the film"
        file = self._subtitles.file
        return f"from {file.name}" if file else "from the film's own stream"

    def done(self) -> bool:
        """Whether they are stored."""
        key = self._subtitles.key()
        return key is None or self._film.source.text.has(key)

    def build(self, advance: Advance) -> None:
        """Read them."""
        self._subtitles.lines()
        advance(1.0)


class FrameTask:
    """Frame layers, in one pass over the film."""

    name = "frames"

    def __init__(self, film: Film, layers: Sequence[FrameLayer]) -> None:
        self._film, self._layers = film, layers

    def describe(self) -> str:
        """Which layers, at which rate."""
        names = ", ".join(layer.key.name for layer in self._layers)
        return f"{names} at {self._film.source.fps:g} fps"

    def done(self) -> bool:
        """Whether every layer is stored."""
        return not self._missing()

    def build(self, advance: Advance) -> None:
        """Compute the layers that are missing."""
        self._film.pictures.build(self._layers, advance)

    def _missing(self) -> list[FrameLayer]:
        return [layer for layer in self._layers if not self._film.pictures.has(layer)]


class SpeechTask:
    """Recognised speech, unless there are subtitles."""

    name = "speech"

    def __init__(self, film: Film, within: Segment | None = None, order: TileOrder = list) -> None:
        self._film, self._words = film, film.words
        self._within, self._order = within, order

    def describe(self) -> str:
        """Which listener is used, or why none is."""
        if self._words.subtitles.key() is not None:
            return "not needed, there are subtitles"
        if not self._film.video.info.audio:
            return "the film has no sound"
        # the message names the extra to install
        if self._words.unheard:
            return self._words.unheard
        if self._words.recognised is None:
            return "switched off (perception.listener)"
        return f"by {self._film.settings.perception.listener}"

    def done(self) -> bool:
        """Whether all of the film has been transcribed, or cannot be."""
        layer = self._words.recognised
        return layer is None or not layer.missing(self._within)

    def build(self, advance: Advance) -> None:
        """Transcribe what is missing."""
        self._film.source.ensure(self.done, partial(self.build_held, advance))

    def build_held(self, advance: Advance) -> None:
        """The same; call while the folder is ``building``, from any thread."""
        layer = self._words.recognised
        if layer is not None:
            layer.transcribe(self._within, advance, self._order)
            self._film.senses.free(self._film.senses.listener)


class OnscreenTask:
    """On-screen text of every distinct shot."""

    name = "onscreen"

    def __init__(self, film: Film) -> None:
        self._film, self._words = film, film.words
        self._reads = film.settings.perception.reader and bool(film.has)

    def describe(self) -> str:
        """How many frames are left to read."""
        if not self._reads:
            return "no pictures, or switched off (perception.reader)"
        if not self._has_glimpses():
            return "one frame for each distinct shot"
        layer = self._words.readable
        return f"{len(layer.missing()) if layer else 0} shots left to read"

    def done(self) -> bool:
        """Whether every shot has been read."""
        if self._reads and not self._has_glimpses():
            return False
        layer = self._words.readable
        return layer is None or not layer.missing()

    def build(self, advance: Advance) -> None:
        """Read what is missing."""
        layer = self._words.readable
        # reading needs the memory of the networks for pictures, which are done
        self._film.senses.free(self._film.senses.tagger)
        if layer is not None:
            layer.build(advance=advance)
            # its memory has grown to the largest frame, and a server goes on for days
            self._film.senses.free(self._film.senses.reader)

    def _has_glimpses(self) -> bool:
        # counting the shots that are missing would compute the thumbnails first
        return self._film.pictures.has(Glimpses())


def build_tasks(film: Film, parts: Sequence[IndexTask], show: Show) -> dict[str, float]:
    """Compute the given tasks; returns the seconds that each one took.

    Speech is recognised in a thread of its own, beside the others: it keeps one core busy and needs
    no pictures. More tasks at once would only need more memory. The build lock is held throughout,
    so another process waits for all of it.
    """
    seconds: dict[str, float] = {}
    if not parts:
        return seconds
    film.video  # noqa: B018 - creates the folder that the lock is in
    speech = next((part for part in parts if isinstance(part, SpeechTask)), None)
    with film.folder.building():
        # nothing to run beside
        if speech is None or len(parts) == 1:
            return {part.name: _build(part, show) for part in parts}
        shares = [0.0]
        with _beside(partial(_timed, partial(speech.build_held, shares.append))) as recognition:
            for part in parts:
                if part is not speech:
                    seconds[part.name] = _build(part, show)
            with show(speech) as advance:
                # most may be done already: what is shown is the share of the rest
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
    """Do the work in a thread beside the block; when the block ends or fails, the work is stopped.

    Stopped recognition ends at the next line; what was heard is kept.
    """
    stop = Stop(stopping.get())

    def run() -> T:
        with stop.in_force():
            return work()

    try:
        with ThreadPoolExecutor(1, "beside") as pool:
            try:
                # what is noted in the thread belongs to the same run
                yield pool.submit(contextvars.copy_context().run, run)
            finally:
                stop.set()
    finally:
        stop.release()
