"""The packet table: when each frame is shown and where its decoding must begin.

It takes one pass of demuxing without decoding, about two CPU seconds per hour of film. Headers can
be wrong (truncated files, wrong durations, missing frame rates); packets are not.

::

    position   0    1    2    3    4    5    6        decode order, as stored
    key        K    .    .    .    K    .    .
    pts        0    3    1    2    6    4    5

The packets at positions 5 and 6 are shown (pts 4 and 5) before the keyframe at position 4 (pts 6).
They depend on the group before, so entry(5) is 0 and not 4.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

import numpy as np
from av.container import InputContainer
from av.video.stream import VideoStream
from numpy.typing import NDArray

from longtake._util.cancellation import check_stop
from longtake.errors import MediaError
from longtake.video.container import discard_others, packets_of, readable_packets

Row: TypeAlias = tuple[int, int, bool, bool]
"""Presentation time, decoding time, whether a keyframe, whether shown."""

UNKNOWN = np.iinfo(np.int64).min
"""Marks a missing time stamp."""
LONGEST = 30 * 24 * 3600.0
"""Upper bound on the length of a film in seconds; time stamps that claim more are wrong."""


@dataclass(frozen=True, eq=False)
class PacketTable:
    """Every video packet in decode order; time stamps count ticks from the start of the film."""

    pts: NDArray[np.int64]
    dts: NDArray[np.int64]
    key: NDArray[np.bool_]
    shown: NDArray[np.bool_]
    """False for packets without a picture: cut by an edit list, or hidden reference frames."""
    tick: float
    """Seconds per tick."""
    origin: int
    """The container's time stamp of the start of the film, in ticks."""
    duration: float
    """Seconds from the start of the film to the end of its last frame."""
    timed: bool = True
    """False if time stamps are unusable, so that frames are identified by their order alone."""

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """Positions of the frames that can be shown, in time order."""
        first_key = int(np.argmax(self.key))
        usable = self.shown.copy()
        usable[:first_key] = False  # the recording began in mid-group; these cannot be decoded
        usable &= self.pts >= self.pts[first_key]
        positions = np.flatnonzero(usable)
        return positions[np.argsort(self.pts[positions], kind="stable")]

    @cached_property
    def times(self) -> NDArray[np.float64]:
        """When each frame appears on screen, ascending, in seconds from the start of the film."""
        return np.asarray(self.pts[self.order] * self.tick, dtype=np.float64)

    @cached_property
    def keys(self) -> NDArray[np.int64]:
        """Positions of the keyframes, where decoding can begin."""
        return np.flatnonzero(self.key)

    def __len__(self) -> int:
        return len(self.order)

    def on_screen(self, times: Iterable[float]) -> NDArray[np.int64]:
        """Return the position of the frame on screen at each time; before the start, the first."""
        wanted = np.asarray(list(times), dtype=np.float64)
        # a little slack: 0.1 in binary must still find the frame stamped 0.1
        index = np.searchsorted(self.times, wanted + 1e-6, side="right") - 1
        return self.order[np.clip(index, 0, len(self.order) - 1)]

    def entry(self, position: int) -> int:
        """Return the position where decoding must begin to show the frame at ``position``."""
        candidate = int(np.searchsorted(self.keys, position, side="right")) - 1
        # a frame shown before its keyframe depends on the group before
        while candidate > 0 and self.pts[self.keys[candidate]] > self.pts[position]:
            candidate -= 1
        return int(self.keys[max(candidate, 0)])


def read_packets(path: Path, container: InputContainer, stream: VideoStream) -> PacketTable:
    """Read the packet table by demuxing the whole file."""
    discard_others(container, stream)
    vp8 = stream.codec_context.name == "vp8"
    rows: list[Row] = []
    last_duration = 0
    for packet in readable_packets(packets_of(container, stream)):
        check_stop()
        # VP8 stores hidden reference frames as separate packets; bit 4 marks shown frames
        hidden = vp8 and not memoryview(packet)[0] >> 4 & 1
        pts = UNKNOWN if packet.pts is None else packet.pts
        dts = UNKNOWN if packet.dts is None else packet.dts
        rows.append((pts, dts, packet.is_keyframe, not (packet.is_discard or hidden)))
        last_duration = packet.duration or last_duration
    if not rows:
        raise MediaError(path, "truncated", "has a video stream without a single frame")
    return _table(rows, container, stream, last_duration)


def read_sound(container: InputContainer) -> PacketTable:
    """The table of a file with sound only: one picture, for as long as there is sound."""
    stream = container.streams.audio[0]
    discard_others(container, stream)
    tick, begin, end = float(stream.time_base or 1), UNKNOWN, 0
    for packet in readable_packets(packets_of(container, stream)):
        check_stop()
        if packet.pts is not None:
            begin = packet.pts if begin == UNKNOWN else begin
            end = max(end, packet.pts + (packet.duration or 0))
    origin = max(begin, 0)
    seconds = (end - origin) * tick
    if not 0 < seconds <= LONGEST:
        seconds = min((container.duration or 0) / 1e6 or tick, LONGEST)
    zero, true = np.zeros(1, np.int64), np.ones(1, np.bool_)
    return PacketTable(zero, zero, true, true, tick, origin, seconds)


