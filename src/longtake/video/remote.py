"""Films by address: read where they are, by ranges, with fsspec.

A :class:`RemotePath` stands for the film wherever a path does. What it shows of itself (in
messages, history and JSON) lacks what may be secret: user, password, and the query, which may sign
a link.
"""

from __future__ import annotations

import io
import logging
import os
import sys
import zlib
from collections.abc import Callable
from pathlib import Path, PosixPath
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

from longtake.errors import MediaError, MissingExtra

_T = TypeVar("_T")

BLOCK = 2**20
"""Bytes of a request; FFmpeg itself asks for 32 kB at a time."""


NO_RANGES = "cannot be read by ranges: the server ignores them or reports no size"


def film_path(name: Path | str) -> Path:
    """The path of a film, which may be named by its address."""
    if isinstance(name, Path):
        return name
    return RemotePath(name) if "://" in name else Path(name)


class RemotePath(PosixPath):
    """The address of a film in place of a path."""

    def __new__(cls, url: str) -> RemotePath:
        """Take the address as it is opened."""
        path = super().__new__(cls, _public(url))
        path.url = url
        return path

    url = ""
    """As it is opened, with its secrets; empty for paths that are derived from it."""

    if sys.version_info >= (3, 12):

        def __init__(self, url: str) -> None:
            super().__init__(_public(url))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.url,)

    def __str__(self) -> str:
        return _public(self.url) if self.url else super().__str__()

    def with_segments(self, *parts: Any) -> Path:
        """What is derived from it is a plain path."""
        return Path(*parts)

    def absolute(self) -> RemotePath:
        """An address is absolute."""
        return self

    def resolve(self, strict: bool = False) -> RemotePath:  # noqa: ARG002
        """An address has no links to follow."""
        return self

    def is_dir(self, **_: Any) -> bool:
        """Folders are not listed."""
        return False

    def exists(self, **_: Any) -> bool:
        """Assumed; opening it shows whether it does."""
        return True

    is_file = exists

    def stat(self, **_: Any) -> os.stat_result:
        """The size, and in place of the inode what the server says about the version."""
        system, name = self._system()
        facts = self._guarded(lambda: system.info(name))
        if "html" in str(facts.get("mimetype", "")):
            detail = "is a web page; 'longtake ask --download' fetches its film, if you may"
            raise MediaError(self, "not_a_video", detail)
        if facts.get("type") == "directory" or not isinstance(facts.get("size"), int):
            raise MediaError(self, "unreadable", NO_RANGES)
        marks = (facts.get(key) for key in ("ETag", "etag", "md5Hash", "Last-Modified", "mtime"))
        version = next((zlib.crc32(str(mark).encode()) for mark in marks if mark), 0)
        return os.stat_result((0o100444, version, 0, 1, 0, 0, facts["size"], 0, 0, 0))

    def open(self, _mode: str = "rb", *, payload: bool = True) -> RemoteFile:  # type: ignore[override]
        """Open it for reading; without ``payload``, the media data of an MP4 reads as zeros."""
        system, name = self._system()
        file = self._guarded(
            # a cache that keeps several places, since sound and picture lie apart
            lambda: system.open(name, "rb", block_size=BLOCK, cache_type="blockcache")
        )
        if not file.seekable():
            raise MediaError(self, "unreadable", NO_RANGES)
        reader = RemoteFile(self, file)
        if not payload:
            reader.zeros = _media_data(reader)
        return reader

    def _system(self) -> tuple[Any, str]:
        try:
            import fsspec  # late: an extra
        except ImportError as error:
            raise MissingExtra("remote", "reading an address without 'ask --download'") from error
        # it warns at every range where it may not ask for the kind of a bucket
        logging.getLogger("gcsfs").setLevel(logging.ERROR)
        found: tuple[Any, str] = self._guarded(lambda: fsspec.url_to_fs(self.url))
        return found

    def _guarded(self, act: Callable[[], _T]) -> _T:
        """The result of ``act``; errors are replaced, because their text holds the address."""
        try:
            return act()
        except MediaError:
            raise
        except ImportError as error:
            scheme = urlsplit(self.url).scheme
            extra = "gcs" if scheme in ("gs", "gcs") else "remote"
            raise MissingExtra(extra, f"reading {scheme}://") from error
        except Exception as error:  # noqa: BLE001 - every file system has errors of its own
            raise _explained(self, error) from None


class RemoteFile(io.RawIOBase):
    """A file that is read by ranges, for FFmpeg; a range that comes back short is an error."""

    def __init__(self, path: RemotePath, file: Any) -> None:
        self._path, self._file = path, file
        self.size = int(file.size)
        self.zeros: list[range] = []
        """Where zeros are read instead of the film: when frames are shown is in headers alone."""

    def read(self, size: int = -1, /) -> bytes:
        """The next bytes; fewer where zeros begin or end."""
        here = self.tell()
        left = self.size - here
        wanted = max(0, left if size < 0 else min(size, left))
        for zeros in self.zeros:
            if here in zeros:
                count = min(zeros.stop - here, wanted)
                self.seek(here + count)
                return bytes(count)
            if here < zeros.start:
                wanted = min(wanted, zeros.start - here)
                break
        data: bytes = self._path._guarded(lambda: self._file.read(wanted))
        if len(data) != wanted:
            raise MediaError(self._path, "unreadable", "the server sent less than was asked for")
        return data

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Move; nothing is read."""
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        """Where the next byte comes from."""
        return int(self._file.tell())

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def close(self) -> None:
        """End the connection."""
        if not self.closed:
            self._file.close()
        super().close()


def _media_data(file: RemoteFile) -> list[range]:
    """Where an MP4 holds its media data; nowhere if it is another format, or not what it claims."""
    found, place = [], 0
    while place + 16 <= file.size:
        file.seek(place)
        head = file.read(16)
        length, kind, start = int.from_bytes(head[:4], "big"), head[4:8], place + 8
        if place == 0 and kind != b"ftyp":
            break
        if length == 1:
            length, start = int.from_bytes(head[8:16], "big"), place + 16
        end = place + length if length else file.size
        if end < start:
            break
        if kind == b"mdat":
            found.append(range(start, min(end, file.size)))
        place = end
    file.seek(0)
    return found


def _public(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _explained(path: RemotePath, error: BaseException) -> MediaError:
    # over HTTP, fsspec says that there is no file whatever goes wrong
    if isinstance(error, FileNotFoundError) and error.__cause__ is not None:
        error = error.__cause__
    status = getattr(error, "status", None)
    response = getattr(error, "response", None)
    if status is None and isinstance(response, dict):
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    if status in (404, 410) or isinstance(error, FileNotFoundError):
        return MediaError(path, "not_found", "no such file")
    if status in (401, 403) or isinstance(error, PermissionError):
        detail = "access is denied: the link or the credentials are missing, wrong or expired"
    elif isinstance(error, ValueError):
        detail = NO_RANGES
    else:
        detail = f"cannot be read ({f'status {status}' if status else type(error).__name__})"
    return MediaError(path, "unreadable", detail)
