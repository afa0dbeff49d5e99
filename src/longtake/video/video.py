"""The frames of a video file by time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TypeAlias

import av
import numpy as np
from av.audio.stream import AudioStream
from av.container import InputContainer
from av.subtitles.stream import SubtitleStream
from av.video.stream import VideoStream
from numpy.typing import NDArray

from longtake._util.timecode import clock
from longtake.config import MediaSettings
from longtake.errors import MediaError
from longtake.tracing.events import note
from longtake.types import Frame, Segment
from longtake.video.container import file_version, find_video, open_container, packets_of
from longtake.video.decode import FrameShape, Picture, decode_packet, display_size, fetch
from longtake.video.packets import PacketTable, read_packets, read_sound
from longtake.video.remote import film_path

Positions: TypeAlias = NDArray[np.int64]

STILL = 60.0
"""Seconds after which a frame that stays on screen counts as a still."""
BLANK = (320, 180)
"""Width and height of the black picture that stands for a film with sound only."""
NEIGHBOURS = 24
"""Number of frames and keyframes on each side that are tried in place of a damaged one."""


@dataclass(frozen=True)
class StreamInfo:
    """An audio or subtitle track."""

    index: int
    codec: str
    language: str = ""
    title: str = ""


@dataclass(frozen=True)
class VideoInfo:
    """What the headers of a file say, before any packet is read."""

    format: str
    codec: str
    """Of the pictures; empty if there is sound only."""
    width: int
    """As displayed: rotation and pixel aspect ratio are applied."""
    height: int
    fps: float
    """Nominal; each frame has its own time."""
    rotation: int
    aspect: float
    """Width of a pixel divided by its height."""
    claimed_duration: float | None
    """As the header states; a truncated file still claims its original duration."""
    size: int
    """Bytes."""
    audio: tuple[StreamInfo, ...] = ()
    subtitles: tuple[StreamInfo, ...] = ()
    metadata: dict[str, str] = field(default_factory=dict)


class Video:
    """Gives frames of one file, at exact times or at any rate.

    Opening reads the headers. The packet table is read when first needed, unless it is passed in
    because it is already known, so that a film is demuxed only once.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        limits: MediaSettings | None = None,
        info: VideoInfo | None = None,
        table: PacketTable | None = None,
    ) -> None:
        self.path = film_path(path)
        self.limits = limits or MediaSettings()
        self._version = file_version(self.path)
        self.info = info or probe(self.path, self.limits)
        self._table = table

    @property
    def table(self) -> PacketTable:
        """When each frame is shown and where its decoding must begin."""
        if self._table is None:
            with open_container(self.path, self.limits, payload=False) as container:
                stream = find_video(self.path, container)
                if stream is None:
                    self._table = read_sound(container)
                else:
                    self._table = read_packets(self.path, container, stream)
        return self._table

    @property
    def origin(self) -> float:
        """The container's time stamp of the start of the film, in seconds."""
        return self.table.origin * self.table.tick if self.table.timed else 0.0

    @property
    def duration(self) -> float:
        """Seconds to the end of the last frame that the file contains."""
        return self.table.duration

    @property
    def truncated(self) -> bool:
        """Whether the file contains clearly less than its header claims."""
        claimed = self.info.claimed_duration
        # headers round, and sound may outlast the picture; tolerate 2 % and a second
        return claimed is not None and self.duration < 0.98 * claimed - 1.0

    def at(self, times: Sequence[float], *, width: int | None = None) -> list[Frame]:
        """Return the frame on screen at each given time."""
        for time in times:
            if not 0 <= time <= self.duration:  # NaN fails too
                end = clock(self.duration, millis=True)
                detail = f"{time:g} s is outside the film (0 to {end})"
                raise MediaError(self.path, "out_of_range", detail)
        positions = self.table.on_screen(times)
        # decoded in time order, returned in the order of ``times``
        by_time = sorted(range(len(positions)), key=lambda i: int(self.table.pts[positions[i]]))
        frames = dict(zip(by_time, self._filled(positions[by_time], width), strict=True))
        return [frames[i] for i in range(len(positions))]

    def sample(
        self, fps: float, *, width: int | None = None, within: Segment | None = None
    ) -> Iterator[Frame]:
        """Yield the frame on screen at every multiple of 1/``fps`` seconds, in order."""
        yield from self.frames(self.grid(fps, within), width=width)

    def grid(self, fps: float, within: Segment | None = None) -> NDArray[np.float64]:
        """Return every multiple of 1/``fps`` in the film or in ``within``; fewer during stills."""
        return sample_times(self.duration, fps, within, self.stills)

    @cached_property
    def stills(self) -> tuple[Segment, ...]:
        """Where one frame has been on screen for long, as after a jump of the time stamps."""
        times = self.table.times
        ends = np.append(times[1:], self.duration)
        long = np.flatnonzero(ends - times > 2 * STILL)
        stills = [Segment(float(times[i]) + STILL, float(ends[i])) for i in long]
        if times[0] > 2 * STILL:  # the picture begins long after the sound
            stills.insert(0, Segment(STILL, float(times[0])))
        return tuple(stills)

    def frames(self, times: Iterable[float], *, width: int | None = None) -> Iterator[Frame]:
        """Yield the frames on screen at ascending ``times`` as they are decoded."""
        yield from self._filled(self.table.on_screen(times), width)

    def between(self, stretch: Segment, max_frames: int, width: int) -> list[Frame]:
        """Every frame from the start to the end, or none if there are more than ``max_frames``."""
        times = self.table.times
        inside = times[(times >= stretch.start) & (times <= stretch.end)]
        return [] if len(inside) > max_frames else list(self.frames(inside, width=width))

    def _filled(self, positions: Positions, width: int | None) -> Iterator[Frame]:
        """Yield one frame per position; positions ascend in time.

        A frame too damaged to decode is replaced by the last good one before it, with that one's
        time, as a player would leave it on screen; at the very start, by the first good one.
        """
        if not len(positions):
            return
        table, shape = self.table, self._shape(width)
        self._check_unchanged(may_grow=True)
        pictures = self._fetch(positions, shape)
        held: Picture | None = None
        upcoming = next(pictures, None)
        if upcoming is None or upcoming[0] != positions[0]:
            held = self._stand_in(int(positions[0]), shape)
        if held is None and upcoming is None:
            self._check_unchanged()
            raise MediaError(self.path, "unreadable", "none of its frames can be decoded")
        lost = 0
        for position in positions:
            # hold the last picture that is due by now
            while upcoming is not None and table.pts[upcoming[0]] <= table.pts[position]:
                held, upcoming = upcoming, next(pictures, None)
            shown = held or upcoming
            assert shown is not None  # at least one picture was decoded
            shown_position, pixels = shown
            lost += shown_position != position
            yield Frame(float(table.pts[shown_position] * table.tick), pixels)
        if lost:
            self._check_unchanged()
            note("damaged frames", film=str(self.path), replaced=lost)

    def _stand_in(self, position: int, shape: FrameShape) -> Picture | None:
        """Return the last good picture before a damaged one, or the first after it, if any."""
        table = self.table
        place = int(np.searchsorted(table.times, table.pts[position] * table.tick))
        near = table.order[max(0, place - NEIGHBOURS) : place + NEIGHBOURS]
        keys = table.keys[table.shown[table.keys]]
        key_place = int(np.searchsorted(keys, position))
        near_keys = keys[max(0, key_place - NEIGHBOURS) : key_place + NEIGHBOURS]
        last: Picture | None = None
        for picture in self._fetch(np.union1d(near, near_keys), shape):
            if last is not None and table.pts[picture[0]] > table.pts[position]:
                break
            last = picture
        return last

    def _fetch(self, positions: Positions, shape: FrameShape) -> Iterator[Picture]:
        """Decode; a file that can no longer be opened is reported as changed if it is."""
        if not self.info.codec:
            width = min(shape.width or BLANK[0], BLANK[0])
            black = np.zeros((BLANK[1] * width // BLANK[0], width, 3), np.uint8)
            yield from ((int(position), black) for position in positions)
            return
        try:
            yield from fetch(self.path, self.table, positions, shape, self.limits)
        except MediaError:
            self._check_unchanged()
            raise

    def _check_unchanged(self, *, may_grow: bool = False) -> None:
        """Raise if the file is not the one whose packets are in the table."""
        now = file_version(self.path)
        if now != self._version and not (may_grow and self._version.grew_into(now)):
            detail = "was changed while it was being read; run the command again"
            raise MediaError(self.path, "changed", detail)

    def _shape(self, width: int | None) -> FrameShape:
        info = self.info
        shown_width = min(width or info.width, info.width)
        # three bytes per pixel at the height that keeps the aspect ratio
        frame_bytes = round(3 * shown_width**2 * info.height / info.width)
        return FrameShape(width, info.rotation, info.aspect, frame_bytes)


def sample_times(
    duration: float, fps: float, within: Segment | None = None, stills: Sequence[Segment] = ()
) -> NDArray[np.float64]:
    """Return every multiple of 1/``fps`` in the film, or in ``within``; at least one time.

    During ``stills``, which are in time order, there is one time per minute, and at most about 60
    in each: more would show the same frame, and a file may claim to hold one for days.
    """
    start, end = 0.0, duration
    if within is not None:
        start, end = max(start, within.start), min(end, within.end)
    pieces = []
    begin = start
    for still in stills:
        pieces.append(_multiples(begin, min(still.start, end), fps))
        begin = max(begin, min(still.start, end))
        sparse = max(1, round(max(STILL, still.duration / 60) * fps))
        pieces.append(_multiples(begin, min(still.end, end), fps, sparse))
        begin = max(begin, still.end)
    pieces.append(_multiples(begin, end, fps))
    times = np.concatenate(pieces)
    return times if len(times) else np.array([min(start, duration)])


def _multiples(start: float, end: float, fps: float, stride: int = 1) -> NDArray[np.float64]:
    """Return the multiples of ``stride``/``fps`` from ``start`` up to ``end``."""
    # with slack, so that a boundary on a multiple is not lost to rounding
    first, last = int(np.ceil(start * fps - 1e-9)), int(np.ceil(end * fps - 1e-9))
    aligned = -(-first // stride) * stride
    return np.arange(aligned, max(last, aligned), stride) / fps


def probe(path: Path, limits: MediaSettings) -> VideoInfo:
    """Read the headers, and the first frame, because only frames know their rotation."""
    # anything but a file is reported by open_container
    size = path.stat().st_size if path.is_file() else 0
    codec, (width, height), fps, rotation, aspect = "", BLANK, 0.0, 0, Fraction(1)
    with open_container(path, limits) as container:
        stream = find_video(path, container)
        if stream is not None:
            context = stream.codec_context
            codec = context.name
            aspect = stream.sample_aspect_ratio or context.sample_aspect_ratio or aspect
            rotation = _first_rotation(container, stream)
            width, height = display_size(context.width, context.height, rotation, float(aspect))
            if width * height > limits.max_pixels:
                # the pictures themselves are within the limit: the ratio in the header is damaged
                aspect = Fraction(1)
                width, height = display_size(context.width, context.height, rotation, 1.0)
            fps = float(stream.average_rate or stream.guessed_rate or 0)
        return VideoInfo(
            format=container.format.name,
            codec=codec,
            width=width,
            height=height,
            fps=fps,
            rotation=rotation,
            aspect=float(aspect),
            claimed_duration=container.duration / 1e6 if container.duration else None,
            size=size,
            audio=tuple(_track(s) for s in container.streams.audio),
            subtitles=tuple(_track(s) for s in container.streams.subtitles),
            metadata=dict(container.metadata),
        )


def _first_rotation(container: InputContainer, stream: VideoStream) -> int:
    """Return the rotation of the first frame that can be decoded; 0 if the first ones are lost."""
    try:
        # a damaged beginning must not make opening a film decode all of it
        for packet in islice(packets_of(container, stream), 300):
            for frame in decode_packet(stream.codec_context, packet):
                return int(frame.rotation)
    except av.error.FFmpegError:
        return 0  # the file ends in the middle of a packet
    return 0


def _track(stream: AudioStream | SubtitleStream) -> StreamInfo:
    return StreamInfo(
        index=stream.index,
        codec=stream.codec_context.name if stream.codec_context else "unknown",
        language=stream.language or "",
        title=stream.metadata.get("title", ""),
    )
