"""Cuts a stretch of H.264 by copying what lies between keyframes and encoding only the edges.

::

    film    K . . . . . K . . . . . K . . . . . K . . . .
    clip          └─────┴───────────────────────┴───┘
                   head          copied          tail

The copied part begins and ends with a picture that needs no other (IDR), so nothing in it refers to
what was left out. The edges are encoded as the film was (:mod:`longtake.media.twin`). Where that
cannot be done, nothing is written, and the caller encodes the whole stretch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TypeAlias

import av
import numpy as np
from av.container import OutputContainer
from av.video.frame import PictureType
from av.video.stream import VideoStream
from numpy.typing import NDArray

from longtake.errors import MediaError
from longtake.media.packets import UNKNOWN, PacketTable
from longtake.media.plan import Run, plan
from longtake.media.reader import Reader
from longtake.media.twin import IDR, PPS, SPS, Header, kind_of, read_header, twin, units, with_sizes
from longtake.media.video import Video
from longtake.media.writer import add_sound, mux_sound
from longtake.types import Segment

Ticks: TypeAlias = NDArray[np.int64]

FORMATS = ("yuv420p", "yuvj420p")
"""Pixel formats of the films that are spliced; others are rare and may not play everywhere."""
LEAST_COPIED = 0.5
"""Share of the frames that must be copied for splicing to be worth its checks."""
FINEST = 0.0001
"""Seconds of a tick in clips, at most."""
CLOSE = 0.0015
"""Seconds by which a frame of the clip may miss its time: rounding to milliseconds."""


@dataclass(frozen=True)
class Piece:
    """A packet of the clip: its data, or ``None`` for one that is copied from the film."""

    position: int
    """Of its picture, in the packet table."""
    is_key: bool
    data: bytes | None = None


@dataclass(frozen=True)
class Parts:
    """Positions of the pictures of a clip; those of the edges are by time."""

    head: list[int]
    copied: range
    tail: list[int]

    def all(self) -> list[int]:
        """Every position, by time as far as the edges go."""
        return [*self.head, *self.copied, *self.tail]


class CannotSpliceError(Exception):
    """The stretch has to be encoded as a whole."""


def splice(
    video: Video, stretch: Segment, path: Path, sound: NDArray[np.float32] | None, rate: int
) -> bool:
    """Write a stretch to an MP4 file; False if it cannot be spliced, whatever was written."""
    info = video.info
    suits = info.codec == "h264" and video.table.timed and not info.rotation and info.aspect == 1
    if not suits:
        return False
    reader = Reader(video.path, video.table, video.limits)
    try:
        splicing = _Splicing(reader, video.table, stretch)
        splicing.write(path, sound, rate)
        splicing.check(Video(path, limits=video.limits))
    except (CannotSpliceError, MediaError, av.error.FFmpegError):
        return False  # what is wrong with the film itself, encoding all of it reports
    finally:
        reader.close()
    return True


class _Splicing:
    """One clip in the making."""

    def __init__(self, reader: Reader, table: PacketTable, stretch: Segment) -> None:
        self.reader, self.table = reader, table
        # some films count in whole frames, between which a clip may start
        self.split = math.ceil(table.tick / FINEST)
        self.tick = table.tick / self.split
        self.start = round(stretch.start / self.tick)
        header = read_header(reader.stream.codec_context.extradata)
        if header is None or reader.stream.codec_context.pix_fmt not in FORMATS:
            raise CannotSpliceError
        self.header: Header = header
        self.first = self._packet(0)
        self.parts = self._divide(stretch)

    def write(self, path: Path, sound: NDArray[np.float32] | None, rate: int) -> None:
        head, tail = self._encoded(self.parts.head), self._encoded(self.parts.tail)
        copied = [Piece(each, bool(self.table.key[each])) for each in self.parts.copied]
        pieces = [*head, *copied, *tail]
        with av.open(str(path), "w") as file:
            stream = file.add_stream_from_template(self.reader.stream)
            assert isinstance(stream, VideoStream)
            stream.time_base = self._time_base()
            voice = add_sound(file, "aac", rate) if sound is not None else None
            self._mux(file, stream, pieces)
            if voice is not None and sound is not None:
                mux_sound(file, voice, sound, rate, 0.0)

    def check(self, clip: Video) -> None:
        """Raise unless the clip has every frame at its time and its joints can be decoded."""
        positions = sorted(self.parts.all(), key=lambda each: int(self.table.pts[each]))
        times = self._stamps(positions) * self.tick
        if len(times) != len(clip.table) or np.abs(times - clip.table.times).max() > CLOSE:
            raise CannotSpliceError
        lengths = (len(self.parts.head), len(self.parts.copied))
        joints = [0, lengths[0] - 1, lengths[0], sum(lengths) - 1, sum(lengths), len(times) - 1]
        inside = [each for each in joints if 0 <= each < len(times)]
        wanted = sorted({int(clip.table.order[each]) for each in inside})
        reader = Reader(clip.path, clip.table, clip.limits)
        try:
            runs = plan(clip.table, wanted)
            decoded = sum(len(list(reader.frames(run, skip=False))) for run in runs)
        finally:
            reader.close()
        if decoded != len(wanted):
            raise CannotSpliceError

    def _divide(self, stretch: Segment) -> Parts:
        """Find the keyframes between which packets are copied."""
        table = self.table
        (shown,) = table.on_screen([stretch.start])
        inside = table.order[(table.times > stretch.start) & (table.times < stretch.end)]
        positions = [int(shown), *(int(each) for each in inside if each != shown)]
        if len(positions) > 1 and self.split * table.pts[positions[1]] <= self.start:
            del positions[0]  # shown for less than a tick
        keys = [each for each in positions[1:] if table.key[each]]
        late = self.start - self.split * int(table.pts[positions[0]])
        if table.key[positions[0]] and late <= 1:
            keys.insert(0, positions[0])
        # two such pictures in a row would need different numbers: no part has a single one
        if keys and positions.index(keys[0]) == 1:
            del keys[0]
        key = next(filter(self._is_idr, keys), None)
        until = next(filter(self._is_idr, reversed(keys)), None)
        if key is None or until is None or until <= key or table.key[until - 1]:
            raise CannotSpliceError
        first, last = positions.index(key), positions.index(until)
        copied = range(key, until)
        if len(copied) < LEAST_COPIED * len(positions):
            raise CannotSpliceError
        # an edit list may hide packets, and damaged files may store them in any order
        if sorted(positions[first:last]) != list(copied) or UNKNOWN in table.pts[positions]:
            raise CannotSpliceError
        return Parts(positions[:first], copied, positions[last:])

    def _encoded(self, positions: Sequence[int]) -> list[Piece]:
        """The packets of an edge, in decode order."""
        if not positions:
            return []
        encoder = twin(self.reader.stream.codec_context, self.header, self.first)
        if encoder is None:
            raise CannotSpliceError
        packets = []
        count = 0
        for run in plan(self.table, positions):
            for _, frame in self.reader.frames(run, skip=False):
                if (frame.width, frame.height) != (encoder.width, encoder.height):
                    raise CannotSpliceError
                frame.pts, frame.time_base = count, encoder.time_base
                frame.pict_type = PictureType.NONE  # the encoder's choice, not the film's
                packets += encoder.encode(frame)
                count += 1
        packets += encoder.encode(None)
        if len(packets) != len(positions):
            raise CannotSpliceError  # a frame is damaged
        pieces = []
        for packet in packets:
            assert packet.pts is not None
            data = with_sizes(bytes(packet), self.header)
            pieces.append(Piece(positions[packet.pts], packet.is_keyframe, data))
        return pieces

    def _mux(self, file: OutputContainer, stream: VideoStream, pieces: Sequence[Piece]) -> None:
        shown = self._stamps([piece.position for piece in pieces])
        by_time = np.sort(shown)
        # decoding happens in order, and never after a picture is shown
        decoded = by_time - (by_time - shown).max()
        lasting = np.diff(by_time, append=by_time[-1:] + self._last_duration())
        duration = dict(zip(by_time.tolist(), lasting.tolist(), strict=True))
        copied = self._packets(self.parts.copied[0], self.parts.copied[-1])
        for piece, pts, dts in zip(pieces, shown.tolist(), decoded.tolist(), strict=True):
            data = piece.data
            if data is None:
                position, data = next(copied, (-1, b""))
                self._check_copied(position, piece, data)
            packet = av.Packet(data)
            packet.stream = stream
            packet.pts, packet.dts, packet.duration = pts, dts, duration[pts]
            packet.time_base = self._time_base()
            packet.is_keyframe = piece.is_key
            file.mux(packet)

    def _check_copied(self, position: int, piece: Piece, data: bytes) -> None:
        sets = [unit for unit in units(data, self.header) if kind_of(unit) in (SPS, PPS)]
        if position != piece.position or any(unit not in self.header.sets for unit in sets):
            raise CannotSpliceError  # the film changes its parameters on the way

    def _stamps(self, positions: Sequence[int]) -> Ticks:
        """When pictures are shown in the clip; what is on screen at its start is its first."""
        return np.maximum(self.split * self.table.pts[list(positions)] - self.start, 0)

    def _time_base(self) -> Fraction:
        return Fraction(self.reader.stream.time_base or 1) / self.split

    def _last_duration(self) -> int:
        steps = np.diff(np.sort(self.table.pts[list(self.parts.copied)]))
        return self.split * int(np.median(steps))

    def _is_idr(self, position: int) -> bool:
        kinds = [kind_of(unit) for unit in units(self._packet(position), self.header)]
        return IDR in kinds

    def _packet(self, position: int) -> bytes:
        for _, data in self._packets(position, position):
            return data
        raise CannotSpliceError  # the file is shorter than it was

    def _packets(self, first: int, last: int) -> Iterator[tuple[int, bytes]]:
        for position, packet in self.reader.packets(Run(first, last, ())):
            yield position, bytes(packet)
