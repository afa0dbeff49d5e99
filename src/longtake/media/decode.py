"""Decodes the wanted frames of a film on several threads.

Each worker opens the file itself and decodes whole runs. FFmpeg releases the GIL, so threads are as
fast as processes and need not copy every frame between them. Pixels come out in time order through
one bounded channel per span, so memory use does not grow with the film.
"""

from __future__ import annotations

import contextvars
import queue
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TypeAlias

import av

from longtake.config import MediaSettings
from longtake.cores import usable_cores
from longtake.events import note
from longtake.media import nvdec
from longtake.media.images import to_pixels
from longtake.media.packets import PacketTable
from longtake.media.plan import Run, plan, spans
from longtake.media.reader import Reader
from longtake.stopping import check_stop
from longtake.types import Pixels

Picture: TypeAlias = tuple[int, Pixels]
"""A position in the packet table, and its pixels."""

MANY = 64
"""Frames from which a GPU is used: opening its decoders costs more than a few frames do."""
PENDING_BYTES = 24 * 2**20
"""Decoded pixels of one worker that may wait for the consumer."""


@dataclass(frozen=True)
class FrameShape:
    """Size and orientation of the pictures to return."""

    width: int | None = None
    """Maximum width; smaller films are not enlarged."""
    rotation: int = 0
    aspect: float = 1.0
    frame_bytes: int = 0
    """Size of one picture, for the memory limit."""


def workers_for(limits: MediaSettings, *, gpu: bool = False) -> int:
    """Return the number of decoding threads: as configured, or one per usable core, at most 8."""
    if limits.workers:
        return limits.workers
    if gpu:
        return nvdec.SESSIONS
    return min(usable_cores(), 8)


def fetch(
    path: Path,
    table: PacketTable,
    positions: Iterable[int],
    shape: FrameShape,
    limits: MediaSettings,
) -> Iterator[Picture]:
    """Yield positions and their pixels, by time; frames that cannot be decoded are left out."""
    positions = list(positions)
    gpu = len(positions) >= MANY and nvdec.on_gpu(limits)
    cores = workers_for(limits, gpu=gpu)
    waiting = max(2, PENDING_BYTES // max(1, shape.frame_bytes))
    jobs = spans(plan(table, positions), frames=min(waiting, 16))
    workers = min(cores, len(jobs))
    readers = _Readers(path, table, limits, gpu=gpu)
    try:
        if workers <= 1:
            # with nothing to share between workers, FFmpeg's own threads use the cores
            reader = readers.open(threads=1 if gpu else cores)
            for run in chain.from_iterable(jobs):
                yield from _pictures(reader, run, shape, waiting)
        else:
            yield from _in_parallel(readers, jobs, shape, workers=workers, waiting=waiting)
    finally:
        readers.close()
    if readers.fell_back:
        note("decoded on the CPU", film=str(path), reason="the GPU does not know this codec")


class _Readers:
    """The readers of one film, one per worker."""

    def __init__(self, path: Path, table: PacketTable, limits: MediaSettings, *, gpu: bool) -> None:
        self._path, self._table, self._limits, self._gpu = path, table, limits, gpu
        self._opened: list[Reader] = []

    def open(self, threads: int = 1) -> Reader:
        reader = Reader(self._path, self._table, self._limits, threads=threads, gpu=self._gpu)
        self._opened.append(reader)
        return reader

    @property
    def fell_back(self) -> bool:
        """Whether frames came from the CPU although the GPU was asked for."""
        return any(reader.fell_back for reader in self._opened)

    def close(self) -> None:
        for reader in self._opened:
            reader.close()


def _pictures(reader: Reader, run: Run, shape: FrameShape, waiting: int) -> Iterator[Picture]:
    """Yield the wanted pictures of one run as pixels."""

    def convert(skip: bool) -> Iterator[Picture]:
        for position, frame in reader.frames(run, skip=skip):
            try:
                pixels = to_pixels(
                    frame, width=shape.width, rotation=shape.rotation, aspect=shape.aspect
                )
            except av.error.FFmpegError:
                # decoded from damaged data, with a format or a size that cannot be converted:
                # left out, as a picture that cannot be decoded is
                continue
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
    readers: _Readers, jobs: list[list[Run]], shape: FrameShape, *, workers: int, waiting: int
) -> Iterator[Picture]:
    stop = threading.Event()
    local = threading.local()
    ahead = threading.Semaphore(workers + 1)  # limits the spans begun but not yet consumed

    def work(job: list[Run], channel: _Channel) -> None:
        try:
            if not hasattr(local, "reader"):
                local.reader = readers.open()
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
