"""Writes films: clips of a film for citations, and whole films for the laboratory and the tests."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain
from pathlib import Path

import av
import numpy as np
from av.audio.frame import AudioFrame
from av.audio.stream import AudioStream
from av.container import OutputContainer
from av.video.frame import VideoFrame
from av.video.stream import VideoStream
from numpy.typing import NDArray

from longtake._util import replacing
from longtake._util.timecode import clock
from longtake.errors import MediaError
from longtake.types import Line, Pixels, Segment
from longtake.video.audio import RATE, listen
from longtake.video.subtitles import TimedText, srt
from longtake.video.video import Video


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
            voice = add_sound(file, encoding.audio_codec, encoding.audio_rate)
        for number, pixels in enumerate(pictures):
            stream = stream or add_picture(file, encoding, pixels, tick)  # now the size is known
            frame = VideoFrame.from_ndarray(np.ascontiguousarray(pixels), format="rgb24")
            frame.pts = number if stamps is None else round(next(stamps) * 1000)
            frame.time_base = tick
            file.mux(stream.encode(frame))
        if stream is not None:
            file.mux(stream.encode(None))  # flush the encoder
        if voice is not None and sound is not None:
            _mux_sound(file, voice, sound, encoding.audio_rate, audio_start)


def add_picture(
    file: OutputContainer, encoding: Encoding, pixels: Pixels, tick: Fraction
) -> VideoStream:
    """Add a track for pictures of this size, whose times count ticks."""
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


def add_sound(file: OutputContainer, codec: str, rate: int) -> AudioStream:
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
        frame = sound_frame(sound[begin : begin + size], rate, begin + round(start * rate))
        file.mux(stream.encode(frame))
    file.mux(stream.encode(None))


def sound_frame(samples: NDArray[np.float32], rate: int, first: int) -> AudioFrame:
    """Samples from −1 to 1 for an encoder; ``first`` is the number of the first of them."""
    # the encoder takes 16 bits, and louder samples would wrap around
    whole = (np.clip(samples, -1, 1) * 32767).astype(np.int16)[None]
    frame = AudioFrame.from_ndarray(whole, format="s16", layout="mono")
    frame.sample_rate, frame.pts = rate, first
    frame.time_base = Fraction(1, rate)
    return frame


LONGEST_CLIP = 600.0
"""Seconds of a clip that is encoded in memory."""
QUALITY = {"preset": "veryfast", "crf": "20"}


def cut(
    video: Video, stretch: Segment, path: Path, advance: Callable[[float], object] | None = None
) -> Segment:
    """Write the frames and the sound of a stretch to an MP4 file, up to the end of the film.

    Return the stretch written. ``advance`` gets the share that is done, 0 to 1.
    """
    (written,) = join([(video, stretch)], path, advance=advance)
    return written


def join(
    parts: Sequence[tuple[Video, Segment]],
    path: Path,
    *,
    width: int | None = None,
    advance: Callable[[float], object] | None = None,
) -> list[Segment]:
    """Write stretches of films one after another to an MP4 file; return the stretches written.

    All pictures have the size of the first, with black bars where a film has another shape.
    ``advance`` gets the share that is done, 0 to 1.
    """
    written = [_inside(video, stretch) for video, stretch in parts]
    shots = [_Shot(video, stretch) for (video, _), stretch in zip(parts, written, strict=True)]
    begins = [sum(each.duration for each in written[:place]) for place in range(len(written))]
    times = [begin + time for begin, shot in zip(begins, shots, strict=True) for time in shot.times]
    rate = Fraction(parts[0][0].info.fps or 25).limit_denominator(1001)
    has_sound = any(video.info.audio for video, _ in parts)

    def pictures() -> Iterator[Pixels]:
        for number, picture in enumerate(chain.from_iterable(s.pictures(width) for s in shots)):
            if advance is not None:
                advance(number / len(times))
            yield picture

    with replacing(path) as draft:
        write_film(
            draft,
            _same_size(pictures()),
            Encoding(fps=rate, gop=250, options=QUALITY, audio_rate=RATE),
            times=times,
            sound=np.concatenate([shot.sound() for shot in shots]) if has_sound else None,
        )
    return written


def _inside(video: Video, stretch: Segment) -> Segment:
    if not stretch.start < video.duration:  # NaN fails too
        start, last = clock(stretch.start), clock(video.duration)
        raise MediaError(video.path, "out_of_range", f"{start} is outside the film (0 to {last})")
    # a shorter stretch is a moment, and a player would show nothing
    end = min(max(stretch.end, stretch.start + 0.1), video.duration)
    return Segment(stretch.start, end)


class _Shot:
    """The frames of a stretch, with their times from its start."""

    def __init__(self, video: Video, stretch: Segment) -> None:
        self.video, self.stretch = video, stretch
        start, end = stretch.start, stretch.end
        # the frame on screen at the start belongs to the clip, although it appeared earlier; of
        # frames within one millisecond, the last is kept
        inside = [float(time) for time in video.table.times if start < time < end]
        self._moments = {round(1000 * (time - start)): time for time in (start, *inside)}
        self.times = [stamp / 1000 for stamp in self._moments]

    def pictures(self, width: int | None) -> Iterator[Pixels]:
        for frame in self.video.frames(list(self._moments.values()), width=width):
            yield even(frame.pixels)

    def sound(self) -> NDArray[np.float32]:
        """Its sound, exactly as long as the stretch; silence where the film has none."""
        samples = np.zeros(round(self.stretch.duration * RATE), np.float32)
        video, filled = self.video, 0
        if video.info.audio:
            heard = listen(
                video.path, origin=video.origin, within=self.stretch, limits=video.limits
            )
            for sound in heard:
                piece = sound.samples[: len(samples) - filled]
                samples[filled : filled + len(piece)] = piece
                filled += len(piece)
        return samples


def _same_size(pictures: Iterable[Pixels]) -> Iterator[Pixels]:
    """The pictures, fitted into the size of the first."""
    shape: tuple[int, ...] | None = None
    for pixels in pictures:
        shape = shape or pixels.shape
        yield pixels if pixels.shape == shape else _fitted(pixels, shape[0], shape[1])


def _fitted(pixels: Pixels, height: int, width: int) -> Pixels:
    share = min(height / pixels.shape[0], width / pixels.shape[1])
    size = [max(1, round(side * share)) for side in pixels.shape[:2]]
    scaled = VideoFrame.from_ndarray(np.ascontiguousarray(pixels), format="rgb24").reformat(
        width=size[1], height=size[0]
    )
    fitted = np.zeros((height, width, 3), np.uint8)
    top, left = (height - size[0]) // 2, (width - size[1]) // 2
    fitted[top : top + size[0], left : left + size[1]] = scaled.to_ndarray()
    return fitted


def clip_bytes(parts: Sequence[tuple[Video, Segment]], *, width: int | None = None) -> bytes:
    """Stretches as the content of an MP4 file, at most ``width`` pixels wide."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "clip.mp4"
        join(parts, path, width=width)
        return path.read_bytes()


def write_subtitles(lines: Sequence[Line], stretch: Segment, path: Path) -> int:
    """Write what is said in a stretch as SRT, timed from its start; return the number of lines."""
    timed: list[TimedText] = []
    for line in lines:
        start = max(line.segment.start, stretch.start) - stretch.start
        end = min(line.segment.end, stretch.end) - stretch.start
        if end > start:
            timed.append((start, end, " ".join(line.text.split())))
    if timed:
        with replacing(path) as draft:
            draft.write_text(srt(timed), encoding="utf-8")
    return len(timed)


def even(pixels: Pixels) -> Pixels:
    """A picture without its last row or column where their number is odd."""
    rows, columns = pixels.shape[:2]
    # H.264 stores colour for two by two pixels
    return pixels[: max(2, rows - rows % 2), : max(2, columns - columns % 2)]
