"""The film's sound as 16 kHz mono, slice by slice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import av
import numpy as np
from av.audio.frame import AudioFrame
from av.audio.resampler import AudioResampler
from av.audio.stream import AudioStream
from av.container import InputContainer
from av.stream import Discard
from numpy.typing import NDArray

from longtake.config import MediaSettings
from longtake.errors import MediaError
from longtake.media.container import open_container
from longtake.types import Segment

RATE = 16_000
"""Samples a second, what speech recognisers take."""
GAP = RATE // 20
"""Samples (50 ms) by which sound may be late: less is rounding of stamps, more is a hole in the track."""


@dataclass(frozen=True, eq=False)
class Sound:
    """Samples from −1 to 1, and when they begin in the film."""

    start: float
    samples: NDArray[np.float32]

    @property
    def segment(self) -> Segment:
        """The stretch of film that is heard."""
        return Segment(self.start, self.start + len(self.samples) / RATE)

    def __repr__(self) -> str:
        return f"Sound({self.segment.start:.3f}–{self.segment.end:.3f} s)"


def listen(
    path: Path,
    *,
    origin: float,
    slice_seconds: float = 30.0,
    within: Segment | None = None,
    language: str | None = None,
    limits: MediaSettings | None = None,
) -> Iterator[Sound]:
    """Slices of sound in order, none longer than ``slice_seconds``; holes in the track are silence.

    ``origin`` is what the container's clock shows at the film's start, in seconds, so that sound and picture
    share one time line.
    """
    within = within or Segment(0.0, float("inf"))
    with open_container(path, limits) as container:
        stream = audio_stream(path, container, language)
        for other in container.streams:
            if other.index != stream.index:
                other.discard = Discard.all
        if within.start > 1.0 and stream.time_base is not None:
            container.seek(
                int((within.start - 1.0 + origin) / stream.time_base), stream=stream, backward=True
            )
        whole = round(slice_seconds * RATE)
        start = round(within.start * RATE)
        held = np.zeros(0, dtype=np.float32)
        for samples in _placed(container, stream, origin, within):
            held = np.concatenate([held, samples])
            while len(held) >= whole:
                yield Sound(start / RATE, held[:whole])
                start, held = start + whole, held[whole:]
        if len(held):
            yield Sound(start / RATE, held)


def audio_stream(path: Path, container: InputContainer, language: str | None = None) -> AudioStream:
    """The track in ``language`` (ISO 639-2, as containers have it), else the default one."""
    streams = list(container.streams.audio)
    if not streams:
        raise MediaError(path, "no_audio", "has no sound")
    spoken = [s for s in streams if s.language == language] if language else []
    if language and not spoken:
        known = ", ".join(sorted({s.language or "unknown" for s in streams}))
        raise MediaError(path, "no_audio", f"has no sound in {language!r}; it has: {known}")
    return max(spoken or streams, key=lambda s: bool(s.disposition & s.disposition.default))


def _placed(
    container: InputContainer, stream: AudioStream, origin: float, within: Segment
) -> Iterator[NDArray[np.float32]]:
    """Consecutive pieces that begin exactly at ``within.start`` and stop at its end."""
    resampler = AudioResampler(format="flt", layout="mono", rate=RATE)
    begin = round(within.start * RATE)
    limit = round(within.end * RATE) if np.isfinite(within.end) else None
    cursor: int | None = (
        None  # where the next sample of the track belongs, in samples from the film's start
    )
    for frame in _frames(container, stream):
        place = None if frame.time is None else round((frame.time - origin) * RATE)
        for piece in resampler.resample(frame):
            samples = piece.to_ndarray()[0].astype(np.float32, copy=False)
            if cursor is None:
                cursor = place if place is not None else begin
                if cursor > begin:
                    yield np.zeros(cursor - begin, dtype=np.float32)
            elif place is not None and place - cursor > GAP:
                yield np.zeros(max(0, place - max(cursor, begin)), dtype=np.float32)
                cursor = place
            place = None
            kept = samples[
                max(0, begin - cursor) : None if limit is None else max(0, limit - cursor)
            ]
            cursor += len(samples)
            if len(kept):
                yield kept
            if limit is not None and cursor >= limit:
                return


def _frames(container: InputContainer, stream: AudioStream) -> Iterator[AudioFrame]:
    """Decoded sound; a damaged packet is a hole, and a cut-off file ends where it ends."""
    try:
        for packet in container.demux(stream):
            try:
                yield from packet.decode()
            except av.error.InvalidDataError:
                continue
    except av.error.FFmpegError:
        return
