"""Carrying out a plan: wanted frames in, pixels out, on several threads.

Each worker has the file open for itself and decodes whole runs; FFmpeg works outside Python's lock, so
threads do what processes would, without copying every frame between them. Pixels come out in time order
through one bounded channel per span, so memory does not grow with the film.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from longtake.config import MediaSettings
from longtake.media.images import to_pixels
from longtake.media.packets import PacketTable
from longtake.media.plan import Run, plan, spans
from longtake.media.reader import Reader
from longtake.types import Pixels

PENDING_BYTES = 48 * 2**20
"""Decoded pixels that may wait for their turn, over all workers."""


@dataclass(frozen=True)
class Look:
    """How pictures are to be handed out."""

    width: int | None = None
    """Widest picture wanted; smaller films are not enlarged."""
    rotation: int = 0
    aspect: float = 1.0
    frame_bytes: int = 0
    """Size of one picture, for the memory bound."""


def workers_for(limits: MediaSettings) -> int:
    """Decoding threads: as configured, else one per usable core, at most eight."""
    if limits.workers:
        return limits.workers
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    return min(cores, 8)


def fetch(
    path: Path, table: PacketTable, positions: Iterable[int], look: Look, limits: MediaSettings
) -> Iterator[tuple[int, Pixels]]:
    """Positions and their pixels, by time; what cannot be decoded is left out."""
    cores = workers_for(limits)
    waiting = max(2, PENDING_BYTES // max(1, look.frame_bytes * cores))
    jobs = spans(plan(table, positions), frames=min(waiting, 16))
    workers = min(cores, len(jobs))
    if workers <= 1:
        reader = Reader(path, table, limits, threads=cores)
        try:
            for run in (run for job in jobs for run in job):
                yield from _pictures(reader, run, look, waiting)
        finally:
            reader.close()
        return
    yield from _in_parallel(path, table, jobs, look, limits, workers=workers, waiting=waiting)


def _pictures(reader: Reader, run: Run, look: Look, waiting: int) -> Iterator[tuple[int, Pixels]]:
    """The wanted pictures of one run, converted."""

    def convert(skip: bool) -> Iterator[tuple[int, Pixels]]:
        for position, frame in reader.frames(run, skip=skip):
            yield (
                position,
                to_pixels(frame, width=look.width, rotation=look.rotation, aspect=look.aspect),
            )

    if len(run.wanted) > waiting:
        yield from convert(skip=False)
        return
    found = dict(convert(skip=True))
    if len(found) < len(run.wanted):
        # some decoders lose a frame's order when others are skipped; slow and sure then
        found |= dict(convert(skip=False))
    yield from ((position, found[position]) for position in run.wanted if position in found)


class _Channel:
    """Pictures of one span on their way from a worker to the consumer."""

    def __init__(self, size: int, stop: threading.Event) -> None:
        self._queue: queue.Queue[tuple[int, Pixels] | BaseException | None] = queue.Queue(size)
        self._stop = stop

    def put(self, item: tuple[int, Pixels] | BaseException | None) -> bool:
        """Wait for room; False when nobody listens any more."""
        while not self._stop.is_set():
            try:
                self._queue.put(item, timeout=0.1)
            except queue.Full:
                continue
            return True
        return False

    def __iter__(self) -> Iterator[tuple[int, Pixels]]:
        while (item := self._queue.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item


def _in_parallel(
    path: Path,
    table: PacketTable,
    jobs: list[list[Run]],
    look: Look,
    limits: MediaSettings,
    *,
    workers: int,
    waiting: int,
) -> Iterator[tuple[int, Pixels]]:
    stop = threading.Event()
    local = threading.local()
    readers: list[Reader] = []
    ahead = threading.Semaphore(workers + 1)  # spans begun but not yet consumed

    def work(job: list[Run], channel: _Channel) -> None:
        try:
            if not hasattr(local, "reader"):
                local.reader = Reader(path, table, limits)
                readers.append(local.reader)
            for run in job:
                for item in _pictures(local.reader, run, look, waiting):
                    if not channel.put(item):
                        return
            channel.put(None)
        except BaseException as error:  # noqa: BLE001 - handed to the consumer, who raises it
            channel.put(error)

    pool = ThreadPoolExecutor(workers, thread_name_prefix="longtake-decode")
    try:
        channels: list[_Channel] = []
        submitted = 0
        for turn in range(len(jobs)):
            while submitted < len(jobs) and ahead.acquire(blocking=False):
                channels.append(_Channel(waiting, stop))
                pool.submit(work, jobs[submitted], channels[submitted])
                submitted += 1
            yield from channels[turn]
            channels[turn] = _Channel(1, stop)
            ahead.release()
    finally:
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)
        for reader in readers:
            reader.close()
