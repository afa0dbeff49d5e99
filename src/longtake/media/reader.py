"""One open file that moves to a run of packets and decodes it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import TypeAlias

import av
from av.stream import Discard
from av.video.codeccontext import VideoCodecContext
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from longtake.config import MediaSettings
from longtake.media.container import open_container, video_stream
from longtake.media.packets import UNKNOWN, PacketTable
from longtake.media.plan import Run

Packet: TypeAlias = "av.Packet[VideoStream]"

READ_THROUGH = 300
"""Packets that are cheaper to read past than to seek over."""
SKIPPING = frozenset({"h264", "hevc", "mpeg1video", "mpeg2video", "mpeg4"})
"""Decoders that heed ``skip_frame`` for each packet; others read it once, when they are opened."""
REORDER = 16
"""Most frames that any codec stores ahead of the one to be shown next."""


class Reader:
    """A decoder for one thread; it remembers which packet comes next, so that neighbours need no seek."""

    def __init__(
        self, path: Path, table: PacketTable, limits: MediaSettings, threads: int = 1
    ) -> None:
        self._path, self._table, self._limits, self._threads = path, table, limits, threads
        self._open = ExitStack()
        self._packets: Iterator[Packet]
        self._next: int
        self._rewind()

    def close(self) -> None:
        """Let go of the file."""
        self._open.close()

    def frames(self, run: Run, *, skip: bool) -> Iterator[tuple[int, VideoFrame]]:
        """Wanted positions and their pictures, by time; a picture that cannot be decoded is left out.

        ``skip`` leaves unwanted pictures undecoded where no other picture leans on them.
        """
        # frames that are told apart by counting must all be counted
        skip = skip and self._table.timed and self._stream.codec_context.name in SKIPPING
        context = self._stream.codec_context
        missing = {int(self._table.pts[position]): position for position in run.wanted}
        wanted = set(run.wanted)
        shown = 0
        for position, packet in self._read(run):
            context.skip_frame = "NONREF" if skip and position not in wanted else "DEFAULT"
            for frame in _decode(context, packet):
                # without usable time stamps a frame's number is all there is
                stamp = (
                    frame.pts - self._table.origin
                    if self._table.timed and frame.pts is not None
                    else shown
                )
                shown += 1
                if stamp in missing:
                    yield missing.pop(stamp), frame
            if not missing:
                break
        context.flush_buffers()

    def _read(self, run: Run) -> Iterator[tuple[int, Packet | None]]:
        """The packets of a run with their positions, then ``None`` to drain the decoder."""
        if not run.first - READ_THROUGH <= self._next <= run.first:
            self._seek(run.first)
        # where a position is only a count of shown frames, the packets of frame n may be stored after the nth
        last = run.last if self._table.timed else run.last + REORDER
        for packet in self._packets:
            if packet.size == 0:
                break
            position, self._next = self._next, self._next + 1
            if position >= run.first:
                yield position, packet
            if position == last:
                break
        yield -1, None

    def _seek(self, first: int) -> None:
        """Make ``first`` the next packet; where a container seeks badly, land earlier and read up to it."""
        table = self._table
        second = round(1 / table.tick)
        stamp = int(table.dts[first] if table.dts[first] != UNKNOWN else table.pts[first])
        back = second if self._container.format.name == "mpegts" else 0
        while table.timed and stamp - back > table.pts[0]:
            try:
                self._container.seek(
                    stamp - back + table.origin, stream=self._stream, backward=True
                )
            except av.error.FFmpegError:
                break
            self._packets = self._container.demux(self._stream)
            if self._advance_to(first):
                return
            back = back * 2 or second
        self._rewind()

    def _advance_to(self, first: int) -> bool:
        """Read on until just before ``first``; False when the seek landed behind it."""
        table = self._table
        goal = (int(table.pts[first]), int(table.dts[first]))
        for packet in self._packets:
            if packet.size == 0:
                return False
            pts, dts = (
                UNKNOWN if t is None else t - table.origin for t in (packet.pts, packet.dts)
            )
            if (pts, dts) == goal:
                self._next = first
                self._packets = chain([packet], self._packets)
                return True
            if UNKNOWN not in (dts, goal[1]) and dts > goal[1]:
                return False
        return False

    def _rewind(self) -> None:
        """Open the file anew: unlike seeking to zero, this works for every format."""
        self._open.close()
        self._container = self._open.enter_context(open_container(self._path, self._limits))
        self._stream = video_stream(self._path, self._container)
        for other in self._container.streams:
            if other.index != self._stream.index:
                other.discard = Discard.all
        context = self._stream.codec_context
        context.options = {"max_pixels": str(self._limits.max_pixels)}
        context.thread_count = self._threads
        context.thread_type = "AUTO" if self._threads > 1 else "NONE"
        self._packets = self._container.demux(self._stream)
        self._next = 0


def _decode(context: VideoCodecContext, packet: Packet | None) -> list[VideoFrame]:
    try:
        return context.decode(packet)
    except (av.error.InvalidDataError, av.error.EOFError):
        return []  # a damaged packet shows nothing; the next keyframe recovers
