"""Writes films for the laboratory, the demo and the tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from av.audio.frame import AudioFrame
from av.audio.stream import AudioStream
from av.container import OutputContainer
from av.video.frame import VideoFrame
from av.video.stream import VideoStream
from numpy.typing import NDArray

from longtake.types import Pixels


@dataclass(frozen=True)
class Encoding:
    """How a film is encoded."""

    codec: str = "libx264"
    fps: Fraction = Fraction(10)
    gop: int = 40
    """Frames from one keyframe to the next."""
    options: Mapping[str, str] = field(default_factory=lambda: {"preset": "ultrafast"})
    """Options for the encoder."""
    container: Mapping[str, str] = field(default_factory=dict)
    """Options for the container."""
    rotation: int = 0
    """Degrees by which players rotate the picture anticlockwise."""
    pixel_aspect: Fraction = Fraction(1)
    audio_codec: str = "aac"
    audio_rate: int = 16_000


def write_film(
    path: Path,
    pictures: Iterable[Pixels],
    encoding: Encoding | None = None,
    *,
    times: Iterable[float] | None = None,
    sound: NDArray[np.float32] | None = None,
    audio_start: float = 0.0,
) -> None:
    """Write pictures, all of the same size, and mono sound from −1 to 1.

    ``times`` gives the time of each picture in seconds, for variable frame rates; without it
    pictures follow one another at ``encoding.fps``.
    """
    encoding = encoding or Encoding()
    # one tick per frame, or milliseconds for variable frame rates
    tick = Fraction(1, 1000) if times is not None else 1 / encoding.fps
    stamps = iter(times) if times is not None else None
    with av.open(str(path), "w", options=dict(encoding.container)) as file:
        stream: VideoStream | None = None
        voice = None
        if sound is not None:
            voice = _add_sound(file, encoding.audio_codec, encoding.audio_rate)
        for number, pixels in enumerate(pictures):
            stream = stream or _add_picture(file, encoding, pixels, tick)  # now the size is known
            frame = VideoFrame.from_ndarray(np.ascontiguousarray(pixels), format="rgb24")
            frame.pts = number if stamps is None else round(next(stamps) * 1000)
            frame.time_base = tick
            file.mux(stream.encode(frame))
        if stream is not None:
            file.mux(stream.encode(None))  # flush the encoder
        if voice is not None and sound is not None:
            _mux_sound(file, voice, sound, encoding.audio_rate, audio_start)


def _add_picture(
    file: OutputContainer, encoding: Encoding, pixels: Pixels, tick: Fraction
) -> VideoStream:
    stream = file.add_stream(encoding.codec, rate=encoding.fps)
    assert isinstance(stream, VideoStream)
    stream.height, stream.width = pixels.shape[:2]
    # MJPEG uses the full range of luma
    stream.pix_fmt = "yuvj420p" if encoding.codec == "mjpeg" else "yuv420p"
    context = stream.codec_context
    context.time_base = tick
    context.gop_size = encoding.gop
    context.options = dict(encoding.options)
    if encoding.pixel_aspect != 1:
        context.sample_aspect_ratio = encoding.pixel_aspect
    if encoding.rotation:
        stream.set_display_rotation(encoding.rotation)
    return stream


def _add_sound(file: OutputContainer, codec: str, rate: int) -> AudioStream:
    """Add a track for mono sound."""
    stream = file.add_stream(codec, rate=rate)
    assert isinstance(stream, AudioStream)
    stream.layout = "mono"
    return stream


def _mux_sound(
    file: OutputContainer, stream: AudioStream, sound: NDArray[np.float32], rate: int, start: float
) -> None:
    """Write samples from −1 to 1 that begin at ``start`` seconds."""
    size = stream.frame_size or 1024
    for begin in range(0, len(sound), size):
        piece = np.clip(sound[begin : begin + size], -1, 1)
        samples = (piece * 32767).astype(np.int16)[None]
        frame = AudioFrame.from_ndarray(samples, format="s16", layout="mono")
        frame.sample_rate = rate
        frame.pts = begin + round(start * rate)
        frame.time_base = Fraction(1, rate)
        file.mux(stream.encode(frame))
    file.mux(stream.encode(None))
