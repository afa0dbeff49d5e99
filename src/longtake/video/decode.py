"""Decodes frames: a reader per thread, workers in parallel, pixels as they are displayed."""

from __future__ import annotations

import contextvars
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import TypeAlias

import av
import numpy as np
from av.container import InputContainer
from av.video.codeccontext import VideoCodecContext
from av.video.frame import VideoFrame
from av.video.reformatter import Interpolation
from av.video.stream import VideoStream

from longtake._util.cancellation import check_stop
from longtake._util.process_pool import usable_cores
from longtake.config import MediaSettings
from longtake.tracing.events import note
from longtake.types import Pixels
from longtake.video import nvdec
from longtake.video.container import (
    discard_others,
    open_container,
    packets_of,
    readable_packets,
    video_stream,
)
from longtake.video.packets import UNKNOWN, DecodeRun, PacketTable, plan, spans
from longtake.video.remote import RemotePath
from longtake.video.tone import is_hdr, tone_mapped


@dataclass(frozen=True)
class FrameShape:
    """Size and orientation of the pictures to return."""

    width: int | None = None
    """Maximum width; smaller films are not enlarged."""
    rotation: int = 0
    aspect: float = 1.0
    frame_bytes: int = 0
    """Size of one picture, for the memory limit."""


def to_pixels(frame: VideoFrame, shape: FrameShape) -> Pixels:
    """Convert a frame to RGB as it is displayed: upright, with square pixels, within the width.

    Of interlaced frames one field is shown, and HDR is mapped to what ordinary screens show.
    """
    quarter = shape.rotation // 90 % 4
    square_width = frame.width * shape.aspect
    # scaling comes before turning, so a limit on the upright width may apply to the stored height
    upright_width = frame.height if quarter % 2 else square_width
    scale = min(1.0, shape.width / upright_width) if shape.width else 1.0
    rgb = _scaled(frame, max(1, round(square_width * scale)), max(1, round(frame.height * scale)))
    if quarter == 0:
        return rgb
    # FFmpeg counts the rotation anticlockwise, as rot90 does
    return np.ascontiguousarray(np.rot90(rgb, quarter))


def _scaled(frame: VideoFrame, width: int, height: int) -> Pixels:
    hdr = is_hdr(frame.color_trc)
    if nvdec.is_on_gpu(frame):
        rgb = nvdec.to_pixels(frame, width=width, height=height)
        return tone_mapped(rgb.astype(np.uint16) * 257, frame.color_trc) if hdr else rgb
    source = _one_field(frame) if frame.interlaced_frame else frame
    form = "rgb48le" if hdr else "rgb24"
    scaled = source.reformat(width, height, format=form, interpolation=Interpolation.AREA)
    pixels = scaled.to_ndarray()
    return tone_mapped(pixels, frame.color_trc) if hdr else pixels  # type: ignore[arg-type, return-value]


def _one_field(frame: VideoFrame) -> VideoFrame:
    """The upper field, half as high: the two show moments that are a fiftieth of a second apart."""
    graph = av.filter.Graph()
    source = graph.add_buffer(
        width=frame.width, height=frame.height, format=frame.format, time_base=Fraction(1)
    )
    field = graph.add("field", "type=top")
    sink = graph.add("buffersink")
    source.link_to(field)
    field.link_to(sink)
    graph.configure()
    graph.push(frame)
    return graph.pull()  # type: ignore[return-value]


def display_size(width: int, height: int, rotation: int, aspect: float) -> tuple[int, int]:
    """Return width and height as displayed."""
    # an absurd aspect ratio must not leave a picture without pixels
    square_width = max(1, round(width * aspect))
    return (height, square_width) if rotation // 90 % 2 else (square_width, height)


Packet: TypeAlias = "av.Packet[VideoStream]"

SKIPPING = frozenset({"h264", "hevc", "mpeg1video", "mpeg2video", "mpeg4"})
"""Decoders that respect ``skip_frame`` per packet; others read it once, when opened."""


