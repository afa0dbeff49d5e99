"""Cuts a stretch out of a film, to the frame, with its sound and subtitles.

Every frame of the stretch is encoded again: a copy could begin at keyframes only.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from longtake.errors import MediaError
from longtake.media.audio import RATE, listen
from longtake.media.subtitle_files import TimedText, srt
from longtake.media.video import Video
from longtake.media.writer import Encoding, write_film
from longtake.replacing import replacing
from longtake.timecode import clock
from longtake.types import Line, Pixels, Segment

QUALITY = {"preset": "veryfast", "crf": "20"}
LEAST = 0.1
"""Shortest clip in seconds; a shorter stretch is a moment, and a player would show nothing."""


def cut(video: Video, stretch: Segment, path: Path, *, width: int | None = None) -> Segment:
    """Write the frames and the sound of a stretch to an MP4 file; return the stretch written.

    The stretch is cut to the film's end; pictures are at most ``width`` pixels wide.
    """
    if not stretch.start < video.duration:  # NaN fails too
        asked, last = clock(stretch.start), clock(video.duration)
        raise MediaError(video.path, "out_of_range", f"{asked} is outside the film (0 to {last})")
    end = min(max(stretch.end, stretch.start + LEAST), video.duration)
    written = Segment(stretch.start, end)
    sound = _sound(video, written)
    # the frame on screen at the start belongs to the clip, although it appeared earlier; of frames
    # within one millisecond, the last is kept
    inside = [float(time) for time in video.table.times if stretch.start < time < end]
    times = {round(1000 * (time - stretch.start)): time for time in (stretch.start, *inside)}
    rate = Fraction(video.info.fps or 25).limit_denominator(1001)
    with replacing(path) as draft:
        write_film(
            draft,
            _even(video, list(times.values()), width),
            Encoding(fps=rate, gop=250, options=QUALITY, audio_rate=RATE),
            times=[stamp / 1000 for stamp in times],
            sound=sound,
        )
    return written


def clip_bytes(video: Video, stretch: Segment, *, width: int | None = None) -> bytes:
    """A stretch as the content of an MP4 file, at most ``width`` pixels wide."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "clip.mp4"
        cut(video, stretch, path, width=width)
        return path.read_bytes()


def write_subtitles(lines: Sequence[Line], stretch: Segment, path: Path) -> int:
    """Write what is said in a stretch as SRT, timed from its start; return the number of lines."""
    said: list[TimedText] = []
    for line in lines:
        start = max(line.segment.start, stretch.start) - stretch.start
        end = min(line.segment.end, stretch.end) - stretch.start
        if end > start:
            said.append((start, end, " ".join(line.text.split())))
    if said:
        with replacing(path) as draft:
            draft.write_text(srt(said), encoding="utf-8")
    return len(said)


def _even(video: Video, times: Sequence[float], width: int | None) -> Iterator[Pixels]:
    """The frames at given times, without the last row or column where their number is odd."""
    for frame in video.frames(times, width=width):
        rows, columns = frame.pixels.shape[:2]
        # H.264 stores colour for two by two pixels
        yield frame.pixels[: max(2, rows - rows % 2), : max(2, columns - columns % 2)]


def _sound(video: Video, stretch: Segment) -> NDArray[np.float32] | None:
    if not video.info.audio:
        return None
    heard = listen(video.path, origin=video.origin, within=stretch, limits=video.limits)
    pieces = [sound.samples for sound in heard]
    return np.concatenate(pieces) if pieces else None
