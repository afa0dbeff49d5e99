"""Opens media files safely.

Films are untrusted input. FFmpeg also reads playlists, concatenation scripts and URLs, each of
which makes it open further files. So only plain files in real container formats are accepted: the
protocol and the demuxer are restricted to an allowlist before any header is read.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import av
from av.audio.stream import AudioStream
from av.codec.hwaccel import HWAccel
from av.container import InputContainer
from av.stream import Discard, Stream
from av.video.stream import VideoStream

from longtake.config import MediaSettings
from longtake.errors import MediaError
from longtake.video.remote import RemoteFile, RemotePath

_Packet = TypeVar("_Packet", bound="av.Packet[Any]")

FORMATS = (
    "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpegts,mpeg,mpegvideo,h264,hevc,m4v,obu,ivf,flv,"
    "asf,ogg,mxf,nut,rm,wtv,dv,gif,yuv4mpegpipe,av1,vvc,"
    # sound only: films without pictures
    "wav,mp3,flac,aac,ac3,eac3,amr,aiff,caf,w64"
)
"""Demuxers that read one file and never open another."""


@contextmanager
def open_container(
    path: Path,
    limits: MediaSettings | None = None,
    hardware: HWAccel | None = None,
    *,
    payload: bool = True,
) -> Iterator[InputContainer]:
    """Open a media file; raises a :class:`MediaError` that says what is wrong with it.

    Without ``payload``, only the headers of a remote film are read, if its format permits that.
    """
    limits = limits or MediaSettings()
    size = check_plain_file(path)
    with _source(path, payload=payload) as source:
        try:
            container = _open(source, limits, hardware)
        except av.error.FFmpegError as error:
            raise _not_opened(path, size, error, limits) from error
        with container:
            _check_limits(path, container, limits)
            yield container


def _source(path: Path, *, payload: bool = True) -> AbstractContextManager[str | RemoteFile]:
    """What FFmpeg opens: a file name, or an open file elsewhere."""
    if isinstance(path, RemotePath):
        return path.open(payload=payload)
    # absolute, so that "concat:a|b" is a file name, not a protocol
    return nullcontext(str(path.absolute()))


def _check_limits(path: Path, container: InputContainer, limits: MediaSettings) -> None:
    if len(container.streams) > limits.max_streams:
        raise _too_many_streams(path, len(container.streams), limits)
    for stream in container.streams.video:
        context = stream.codec_context
        if context is not None and context.width * context.height > limits.max_pixels:
            width, height = context.width, context.height
            detail = (
                f"{width}×{height} exceeds the limit of {limits.max_pixels:,} pixels per frame "
                f"(--set media.max_pixels={width * height} allows it)"
            )
            raise MediaError(path, "too_large", detail)


def _open(source: Any, limits: MediaSettings, hardware: HWAccel | None) -> InputContainer:
    options = {
        "protocol_whitelist": "file",
        "format_whitelist": FORMATS,
        # one more than allowed: some demuxers leave out what is over the limit without an error
        "max_streams": str(limits.max_streams + 1),
    }
    if not isinstance(source, str) and source.zeros:
        # parsers would judge by the zeros which frames are keys
        options["fflags"] = "+nofillin+noparse"
    # unlike codec_context.options, these already apply while the streams are being probed
    probing: Any = [{"max_pixels": str(limits.max_pixels)}] * (limits.max_streams + 1)
    try:
        opened: InputContainer = av.open(
            source,
            options=options,
            stream_options=probing,
            metadata_errors="replace",
            hwaccel=hardware,
        )
    except ValueError:
        # MPEG program streams reveal their streams too late for that, but their headers allow at
        # most 16383 pixels a side
        if not isinstance(source, str):
            source.seek(0)
        opened = av.open(source, options=options, metadata_errors="replace", hwaccel=hardware)
    return opened


def check_plain_file(path: Path) -> int:
    """Return the size of a regular, readable, non-empty file; raises for anything else."""
    try:
        status = path.stat()
    except FileNotFoundError:
        raise MediaError(path, "not_found", "no such file") from None
    except OSError as error:
        raise MediaError(path, "unreadable", f"cannot be read ({error.strerror})") from error
    if not stat.S_ISREG(status.st_mode):
        kind = "a folder" if stat.S_ISDIR(status.st_mode) else "a device or pipe"
        raise MediaError(path, "not_a_file", f"is {kind}, not a video file")
    if not isinstance(path, RemotePath) and not os.access(path, os.R_OK):
        raise MediaError(path, "unreadable", "cannot be read (permission denied)")
    if status.st_size == 0:
        raise MediaError(path, "not_a_video", "is empty (0 bytes)")
    return status.st_size


class FileVersion(NamedTuple):
    """What changes when a file is replaced or overwritten."""

    device: int
    inode: int
    size: int
    modified: int

    def grew_into(self, other: FileVersion) -> bool:
        """Whether the other is the same file with more in it, as while a film is recorded."""
        return self[:2] == other[:2] and self.size < other.size


NO_FILE = FileVersion(0, 0, 0, 0)


def file_version(path: Path) -> FileVersion:
    """Return the version of a file; ``NO_FILE`` if it is gone."""
    try:
        status = path.stat()
    except OSError:
        return NO_FILE
    return FileVersion(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def video_stream(path: Path, container: InputContainer) -> VideoStream:
    """Return the default video stream, or the largest; cover art of a music file does not count."""
    stream = find_video(path, container)
    if stream is None:
        raise MediaError(path, "no_video", "has sound only, no pictures")
    return stream


def find_video(path: Path, container: InputContainer) -> VideoStream | None:
    """The same; ``None`` if the file has sound only."""
    usable: list[VideoStream] = []
    for stream in container.streams.video:
        context = stream.codec_context
        if stream.disposition & stream.disposition.attached_pic or context is None:
            continue
        if context.codec_tag in ("encv", "drmi"):
            raise MediaError(path, "encrypted", "is encrypted (DRM) and cannot be decoded")
        if context.width:
            usable.append(stream)
    if not usable:
        if any(stream.codec_context for stream in container.streams.audio):
            return None
        raise MediaError(path, "no_video", "has neither pictures nor sound")
    return max(
        usable, key=lambda s: (bool(s.disposition & s.disposition.default), s.width * s.height)
    )


def discard_others(container: InputContainer, stream: VideoStream | AudioStream) -> None:
    """Make the demuxer skip the packets of every stream but one."""
    for other in container.streams:
        if other.index != stream.index:
            other.discard = Discard.all


def packets_of(container: InputContainer, stream: Stream) -> Iterator[Any]:
    """Yield the packets of one stream, as ``demux`` does.

    A transport stream can gain streams in the middle. PyAV knows those that were there when the
    file was opened and raises an IndexError at the first packet of another; reading goes on.
    """
    while True:
        try:
            yield from container.demux(stream)
        except IndexError:
            continue
        return


def readable_packets(packets: Iterable[_Packet]) -> Iterator[_Packet]:
    """Yield packets up to the end of the file, or up to where it can no longer be read."""
    try:
        for packet in packets:
            if packet.size:  # the last one is an empty packet that flushes decoders
                yield packet
    except av.error.FFmpegError:
        return


def _not_opened(
    path: Path, size: int, error: av.error.FFmpegError, limits: MediaSettings
) -> MediaError:
    # FFmpeg reports a demuxer that is not on the allowlist like this
    if isinstance(error, av.error.ArgumentError | av.error.PermissionError):
        detail = "is not in a supported video format (playlists and scripts are rejected)"
        return MediaError(path, "not_a_video", detail)
    if isinstance(error, av.error.MemoryError):
        return _out_of_memory(path, limits)
    with path.open("rb") as file:
        head = file.read(12)
    if head[4:8] == b"ftyp":  # an MP4 that was recognised but has no index
        detail = f"is truncated: {size:,} bytes without the index at the end of an MP4 (moov)"
        return MediaError(path, "truncated", detail)
    return MediaError(path, "not_a_video", "is not a video file that FFmpeg can read")


def _out_of_memory(path: Path, limits: MediaSettings) -> MediaError:
    """FFmpeg reports too many streams like this, and an index that claims too many frames."""
    try:
        # its own limit
        more = replace(limits, max_streams=1000)
        with _source(path) as source, _open(source, more, None) as container:
            return _too_many_streams(path, len(container.streams), limits)
    except av.error.FFmpegError:
        detail = "claims to hold more than fits into memory: it is damaged, or made to be"
        return MediaError(path, "too_large", detail)


def _too_many_streams(path: Path, count: int, limits: MediaSettings) -> MediaError:
    limit = f"the limit of {limits.max_streams} (media.max_streams)"
    return MediaError(path, "too_large", f"has more streams ({count}) than {limit}")


_NAMES = """
    3g2 3gp asf av1 avi divx dv f4v flv h264 hevc ivf m2ts m4v mkv mov mp4 mpeg mpg mts mxf nut ogm
    ogv rm rmvb ts vob webm wmv wtv
    aac aiff flac m4a mka mp3 oga ogg opus wav
"""
SUFFIXES = frozenset(f".{name}" for name in _NAMES.split())
"""Suffixes by which films in folders are recognised; a file given by name may have any."""


class FoundFile(NamedTuple):
    """A file, and the folder in which it was found."""

    path: Path
    root: Path | None
    """``None`` if the file itself was named."""


def films_in(paths: Sequence[Path]) -> Iterator[FoundFile]:
    """The films below the given folders, and the given files, each once.

    Hidden files and folders are left out, and links to folders are not followed.
    """
    seen: set[Path] = set()
    for given in paths:
        path = given.absolute()
        if path.is_dir():
            places: Iterator[FoundFile] = (FoundFile(each, path) for each in _below(path))
        elif path.exists():
            places = iter([FoundFile(path, None)])
        else:
            raise MediaError(given, "not_found", "no such file or folder")
        for place in places:
            if place.path not in seen:
                seen.add(place.path)
                yield place


def _below(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        # sorted in place, which also decides the order of the walk
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(parent) / name
            if path.suffix.casefold() in SUFFIXES and not name.startswith("."):
                yield path
