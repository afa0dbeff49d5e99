"""The packet table: when each frame is shown and from where it can be decoded.

One pass of demuxing, no decoding, about two CPU-seconds for an hour of film. Headers lie (truncated files,
wrong durations, missing frame rates); packets do not.

::

    position   0    1    2    3    4    5    6        decode order, as stored
    key        K    .    .    .    K    .    .
    pts        0    3    1    2    6    4    5        5 and 4 are shown before their keyframe 6: they
                                                      lean on the group before, so entry(5) = 0, not 4
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import av
import numpy as np
from av.container import InputContainer
from av.stream import Discard
from av.video.stream import VideoStream
from numpy.typing import NDArray

from longtake.errors import MediaError

UNKNOWN = np.iinfo(np.int64).min
"""Stands for a missing time stamp."""


@dataclass(frozen=True, eq=False)
class PacketTable:
    """Every packet of the picture, in decode order, in ticks of ``tick`` seconds from the film's start."""

    pts: NDArray[np.int64]
    dts: NDArray[np.int64]
    key: NDArray[np.bool_]
    shown: NDArray[np.bool_]
    """False for packets that yield no picture: cut away by an edit list, or a hidden reference."""
    tick: float
    origin: int
    """What the container's own clock shows at the film's start, in ticks."""
    duration: float
    """Seconds from the film's start to the end of its last frame."""
    timed: bool = True
    """False when time stamps are unusable and frames are told apart by their order alone."""

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """Positions of the frames that can be shown, by time."""
        first_key = int(np.argmax(self.key))
        usable = self.shown.copy()
        usable[:first_key] = False  # nothing to decode these from: the recording began in mid-group
        usable &= self.pts >= self.pts[first_key]
        positions = np.flatnonzero(usable)
        return positions[np.argsort(self.pts[positions], kind="stable")]

    @cached_property
    def times(self) -> NDArray[np.float64]:
        """When each frame comes on screen, ascending, in seconds from the film's start."""
        return np.asarray(self.pts[self.order] * self.tick, dtype=np.float64)

    @cached_property
    def keys(self) -> NDArray[np.int64]:
        """Positions of the packets at which decoding can begin."""
        return np.flatnonzero(self.key)

    def __len__(self) -> int:
        return len(self.order)

    def on_screen(self, times: Iterable[float]) -> NDArray[np.int64]:
        """For each time the position of the frame on screen then, the first frame before it begins."""
        asked = np.asarray(list(times), dtype=np.float64)
        # a little slack: 0.1 s written in binary must still find the frame stamped 0.1
        index = np.searchsorted(self.times, asked + 1e-6, side="right") - 1
        return self.order[np.clip(index, 0, len(self.order) - 1)]

    def nearest_keys(self, times: Iterable[float]) -> NDArray[np.int64]:
        """For each time the position of the nearest keyframe."""
        shown_keys = self.keys[self.shown[self.keys]]
        key_times = self.pts[shown_keys] * self.tick
        asked = np.asarray(list(times), dtype=np.float64)
        right = (
            np.clip(np.searchsorted(key_times, asked), 1, len(key_times) - 1)
            if len(key_times) > 1
            else 0
        )
        left = right - 1 if len(key_times) > 1 else 0
        closer_left = asked - key_times[left] <= key_times[right] - asked
        return np.asarray(shown_keys[np.where(closer_left, left, right)])

    def entry(self, position: int) -> int:
        """Where decoding must begin to see the frame at ``position``."""
        candidate = int(np.searchsorted(self.keys, position, side="right")) - 1
        while candidate > 0 and self.pts[self.keys[candidate]] > self.pts[position]:
            candidate -= 1
        return int(self.keys[max(candidate, 0)])


def read_packets(path: Path, container: InputContainer, stream: VideoStream) -> PacketTable:
    """Demux the whole file once."""
    for other in container.streams:
        if other.index != stream.index:
            other.discard = Discard.all
    vp8 = stream.codec_context.name == "vp8"
    rows: list[tuple[int, int, bool, bool]] = []
    last_duration = 0
    try:
        for packet in container.demux(stream):
            if packet.size == 0:
                continue  # the flush packet at the end
            # a VP8 file keeps hidden reference frames as packets of their own; bit 4 says which
            hidden = vp8 and not memoryview(packet)[0] >> 4 & 1
            rows.append(
                (
                    UNKNOWN if packet.pts is None else packet.pts,
                    UNKNOWN if packet.dts is None else packet.dts,
                    packet.is_keyframe,
                    not (packet.is_discard or hidden),
                )
            )
            last_duration = packet.duration or last_duration
    except av.error.FFmpegError:
        pass  # a cut-off file: what was read until here is the film
    if not rows:
        raise MediaError(path, "truncated", "has a video stream but not one frame in it")
    return _table(rows, container, stream, last_duration)


def _origin(
    container: InputContainer, stream: VideoStream, rows: Sequence[tuple[int, int, bool, bool]]
) -> int:
    """The film begins with its first picture or its first sound, whichever is earlier."""
    first = min((pts for pts, _, _, shown in rows if shown and pts != UNKNOWN), default=0)
    if container.format.name == "avi" or stream.time_base is None:
        return first  # AVI knows no offsets; its first stamp is the decoder's delay
    heard = [
        s.start_time * s.time_base
        for s in container.streams.audio
        if s.start_time is not None and s.time_base
    ]
    return min(first, *(round(start / stream.time_base) for start in heard)) if heard else first


def _table(
    rows: Sequence[tuple[int, int, bool, bool]],
    container: InputContainer,
    stream: VideoStream,
    last_duration: int,
) -> PacketTable:
    pts, dts = (np.array([row[i] for row in rows], dtype=np.int64) for i in (0, 1))
    key, shown = (np.array([row[i] for row in rows], dtype=np.bool_) for i in (2, 3))
    if not key.any():
        key[0] = True
    rate = stream.average_rate or stream.guessed_rate or stream.base_rate
    repeated = len(np.unique(pts[shown])) < 0.9 * shown.sum()
    if (
        container.format.name == "mpeg"
        or (pts == UNKNOWN).any()
        or repeated
        or stream.time_base is None
    ):
        # AVI and raw streams with B-frames, and program streams, which stamp only some frames and leave the
        # rest to be guessed, sometimes wrongly: their order is known, and the nominal rate
        tick = float(1 / rate) if rate else 0.04
        order = np.arange(len(rows), dtype=np.int64)
        whole = np.zeros(len(rows), dtype=np.bool_)
        whole[0] = True
        return PacketTable(
            order, dts, whole, np.ones_like(key), tick, 0, len(rows) * tick, timed=False
        )
    tick, origin = float(stream.time_base), _origin(container, stream, rows)
    usual = round(1 / (float(rate) * tick)) if rate else 1
    end = int(pts[shown].max()) + (last_duration or usual)
    return PacketTable(
        pts - origin,
        np.where(dts == UNKNOWN, UNKNOWN, dts - origin),
        key,
        shown,
        tick,
        origin,
        (end - origin) * tick,
    )
