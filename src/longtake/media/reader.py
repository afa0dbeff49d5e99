"""Seeks to runs of packets in one open file and decodes them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import TypeAlias

import av
from av.container import InputContainer
from av.video.codeccontext import VideoCodecContext
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from longtake.config import MediaSettings
from longtake.media import nvdec
from longtake.media.container import (
    discard_others,
    open_container,
    packets_of,
    readable_packets,
    video_stream,
)
from longtake.media.packets import UNKNOWN, PacketTable
from longtake.media.plan import Run
from longtake.stopping import check_stop

Packet: TypeAlias = "av.Packet[VideoStream]"

READ_THROUGH = 300
"""Number of packets that is cheaper to read than to seek over."""
SKIPPING = frozenset({"h264", "hevc", "mpeg1video", "mpeg2video", "mpeg4"})
"""Decoders that respect ``skip_frame`` per packet; others read it once, when opened."""
REORDER = 16
"""Maximum number of frames that a codec stores ahead of the next one to show."""


class Reader:
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

    def frames(self, run: Run, *, skip: bool) -> Iterator[tuple[int, VideoFrame]]:
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

    def _read(self, run: Run) -> Iterator[tuple[int, Packet | None]]:
        """Yield the packets of a run with their positions, then ``None`` to drain the decoder."""
        # if positions only count shown frames, the packet of frame n may be stored after the nth
        last = run.last if self._table.timed else run.last + REORDER
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
        if not first - READ_THROUGH <= self._next <= first:
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


def decode_packet(context: VideoCodecContext, packet: Packet | None) -> list[VideoFrame]:
    """Decode one packet; a damaged one yields no frame."""
    try:
        return context.decode(packet)
    except av.error.FFmpegError:
        return []  # decoding recovers at the next keyframe