def _origin(container: InputContainer, stream: VideoStream, rows: Sequence[Row]) -> int:
    """Return when the film begins: with its first picture or its first sound."""
    first = min((pts for pts, _, _, shown in rows if shown and pts != UNKNOWN), default=0)
    if container.format.name == "avi" or stream.time_base is None:
        return first  # AVI has no offsets; its first time stamp is the delay of the decoder
    starts = [first]
    furthest = first - round(LONGEST / stream.time_base)
    for sound in container.streams.audio:
        if sound.start_time is not None and sound.time_base:
            start = round(sound.start_time * sound.time_base / stream.time_base)
            if start >= furthest:
                starts.append(start)
    return min(starts)


def _table(
    rows: Sequence[Row], container: InputContainer, stream: VideoStream, last_duration: int
) -> PacketTable:
    pts = np.array([row[0] for row in rows], dtype=np.int64)
    dts = np.array([row[1] for row in rows], dtype=np.int64)
    key = np.array([row[2] for row in rows], dtype=np.bool_)
    shown = np.array([row[3] for row in rows], dtype=np.bool_)
    if not key.any():
        key[0] = True
    rate = stream.average_rate or stream.guessed_rate or stream.base_rate
    # MPEG program streams stamp only some frames; the rest is guessed, sometimes wrongly
    guessed = container.format.name == "mpeg"
    # AVI and raw streams with B-frames have missing or repeated time stamps
    missing = (pts == UNKNOWN).any()
    repeated = len(np.unique(pts[shown])) < 0.9 * shown.sum()
    if guessed or missing or repeated or stream.time_base is None:
        return _untimed(dts, rate)
    tick, origin = float(stream.time_base), _origin(container, stream, rows)
    last = int(pts[shown].max(initial=origin))
    if (last - origin) * tick > LONGEST:
        return _untimed(dts, rate)
    length = _seconds_to_end(last - origin, last_duration, rate, tick)
    relative_dts = np.where(dts == UNKNOWN, UNKNOWN, dts - origin)
    table = PacketTable(pts - origin, relative_dts, key, shown, tick, origin, length)
    # damage can leave no frame that is both shown and decodable by its time stamp
    return table if len(table) else _untimed(dts, rate)


def _seconds_to_end(last: int, last_duration: int, rate: Fraction | None, tick: float) -> float:
    """Return the end of the last frame, which may claim any duration."""
    claimed = (last + last_duration) * tick
    if last_duration > 0 and claimed <= LONGEST:
        return claimed
    usual = 1 / float(rate) if rate else tick
    return last * tick + min(usual, LONGEST)


def _untimed(dts: NDArray[np.int64], rate: Fraction | None) -> PacketTable:
    """Build a table from the order of the frames and the nominal rate alone."""
    count = len(dts)
    # 25 frames a second, if nothing plausible is known
    tick = float(1 / rate) if rate and count <= LONGEST * rate else 0.04
    order = np.arange(count, dtype=np.int64)
    # frames are counted from the start of the file, so decoding always begins there
    key = np.zeros(count, dtype=np.bool_)
    key[0] = True
    shown = np.ones(count, dtype=np.bool_)
    return PacketTable(order, dts, key, shown, tick, 0, count * tick, timed=False)


@dataclass(frozen=True)
class DecodeRun:
    """Packets ``first`` to ``last`` in decode order, and the wanted ones among them by time."""

    first: int
    last: int
    wanted: tuple[int, ...]


def plan(table: PacketTable, wanted: Iterable[int]) -> list[DecodeRun]:
    """Return the fewest packets that show every wanted position, as runs in time order."""
    drafts: list[tuple[int, int, list[int]]] = []
    for position in sorted(set(wanted), key=lambda p: (int(table.pts[p]), p)):
        entry = table.entry(position)
        # a frame whose decoding begins inside the last run extends it
        if drafts and entry <= drafts[-1][1]:
            first, last, members = drafts[-1]
            members.append(position)
            drafts[-1] = (min(first, entry), max(last, position), members)
        else:
            drafts.append((entry, position, [position]))
    return [DecodeRun(first, last, tuple(members)) for first, last, members in drafts]


def spans(runs: list[DecodeRun], *, frames: int) -> list[list[DecodeRun]]:
    """Group neighbouring runs into spans of about ``frames`` wanted frames, one per worker."""
    groups: list[list[DecodeRun]] = []
    held = frames
    for run in runs:
        if held >= frames:
            groups.append([])
            held = 0
        groups[-1].append(run)
        held += len(run.wanted)
    return groups