class VideoReader:
    """A decoder for one thread; it tracks its position, so that neighbouring runs need no seek."""

    def __init__(
        self,
        path: Path,
        table: PacketTable,
        limits: MediaSettings,
        *,
        threads: int = 1,
        gpu: bool = False,
    ) -> None:
        self._path, self._table, self._limits = path, table, limits
        self._threads, self._gpu = threads, gpu
        self.fell_back = False
        """Whether the CPU decoded although the GPU was asked for."""
        self._open = ExitStack()
        self._container: InputContainer | None = None
        self._stream: VideoStream
        self._packets: Iterator[Packet]
        self._next: int
        self._rewind()

    def close(self) -> None:
        """Close the file."""
        self._open.close()

    def frames(self, run: DecodeRun, *, skip: bool) -> Iterator[tuple[int, VideoFrame]]:
        """Yield wanted positions and their pictures by time; what cannot be decoded is left out.

        ``skip`` avoids decoding unwanted pictures that no other picture depends on.
        """
        self._go_to(run.first)
        context = self._stream.codec_context  # after the seek, which may reopen the file
        # frames that are identified by counting must all be counted
        skip = skip and self._table.timed and context.name in SKIPPING
        missing = {int(self._table.pts[position]): position for position in run.wanted}
        wanted = set(run.wanted)
        shown = 0
        for position, packet in self._read(run):
            context.skip_frame = "NONREF" if skip and position not in wanted else "DEFAULT"
            for frame in decode_packet(context, packet):
                if self._table.timed and frame.pts is not None:
                    stamp = frame.pts - self._table.origin
                else:
                    stamp = shown  # without usable time stamps, the pts of the table are a count
                shown += 1
                if stamp in missing:
                    self.fell_back |= self._gpu and not nvdec.is_on_gpu(frame)
                    yield missing.pop(stamp), frame
            if not missing:
                break
        context.flush_buffers()

    def _read(self, run: DecodeRun) -> Iterator[tuple[int, Packet | None]]:
        """Yield the packets of a run with their positions, then ``None`` to drain the decoder."""
        # if positions only count shown frames, the packet of frame n may be stored after the nth
        last = run.last if self._table.timed else run.last + 16
        for packet in readable_packets(self._packets):
            check_stop()
            position, self._next = self._next, self._next + 1
            if position >= run.first:
                yield position, packet
            if position == last:
                break
        yield -1, None

    def _go_to(self, first: int) -> None:
        """Make ``first`` one of the next packets."""
        if self._container is None:
            self._rewind()  # an earlier rewind failed; this one raises, or works
        # reading so many packets is cheaper than a seek; of a film elsewhere, they are not fetched
        near = 0 if isinstance(self._path, RemotePath) else 300
        if not first - near <= self._next <= first:
            self._seek(first)

    def _seek(self, first: int) -> None:
        """Make ``first`` the next packet; if a seek overshoots, seek further back and read on."""
        table = self._table
        assert self._container is not None
        second = max(1, round(1 / table.tick))
        stamp = int(table.dts[first] if table.dts[first] != UNKNOWN else table.pts[first])
        # seeking in MPEG-TS often overshoots
        back = second if self._container.format.name == "mpegts" else 0
        while table.timed and stamp - back > table.pts[0]:
            target = stamp - back + table.origin
            try:
                self._container.seek(target, stream=self._stream, backward=True)
            except av.error.FFmpegError:
                break
            self._packets = packets_of(self._container, self._stream)
            if self._advance_to(first):
                return
            back = back * 2 or second
        self._rewind()

    def _advance_to(self, first: int) -> bool:
        """Read up to just before ``first``; False if the seek landed after it."""
        table = self._table
        goal = (int(table.pts[first]), int(table.dts[first]))
        for packet in readable_packets(self._packets):
            check_stop()
            pts = UNKNOWN if packet.pts is None else packet.pts - table.origin
            dts = UNKNOWN if packet.dts is None else packet.dts - table.origin
            if (pts, dts) == goal:
                self._next = first
                self._packets = chain([packet], self._packets)  # put it back
                return True
            if UNKNOWN not in (dts, goal[1]) and dts > goal[1]:
                return False
        return False

    def _rewind(self) -> None:
        """Reopen the file: unlike seeking to zero, this works for every format."""
        self._open.close()
        # if opening fails, nothing may use the closed container again: FFmpeg would crash
        self._container = None
        hardware = nvdec.hardware() if self._gpu else None
        opened = open_container(self._path, self._limits, hardware)
        container = self._open.enter_context(opened)
        self._stream = video_stream(self._path, container)
        discard_others(container, self._stream)
        context = self._stream.codec_context
        context.options = {"max_pixels": str(self._limits.max_pixels)}
        context.thread_count = self._threads
        context.thread_type = "AUTO" if self._threads > 1 else "NONE"
        self._packets = packets_of(container, self._stream)
        self._next = 0
        self._container = container
        self._show_first_packet()

    def _show_first_packet(self) -> None:
        """Let the decoder see the first packet, and read on as if it had not.

        It alone may hold what every picture needs: a palette, or the version of an encoder whose
        faults the decoder allows for. Without it, films in 4:4:4 by x264 before build 151 turn
        green after a seek.
        """
        first = next(readable_packets(self._packets), None)
        if first is not None:
            decode_packet(self._stream.codec_context, first)
            self._stream.codec_context.flush_buffers()
            self._packets = chain([first], self._packets)  # put it back


