"""A first look at a long film that was never seen: what can be heard and read in a few seconds.

::

    tiles of sound   |  4  |  2  |  5  |  1  |  6  |  3  |  7  |      in this order
    frames to read   |  4  |  2  |  5  |  1  |  6  |  3  |  7  |

Minutes and moments are spread over the film, ever closer together, until the time is up. What was
heard stays in the layer of speech, so indexing goes on from there. What was read stays as the text
of its very moment: which frames represent shots is not known before all of them were decoded.
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from longtake.index.film import Film
from longtake.index.speech import SpeechLayer
from longtake.stopping import Stop, stopping
from longtake.types import Segment

SECONDS = 8.0
"""Time for a first look."""


def glance(film: Film, seconds: float = SECONDS) -> None:
    """Hear and read what fits into the time; subtitles are read in any case."""
    film.words.subtitles.lines()
    works: list[Callable[[], None]] = []
    deadline = time.perf_counter() + seconds
    film.video  # noqa: B018 - creates the folder that the lock is in
    speech, readable = film.words.recognised, film.words.readable
    if speech is not None:
        tiles = speech.missing()
        hear = [partial(_hear, speech, tiles[number]) for number in spread(len(tiles))]
        works.append(partial(_until, deadline, hear))
    if readable is not None:
        moments = film.times.tolist()
        read = [partial(readable.exactly_held, moments[row]) for row in spread(len(moments))]
        works.append(partial(_until, deadline, read))
    with film.folder.building():
        _at_once(works)


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
    longest = 0.0
    for step in steps:
        began = time.perf_counter()
        if began + longest > deadline:
            return
        step()
        longest = max(longest, time.perf_counter() - began)


def _at_once(works: list[Callable[[], None]]) -> None:
    """Run each in its own thread; if one fails, or the caller is interrupted, all end."""
    stop = Stop(stopping.get())
    failures: list[BaseException] = []

    def run(work: Callable[[], None]) -> None:
        try:
            with stop.in_force():
                work()
        except BaseException as error:  # noqa: BLE001 - raised again below
            failures.append(error)
            stop.set()

    threads = []
    for work in works:
        context = contextvars.copy_context()
        threads.append(threading.Thread(target=context.run, args=(run, work)))
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        stop.release()
    if failures:
        raise failures[0]
