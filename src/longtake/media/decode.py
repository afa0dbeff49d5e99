"""Decodes the wanted frames of a film on several threads.

Each worker opens the file itself and decodes whole runs. FFmpeg releases the GIL, so threads are as
fast as processes and need not copy every frame between them. Pixels come out in time order through
one bounded channel per span, so memory use does not grow with the film.
"""

from __future__ import annotations

import contextvars
import os
import queue
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TypeAlias

from longtake.config import MediaSettings
from longtake.media.images import to_pixels
from longtake.media.packets import PacketTable
from longtake.media.plan import Run, plan, spans
from longtake.media.reader import Reader
from longtake.stopping import check_stop
from longtake.types import Pixels

Picture: TypeAlias = tuple[int, Pixels]
"""A position in the packet table, and its pixels."""

PENDING_BYTES = 48 * 2**20
"""Decoded pixels that may wait for the consumer, over all workers."""


@dataclass(frozen=True)
class FrameShape:
    """Size and orientation of the pictures to return."""

    width: int | None = None
    """Maximum width; smaller films are not enlarged."""
    rotation: int = 0
    aspect: float = 1.0
    frame_bytes: int = 0
    """Size of one picture, for the memory limit."""


def workers_for(limits: MediaSettings) -> int:
    """Return the number of decoding threads: as configured, or one per usable core, at most 8."""
    if limits.workers:
        return limits.workers
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    return min(cores, 8)


def fetch(
    path: Path,
    table: PacketTable,
    positions: Iterable[int],
    shape: FrameShape,
    limits: MediaSettings,
) -> Iterator[Picture]:
    """Yield positions and their pixels, by time; frames that cannot be decoded are left out."""
    cores = workers_for(limits)
    waiting = max(2, PENDING_BYTES // max(1, shape.frame_bytes * cores))
    jobs = spans(plan(table, positions), frames=min(waiting, 16))
    workers = min(cores, len(jobs))
    if workers <= 1:
        # with nothing to share between workers, FFmpeg's own threads use the cores
        reader = Reader(path, table, limits, threads=cores)
        try:
            for run in chain.from_iterable(jobs):
                yield from _pictures(reader, run, shape, waiting)
        finally:
            reader.close()
        return
    yield from _in_parallel(path, table, jobs, shape, limits, workers=workers, waiting=waiting)


def _pictures(reader: Reader, run: Run, shape: FrameShape, waiting: int) -> Iterator[Picture]:
    """Yield the wanted pictures of one run as pixels."""

    def convert(skip: bool) -> Iterator[Picture]:
        for position, frame in reader.frames(run, skip=skip):
            pixels = to_pixels(
                frame, width=shape.width, rotation=shape.rotation, aspect=shape.aspect
            )
            yield position, pixels

    if len(run.wanted) > waiting:  # too many to collect before the first is passed on
        yield from convert(skip=False)
        return
    decoded = dict(convert(skip=True))
    if len(decoded) < len(run.wanted):
        # some decoders mix up the order of frames when others are skipped; decode everything then
        decoded |= dict(convert(skip=False))
    for position in run.wanted:
        if position in decoded:
            yield position, decoded[position]


class _Channel:
    """Passes the pictures of one span from a worker to the consumer."""

    def __init__(self, size: int, stop: threading.Event) -> None:
        self._queue: queue.Queue[Picture | BaseException | None] = queue.Queue(size)
        self._stop = stop

    def put(self, item: Picture | BaseException | None) -> bool:
        """Wait for room and return True; return False once the consumer has stopped."""
        while not self._stop.is_set():
            try:
                self._queue.put(item, timeout=0.1)
            except queue.Full:
                continue
            return True
        return False

    def __iter__(self) -> Iterator[Picture]:
        while (item := self._get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item

    def _get(self) -> Picture | BaseException | None:
        while True:
            check_stop()
            try:
                # in short waits, so that cancelled work does not wait for the next picture
                return self._queue.get(timeout=0.1)
            except queue.Empty:
                continue


def _in_parallel(
    path: Path,
    table: PacketTable,
    jobs: list[list[Run]],
    shape: FrameShape,
    limits: MediaSettings,
    *,
    workers: int,
    waiting: int,
) -> Iterator[Picture]:
    stop = threading.Event()
    local = threading.local()
    readers: list[Reader] = []
    ahead = threading.Semaphore(workers + 1)  # limits the spans begun but not yet consumed

    def work(job: list[Run], channel: _Channel) -> None:
        try:
            if not hasattr(local, "reader"):
                local.reader = Reader(path, table, limits)
                readers.append(local.reader)
            for run in job:
                for item in _pictures(local.reader, run, shape, waiting):
                    if not channel.put(item):
                        return
            channel.put(None)
        except BaseException as error:  # noqa: BLE001 - the consumer raises it
            channel.put(error)

    pool = ThreadPoolExecutor(workers, thread_name_prefix="longtake-decode")
    try:
        channels: list[_Channel] = []
        submitted = 0
        for turn in range(len(jobs)):
            while submitted < len(jobs) and ahead.acquire(blocking=False):
                channels.append(_Channel(waiting, stop))
                # the workers notice when the consumer's work is cancelled
                context = contextvars.copy_context()
                pool.submit(context.run, work, jobs[submitted], channels[submitted])
                submitted += 1
            yield from channels[turn]
            channels[turn] = _Channel(1, stop)  # frees the memory of the consumed one
            ahead.release()
    finally:
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)
        for reader in readers:
            reader.close()