def decode_packet(context: VideoCodecContext, packet: Packet | None) -> list[VideoFrame]:
    """Decode one packet; a damaged one yields no frame."""
    try:
        return context.decode(packet)
    except av.error.FFmpegError:
        return []  # decoding recovers at the next keyframe


Picture: TypeAlias = tuple[int, Pixels]
"""A position in the packet table, and its pixels."""

PENDING_BYTES = 24 * 2**20
"""Decoded pixels of one worker that may wait for the consumer."""


def fetch(
    path: Path,
    table: PacketTable,
    positions: Iterable[int],
    shape: FrameShape,
    limits: MediaSettings,
) -> Iterator[Picture]:
    """Yield positions and their pixels, by time; frames that cannot be decoded are left out."""
    positions = list(positions)
    # opening the decoders of a GPU costs more than a few frames do
    gpu = len(positions) >= 64 and nvdec.on_gpu(limits)
    cores = limits.workers or (nvdec.SESSIONS if gpu else min(usable_cores(), 8))
    waiting = max(2, PENDING_BYTES // max(1, shape.frame_bytes))
    runs = plan(table, positions)
    jobs = spans(runs, frames=min(waiting, 16))
    # workers collect what they decode, so a run with too many pictures for that is not shared out
    workers = min(cores, len(jobs)) if all(len(run.wanted) <= waiting for run in runs) else 1
    opened: list[VideoReader] = []

    def open_reader(threads: int = 1) -> VideoReader:
        reader = VideoReader(path, table, limits, threads=threads, gpu=gpu)
        opened.append(reader)
        return reader

    try:
        if workers <= 1:
            # with nothing to share between workers, FFmpeg's own threads use the cores
            reader = open_reader(1 if gpu else cores)
            for run in runs:
                yield from _pictures(reader, run, shape, waiting)
        else:
            yield from _in_parallel(open_reader, jobs, shape, workers=workers, waiting=waiting)
    finally:
        for each in opened:
            each.close()
    if any(each.fell_back for each in opened):
        note("decoded on the CPU", film=str(path), reason="the GPU does not know this codec")


def _pictures(
    reader: VideoReader, run: DecodeRun, shape: FrameShape, waiting: int
) -> Iterator[Picture]:
    """Yield the wanted pictures of one run as pixels."""

    def convert(skip: bool) -> Iterator[Picture]:
        for position, frame in reader.frames(run, skip=skip):
            try:
                pixels = to_pixels(frame, shape)
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


def _in_parallel(
    open_reader: Callable[[], VideoReader],
    jobs: list[list[DecodeRun]],
    shape: FrameShape,
    *,
    workers: int,
    waiting: int,
) -> Iterator[Picture]:
    local = threading.local()

    def work(job: list[DecodeRun]) -> list[Picture]:
        if not hasattr(local, "reader"):
            local.reader = open_reader()
        return [each for run in job for each in _pictures(local.reader, run, shape, waiting)]

    pool = ThreadPoolExecutor(workers, thread_name_prefix="longtake-decode")
    pending: deque[Future[list[Picture]]] = deque()
    try:
        for job in jobs:
            # the workers notice when the consumer's work is cancelled
            pending.append(pool.submit(contextvars.copy_context().run, work, job))
            # spans that are decoded and not yet consumed take memory
            if len(pending) > workers:
                yield from pending.popleft().result()
        while pending:
            yield from pending.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
