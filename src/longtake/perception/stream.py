"""Encoding while decoding: the next frames are fetched while the last ones are looked at."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from longtake.types import Frame

T = TypeVar("T")


def _batched(frames: Iterable[Frame], size: int) -> Iterator[tuple[Frame, ...]]:
    iterator = iter(frames)
    while some := tuple(islice(iterator, size)):
        yield some


def encoded(
    encode: Callable[[Sequence[Frame]], T], frames: Iterable[Frame], *, batch: int = 16, ahead: int = 2
) -> Iterator[tuple[tuple[float, ...], T]]:
    """``(times, encode(frames))`` per batch, while a thread of its own decodes up to ``ahead`` batches further.

    ``encode`` is any function of a list of frames, such as an encoder's ``images``. An error in decoding is
    raised here, after what was decoded before it; closing the iterator early stops the thread.
    """
    waiting: queue.Queue[tuple[Frame, ...] | BaseException | None] = queue.Queue(maxsize=ahead)
    stop = threading.Event()

    def put(item: tuple[Frame, ...] | BaseException | None) -> bool:
        while not stop.is_set():
            try:
                waiting.put(item, timeout=0.1)
            except queue.Full:
                continue
            return True
        return False

    def decode() -> None:
        try:
            for some in _batched(frames, batch):
                if not put(some):
                    return
        except BaseException as error:  # noqa: BLE001 - handed over, and raised where the frames are used
            put(error)
        else:
            put(None)

    thread = threading.Thread(target=decode, name="longtake-decode", daemon=True)
    thread.start()
    try:
        while (item := waiting.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield tuple(frame.time for frame in item), encode(item)
    finally:
        stop.set()
        thread.join()
