"""A film as a list of frames with times."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TypeAlias

import numpy as np
from av.audio.stream import AudioStream
from av.subtitles.stream import SubtitleStream
from numpy.typing import NDArray

from longtake.config import MediaSettings
from longtake.errors import MediaError
from longtake.events import note
from longtake.media.container import open_container, video_stream
from longtake.media.decode import Look, fetch
from longtake.media.images import display_size
from longtake.media.packets import PacketTable, read_packets
from longtake.timecode import clock
from longtake.types import Frame, Pixels, Segment

Positions: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class StreamInfo:
    """A track of sound or subtitles."""

    index: int
    codec: str
    language: str = ""
    title: str = ""


@dataclass(frozen=True)
class VideoInfo:
    """What a file says about itself, before any packet is read."""

    format: str
    codec: str
    width: int
    """On screen: rotation and pixel shape are applied."""
    height: int
    fps: float
    """Nominal; frames carry their own times."""
    rotation: int
    aspect: float
    """Width of a pixel over its height."""
    claimed_duration: float | None
    """As the header has it; a cut-off file still claims its old length."""
    size: int
    """Bytes."""
    audio: tuple[StreamInfo, ...] = ()
    subtitles: tuple[StreamInfo, ...] = ()
    metadata: dict[str, str] = field(default_factory=dict)


class Video:
    """Frames of one file, at exact times, at any rate.

    Opening reads the headers; the packet table is read when first needed, or handed in where it is already
    known, so that a film is demuxed once in its life.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        limits: MediaSettings | None = None,
        info: VideoInfo | None = None,
        table: PacketTable | None = None,
    ) -> None:
        self.path = Path(path)
        self.limits = limits or MediaSettings()
        self.info = info or probe(self.path, self.limits)
        self._table = table

    @property
    def table(self) -> PacketTable:
        """When each frame is shown and where it can be decoded from."""
        if self._table is None:
            with open_container(self.path, self.limits) as container:
                self._table = read_packets(self.path, container, video_stream(self.path, container))
        return self._table

    @property
    def origin(self) -> float:
        """What the container's own clock shows at the film's start, in seconds."""
        return self.table.origin * self.table.tick if self.table.timed else 0.0

    @property
    def duration(self) -> float:
        """Seconds to the end of the last frame that is really there."""
        return self.table.duration

    @property
    def truncated(self) -> bool:
        """Whether the header promises clearly more film than there is."""
        claimed = self.info.claimed_duration
        return claimed is not None and self.duration < 0.98 * claimed - 1.0

    def at(self, times: Sequence[float], *, width: int | None = None) -> list[Frame]:
        """For each time the frame on screen at that moment."""
        for time in times:
            if not 0 <= time <= self.duration:
                end = clock(self.duration, millis=True)
                raise MediaError(
                    self.path, "out_of_range", f"{time:g} s is outside the film (0 to {end})"
                )
        return self._in_asked_order(self.table.on_screen(times), width)

    def keyframes(self, times: Sequence[float], *, width: int | None = None) -> list[Frame]:
        """For each time the nearest keyframe, with its own true time: a first look at the price of a seek."""
        return self._in_asked_order(self.table.nearest_keys(times), width)

    def sample(
        self, fps: float, *, width: int | None = None, within: Segment | None = None
    ) -> Iterator[Frame]:
        """The frame on screen at every multiple of 1/``fps`` seconds, in order, one frame per tick."""
        yield from self.frames(sample_times(self.duration, fps, within), width=width)

    def frames(self, times: Iterable[float], *, width: int | None = None) -> Iterator[Frame]:
        """The frames on screen at ascending ``times``, as they are decoded."""
        yield from self._filled(self.table.on_screen(times), width)

    def _in_asked_order(self, positions: Positions, width: int | None) -> list[Frame]:
        by_time = sorted(range(len(positions)), key=lambda i: int(self.table.pts[positions[i]]))
        frames = dict(zip(by_time, self._filled(positions[by_time], width), strict=True))
        return [frames[i] for i in range(len(positions))]

    def _filled(self, positions: Positions, width: int | None) -> Iterator[Frame]:
        """One frame per position, given by ascending time.

        A frame too damaged to decode is replaced by the last good one before it, which is what a player
        leaves on screen, with that one's own time; at the very start, by the first good one.
        """
        table = self.table
        pictures = fetch(self.path, table, positions, self._look(width), self.limits)
        held: tuple[int, Pixels] | None = None
        upcoming = next(pictures, None)
        if upcoming is None and len(positions):
            raise MediaError(self.path, "unreadable", "none of its frames could be decoded")
        lost = 0
        for position in positions:
            while upcoming is not None and table.pts[upcoming[0]] <= table.pts[position]:
                held, upcoming = upcoming, next(pictures, None)
            shown = held or upcoming
            assert shown is not None
            lost += shown[0] != position
            yield Frame(float(table.pts[shown[0]] * table.tick), shown[1])
        if lost:
            note("damaged frames", film=str(self.path), replaced=lost)

    def _look(self, width: int | None) -> Look:
        info = self.info
        shown = min(width or info.width, info.width)
        return Look(
            width,
            info.rotation,
            info.aspect,
            frame_bytes=round(3 * shown**2 * info.height / info.width),
        )


def sample_times(duration: float, fps: float, within: Segment | None = None) -> NDArray[np.float64]:
    """Every multiple of 1/``fps`` inside the film, or inside ``within``; at least one moment."""
    start, end = (
        (0.0, duration) if within is None else (max(0.0, within.start), min(duration, within.end))
    )
    first, last = int(np.ceil(start * fps - 1e-9)), int(np.ceil(end * fps - 1e-9))
    ticks = np.arange(first, max(last, first)) / fps
    return ticks if len(ticks) else np.array([min(start, duration)])


def probe(path: Path, limits: MediaSettings) -> VideoInfo:
    """Headers and the first frame, which alone knows the rotation."""
    size = path.stat().st_size if path.is_file() else 0
    with open_container(path, limits) as container:
        stream = video_stream(path, container)
        context = stream.codec_context
        aspect = stream.sample_aspect_ratio or context.sample_aspect_ratio or Fraction(1)
        rotation = 0
        for frame in container.decode(stream):
            rotation = frame.rotation
            break
        width, height = display_size(context.width, context.height, rotation, float(aspect))
        rate = stream.average_rate or stream.guessed_rate
        return VideoInfo(
            format=container.format.name,
            codec=context.name,
            width=width,
            height=height,
            fps=float(rate) if rate else 0.0,
            rotation=rotation,
            aspect=float(aspect),
            claimed_duration=container.duration / 1e6 if container.duration else None,
            size=size,
            audio=tuple(_track(s) for s in container.streams.audio),
            subtitles=tuple(_track(s) for s in container.streams.subtitles),
            metadata=dict(container.metadata),
        )


def _track(stream: AudioStream | SubtitleStream) -> StreamInfo:
    return StreamInfo(
        index=stream.index,
        codec=stream.codec_context.name if stream.codec_context else "unknown",
        language=stream.language or "",
        title=stream.metadata.get("title", ""),
    )
