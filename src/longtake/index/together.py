"""Several parts of indexing at once: speech in a thread of its own, the others one by one.

Recognising speech keeps one core busy and needs no pictures; decoding, encoding and reading use
what the other cores have left. More parts at once would only need more memory.
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from typing import TypeAlias

from longtake.index.costs import Cost
from longtake.index.film import Film
from longtake.index.layers import Advance
from longtake.index.pace import beside, own_cpu
from longtake.index.tasks import SpeechTask, Task
from longtake.stopping import Stop, stopping

Show: TypeAlias = Callable[[Task], AbstractContextManager[Advance]]
"""Announces a part and gives the function that shows its progress."""
TICK = 0.2
"""Seconds between two looks at how far the speech is."""


def build_together(
    film: Film, parts: Sequence[Task], show: Show, announce: Callable[[], None] = lambda: None
) -> dict[str, Cost]:
    """Compute the given parts; returns what each one took.

    ``announce`` says what will be done, for which it may measure: speech is recognised meanwhile.
    The build lock is held throughout, so another process waits for all of it.
    """
    costs: dict[str, Cost] = {}
    if not parts:
        announce()
        return costs
    film.video  # noqa: B018 - creates the folder that the lock is in
    speech = meanwhile(parts)
    with film.folder.building():
        if speech is None:
            announce()
            return {part.name: _timed(film, part, show) for part in parts}
        hearing = _Beside(film, speech)
        try:
            with beside(hearing.cpu):
                announce()
                for part in parts:
                    if part is not speech:
                        costs[part.name] = _timed(film, part, show)
            with show(speech) as advance:
                costs[speech.name] = hearing.finish(advance)
        finally:
            hearing.stop()
    return costs


def meanwhile(parts: Sequence[Task]) -> SpeechTask | None:
    """The part that is computed beside the others, if there are any others."""
    speech = next((part for part in parts if isinstance(part, SpeechTask)), None)
    return speech if len(parts) > 1 else None


def _timed(film: Film, part: Task, show: Show) -> Cost:
    missing = part.left() * film.duration
    wall, cpu = time.perf_counter(), own_cpu()
    with show(part) as advance:
        part.build(advance)
    return Cost(time.perf_counter() - wall, own_cpu() - cpu, missing)


class _Beside:
    """Speech recognition in another thread, while this one holds the build lock."""

    def __init__(self, film: Film, part: SpeechTask) -> None:
        self._part = part
        self._began = time.perf_counter()
        self._told = 0.0, self._began
        """The share of the work that was done at a certain time."""
        self._cpu = 0.0
        """CPU seconds of the thread when it last told."""
        self._clock: int | None = None
        self._missing = part.left() * film.duration
        self._stop = Stop(stopping.get())
        self._failure: BaseException | None = None
        self._cost = Cost(0.0, None)
        # what is noted in the thread belongs to the same run
        context = contextvars.copy_context()
        self._thread = threading.Thread(target=context.run, args=(self._work,), name="speech")
        self._thread.start()

    def _work(self) -> None:
        began = time.perf_counter()
        # not on every system
        if hasattr(time, "pthread_getcpuclockid"):
            self._clock = time.pthread_getcpuclockid(threading.get_ident())
        try:
            with self._stop.in_force():
                self._part.build_held(self._advance)
        except BaseException as error:  # noqa: BLE001 - raised again by ``finish``
            self._failure = error
        self._clock, self._cpu = None, time.thread_time()
        self._cost = Cost(time.perf_counter() - began, self._cpu, self._missing)

    def _advance(self, share: float) -> None:
        self._told = share, time.perf_counter()
        self._cpu = time.thread_time()

    def cpu(self) -> float:
        """CPU seconds of the thread so far; the recogniser uses no others of its own."""
        clock = self._clock
        if clock is not None:
            with suppress(OSError):  # the thread has just ended
                return time.clock_gettime(clock)
        return self._cpu

    def finish(self, advance: Advance) -> Cost:
        """Wait until the speech is recognised; what is shown is the share of the waiting."""
        waiting = time.perf_counter()
        while self._thread.is_alive():
            self._thread.join(TICK)
            advance(self._waited(time.perf_counter() - waiting))
        if self._failure is not None:
            raise self._failure
        return self._cost

    def _waited(self, waited: float) -> float:
        """The share of the waiting that is over, if recognition goes on at its pace so far.

        Most was done before the waiting began: the share of all would promise too early an end.
        """
        share, told = self._told
        if not share:
            return 0.0
        expected = (told - self._began) * (1 - share) / share
        left = max(0.0, expected - (time.perf_counter() - told))
        return waited / max(waited + left, 1e-9)

    def stop(self) -> None:
        """End the work at the next line, and wait for that; what was heard is kept."""
        self._stop.set()
        self._thread.join()
        self._stop.release()
