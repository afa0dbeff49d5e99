"""Decodes the sound of a film as 16 kHz mono, slice by slice."""

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
from numpy.typing import NDArray

from longtake._util.cancellation import check_stop
from longtake.config import MediaSettings
from longtake.errors import MediaError
from longtake.types import Segment
from longtake.video.container import discard_others, open_container, packets_of
from longtake.video.packets import LONGEST

RATE = 16_000
"""Samples per second; what speech recognisers expect."""
GAP = RATE // 20
"""Delay in samples (50 ms) above which there is a gap; less is rounding of time stamps."""
LONGEST_GAP = round(LONGEST * RATE)
"""Delay in samples above which a time stamp is wrong, and the sound continues without a gap."""


@dataclass(frozen=True, eq=False)
class Sound:
    """Samples from −1 to 1, and the time in the film at which they begin."""

    start: float
    samples: NDArray[np.float32]

    @property
    def segment(self) -> Segment:
        """The part of the film that the samples cover."""
        return Segment(self.start, self.start + len(self.samples) / RATE)


def listen(
    path: Path,
    *,
    origin: float,
    slice_seconds: float = 30.0,
    within: Segment | None = None,
    limits: MediaSettings | None = None,
) -> Iterator[Sound]:
    """Yield slices of sound in order, each at most ``slice_seconds`` long; gaps become silence.

    ``origin`` is the container's time stamp of the film's start in seconds, so that sound and
    picture share one timeline.
    """
    within = within or Segment(0.0, float("inf"))
    with open_container(path, limits) as container:
        stream = _default_track(path, container)
        discard_others(container, stream)
        if within.start > 1.0 and stream.time_base is not None:
            # a second early, since seeking in sound is not exact; _placed drops the excess
            stamp = int((within.start - 1.0 + origin) / stream.time_base)
            container.seek(stamp, stream=stream, backward=True)
        whole = round(slice_seconds * RATE)
        start = round(within.start * RATE)
        pieces, count = list[NDArray[np.float32]](), 0
        for samples in _placed(container, stream, origin, within):
            pieces.append(samples)
            count += len(samples)
            # joined once they fill a slice: joining each piece to the rest copies it all every time
            if count >= whole:
                held = np.concatenate(pieces)
                while len(held) >= whole:
                    yield Sound(start / RATE, held[:whole])
                    start, held = start + whole, held[whole:]
                pieces, count = [held], len(held)
        if count:
            yield Sound(start / RATE, np.concatenate(pieces))


def _default_track(path: Path, container: InputContainer) -> AudioStream:
    streams = list(container.streams.audio)
    if not streams:
        raise MediaError(path, "no_audio", "has no sound")
    return max(streams, key=lambda s: bool(s.disposition & s.disposition.default))


def _placed(
    container: InputContainer, stream: AudioStream, origin: float, within: Segment
) -> Iterator[NDArray[np.float32]]:
    """Yield consecutive pieces that begin exactly at ``within.start`` and stop at its end."""
    begin = round(within.start * RATE)
    limit = round(within.end * RATE) if np.isfinite(within.end) else None
    # where the next sample of the track belongs, in samples from the start of the film
    cursor: int | None = None
    setup: tuple[str, str, int] | None = None
    for frame in _frames(container, stream):
        # broadcasts change from stereo to surround, which a resampler does not take
        if setup != (frame.format.name, frame.layout.name, frame.sample_rate):
            setup = (frame.format.name, frame.layout.name, frame.sample_rate)
            resampler = AudioResampler(format="flt", layout="mono", rate=RATE)
        place = None if frame.time is None else round((frame.time - origin) * RATE)
        try:
            pieces = resampler.resample(frame)
        except av.error.FFmpegError:
            setup = None  # a damaged frame claims a rate or a layout that cannot be: a gap
            continue
        for piece in pieces:
            samples = piece.to_ndarray()[0].astype(np.float32, copy=False)
            if cursor is None:
                late = place is not None and place - begin > LONGEST_GAP
                cursor = begin if place is None or late else place
                yield from _silence(begin, cursor, limit)  # the track begins late
            elif place is not None and GAP < place - cursor < LONGEST_GAP:
                yield from _silence(max(cursor, begin), place, limit)
                cursor = place
            place = None  # only the first piece of a frame begins at its time stamp
            first = max(0, begin - cursor)
            last = None if limit is None else max(0, limit - cursor)
            kept = samples[first:last]
            cursor += len(samples)
            if len(kept):
                yield kept
            if limit is not None and cursor >= limit:
                return


def _silence(start: int, end: int, limit: int | None) -> Iterator[NDArray[np.float32]]:
    """Yield silence from ``start`` to ``end`` in short pieces; a file may claim days of it."""
    stop = end if limit is None else min(end, limit)
    for begin in range(start, stop, RATE):
        yield np.zeros(min(RATE, stop - begin), dtype=np.float32)


def _frames(container: InputContainer, stream: AudioStream) -> Iterator[AudioFrame]:
    """Yield decoded sound; a damaged packet leaves a gap, and a truncated file ends early."""
    try:
        for packet in packets_of(container, stream):
            check_stop()
            try:
                yield from packet.decode()
            except av.error.InvalidDataError:
                continue
    except av.error.FFmpegError:
        return
