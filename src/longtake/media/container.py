"""Opening a file as a film, and nothing but a film.

A film comes from strangers. FFmpeg also reads playlists, concatenation scripts and network addresses, each
of which makes it open further files, so only plain files in real container formats are let through: the
protocol and the demuxer are whitelisted before any header is read.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import av
from av.container import InputContainer
from av.video.stream import VideoStream

from longtake.config import MediaSettings
from longtake.errors import MediaError

FORMATS = (
    "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpegts,mpeg,mpegvideo,h264,hevc,m4v,obu,ivf,flv,asf,ogg,mxf,nut,"
    "rm,wtv,dv,gif,yuv4mpegpipe,av1,vvc,"
    "wav,mp3,flac,aac,ac3,eac3,amr,aiff,caf,w64"  # sound alone: opened to say that there is no picture
)
"""Demuxers that read one file and open no other."""


@contextmanager
def open_container(path: Path, limits: MediaSettings | None = None) -> Iterator[InputContainer]:
    """Open a media file, or raise :class:`MediaError` that says what is wrong with it."""
    limits = limits or MediaSettings()
    size = check_plain_file(path)
    try:
        container = _open(path, limits)
    except av.error.FFmpegError as error:
        raise _not_opened(path, size, error, limits) from error
    with container:
        if len(container.streams) > limits.max_streams:
            raise _too_many_streams(path, len(container.streams), limits)
        for stream in container.streams.video:
            context = stream.codec_context
            if context is not None and context.width * context.height > limits.max_pixels:
                raise _too_many_pixels(path, context.width, context.height, limits)
        yield container


def _open(path: Path, limits: MediaSettings) -> InputContainer:
    name = str(path.absolute())  # absolute, so that "concat:a|b" is a file name and not a protocol
    options = {
        "protocol_whitelist": "file",
        "format_whitelist": FORMATS,
        "max_streams": str(limits.max_streams),
    }
    # unlike codec_context.options, these hold while the streams are being probed
    while_probing: Any = [{"max_pixels": str(limits.max_pixels)}] * limits.max_streams
    try:
        return av.open(
            name, options=options, stream_options=while_probing, metadata_errors="replace"
        )
    except ValueError:
        # MPEG program streams show their streams too late for that; their headers hold 16383 pixels a side at most
        return av.open(name, options=options, metadata_errors="replace")


def check_plain_file(path: Path) -> int:
    """Size of a regular, non-empty, readable file; anything else is an error."""
    try:
        status = path.stat()
    except FileNotFoundError:
        hint = "; only plain files are opened, not addresses" if "://" in str(path) else ""
        raise MediaError(path, "not_found", f"no such file{hint}") from None
    except OSError as error:
        raise MediaError(path, "unreadable", f"cannot be read ({error.strerror})") from error
    if not stat.S_ISREG(status.st_mode):
        kind = "a folder" if stat.S_ISDIR(status.st_mode) else "not a plain file"
        raise MediaError(path, "not_a_file", f"is {kind}; a video file is needed")
    if not os.access(path, os.R_OK):
        raise MediaError(path, "unreadable", "cannot be read (permission denied)")
    if status.st_size == 0:
        raise MediaError(path, "not_a_video", "is empty (0 bytes)")
    return status.st_size


def video_stream(path: Path, container: InputContainer) -> VideoStream:
    """The film's moving picture; a cover picture of a music file is none."""
    streams = [s for s in container.streams.video if not s.disposition & s.disposition.attached_pic]
    for stream in streams:
        context = stream.codec_context
        if context is not None and context.codec_tag in ("encv", "drmi"):
            raise MediaError(path, "encrypted", "is encrypted (DRM); longtake cannot decode it")
    streams = [s for s in streams if s.codec_context is not None and s.codec_context.width]
    if not streams:
        heard = ", ".join(s.codec_context.name for s in container.streams.audio if s.codec_context)
        detail = f"has no video stream (sound only: {heard})" if heard else "has no video stream"
        raise MediaError(path, "no_video", detail)
    return max(
        streams, key=lambda s: (bool(s.disposition & s.disposition.default), s.width * s.height)
    )


def _not_opened(
    path: Path, size: int, error: av.error.FFmpegError, limits: MediaSettings
) -> MediaError:
    if isinstance(error, av.error.ArgumentError | av.error.PermissionError):
        # what a demuxer outside the whitelist is answered with
        return MediaError(
            path,
            "not_a_video",
            "is not in a video format longtake opens (playlists and scripts are refused)",
        )
    if isinstance(
        error, av.error.MemoryError
    ):  # what FFmpeg says when its own limit on streams is passed
        return _too_many_streams(path, None, limits)
    with path.open("rb") as file:
        head = file.read(12)
    if head[4:8] == b"ftyp":
        detail = f"is cut off: {size:,} bytes without the index that an MP4 keeps at its end (moov)"
        return MediaError(path, "truncated", detail)
    return MediaError(path, "not_a_video", "is not a video file that FFmpeg can read")


def _too_many_streams(path: Path, count: int | None, limits: MediaSettings) -> MediaError:
    found = f"{count} streams are" if count else "its streams are"
    return MediaError(
        path, "too_large", f"{found} over the limit of {limits.max_streams} (media.max_streams)"
    )


def _too_many_pixels(path: Path, width: int, height: int, limits: MediaSettings) -> MediaError:
    return MediaError(
        path,
        "too_large",
        f"{width}×{height} is over the limit of {limits.max_pixels:,} pixels a frame "
        f"(--set media.max_pixels={width * height} allows it)",
    )
