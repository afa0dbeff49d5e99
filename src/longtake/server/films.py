"""Finds, opens and deletes the films in the server's folders, and takes uploads and downloads.

A path is opened only if, with all links resolved, it lies in one of the folders.

Uploads, and downloads from allowed domains, are streamed to a draft in the folder of uploads and
renamed once they are known to be films. A server that is killed leaves a draft, never half a film;
the next one removes it.
"""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import os
import re
import socket
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import closing
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Literal, TypeAlias
from urllib.parse import urljoin, urlsplit

import httpx
from pydantic import BaseModel

from longtake._util import disk_is_full
from longtake.config import MediaSettings
from longtake.errors import ConfigError, LongtakeError, MediaError
from longtake.footage.plain import FrameFootage
from longtake.index.film import Film
from longtake.index.store import private_folder
from longtake.runner.films import open_film, open_frames, open_store
from longtake.server.options import ServeOptions
from longtake.types import Frame
from longtake.video import container
from longtake.video.pictures import encoded
from longtake.video.video import probe


def jpeg(frame: Frame) -> bytes:
    """A frame as JPEG."""
    # a usual compromise between sharpness and size
    return encoded(frame.pixels, "jpeg", quality=82)


def frame_at(film: Film, time: float, width: int) -> Frame:
    """The frame on screen at a time; the last one at the very end."""
    (shown,) = film.at([min(max(0.0, time), film.duration)], width=width)
    return shown


SUFFIXES = container.SUFFIXES | {".gif", ".h265"}
"""Endings of the files that are listed as films."""
MAX_LISTED = 5000
"""Films in a listing."""
LISTING_SECONDS = 2.0
"""How long a listing is reused."""
SENT = "sent-"
"""Prefix of the ids of films that came with a question; they are not listed."""
_SENT_ID = re.compile(rf"{SENT}[0-9a-f]{{32}}")
Origin: TypeAlias = Literal["folder", "upload"]


class NoSuchFilm(MediaError):
    """There is no film of that id, or it lies outside the server's folders."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "not_found", "no film of this server; films lie below --films")


def reason_of(error: Exception) -> str:
    """What users see of a bug, without its message, which may hold paths or data."""
    if disk_is_full(error):
        return "the server's disk is full"
    return f"internal error: {type(error).__name__} (the server's log says more)"


def public_message(error: LongtakeError) -> str:
    """An error message without the folder of the file."""
    if isinstance(error, MediaError):
        return f"{Path(error.path).name}: {error.detail}"
    return str(error)


class FilmFile(BaseModel):
    """A film as it is listed, before it is opened."""

    id: str
    name: str
    folder: str
    """Its folder, relative to the folder that is served."""
    size: int
    changed: float
    """Unix time."""
    origin: Origin


class ServedFilms:
    """Finds and opens films, and nothing else."""

    def __init__(self, options: ServeOptions) -> None:
        self._settings = options.settings
        # one by one: missing parents would be created readable by others
        for folder in (options.data.parent, options.data, options.uploads):
            private_folder(folder)
        self._uploads = options.uploads.resolve()
        self._sent = options.data.resolve() / "sent"
        self._roots = [root.resolve() for root in options.films]
        self._lock = threading.Lock()
        self._listed: dict[str, tuple[Path, FilmFile]] = {}
        self._listed_at = -LISTING_SECONDS
        # few, because an open film keeps the times of all its packets in memory
        self._opened = lru_cache(maxsize=8)(self._open_version)

    def films(self) -> list[FilmFile]:
        """Every film, by folder and name."""
        files = [file for _, file in self._listing().values()]
        return sorted(files, key=lambda file: (file.folder.lower(), file.name.lower()))

    def path(self, film: str) -> Path:
        """The file of a film; raises :class:`NoSuchFilm`."""
        return self._entry(film)[0]

    def footage(self, film: str) -> Film | FrameFootage:
        """A film, or the pictures that came with a question."""
        path = self.path(film)
        return open_frames(path, self._settings) if path.is_dir() else self.open(film)

    def file(self, film: str) -> FilmFile:
        """How a film is listed."""
        return self._entry(film)[1]

    def _entry(self, film: str) -> tuple[Path, FilmFile]:
        if _SENT_ID.fullmatch(film):
            # films that came with a question are not listed, but can be named
            for path in self._sent.glob(f"{film}*"):
                return path, _listed_file(film, path, "", "upload")
            raise NoSuchFilm(film)
        entry = self._listing().get(film)
        if entry is None:
            # it may have been added since the last listing
            entry = self._listing(fresh=True).get(film)
        if entry is None or not self.allowed(entry[0]):
            raise NoSuchFilm(film)
        return entry

    def find(self, name: str) -> str:
        """The id of a film: by id, name, name without its ending, path below its folder, or path.

        A name that several films have is refused.
        """
        if _SENT_ID.fullmatch(name):
            return name
        matches = _named(name, self._listing()) or _named(name, self._listing(fresh=True))
        # the server does not guess which one is meant
        if len(matches) > 1:
            raise ConfigError(f"{name} could be {len(matches)} films; name its folder, too")
        return matches[0] if matches else self.add(Path(name))

    def add(self, path: Path) -> str:
        """The id of the film at a path, which must lie in one of the folders."""
        try:
            resolved = path.expanduser().resolve()
            film = film_id(resolved)
            listed = self.allowed(resolved) and film in self._listing(fresh=True)
        except (OSError, ValueError, RuntimeError) as error:
            # too long, with a NUL or a lone surrogate, or in the home of an unknown user
            raise NoSuchFilm(path.name) from error
        # the same message in every case: it must not reveal which other files exist
        if not listed:
            raise NoSuchFilm(path.name)
        return film

    def open(self, film: str) -> Film:
        """A film, opened once while its file stays the same."""
        path = self.path(film)
        status = path.stat()
        return self._opened(path, status.st_mtime_ns, status.st_size)

    def _open_version(self, path: Path, modified: int, size: int) -> Film:  # noqa: ARG002
        return open_film(path, self._settings)

    def delete(self, film: str) -> int:
        """Remove what was derived from a film, and the film itself if it was uploaded."""
        path, file = self.path(film), self.file(film)
        freed = open_store(self._settings).clear(self.open(film).fingerprint)
        self._opened.cache_clear()
        # files in the user's own folders are never deleted
        if file.origin == "upload":
            path.unlink()
            freed += file.size
        self.refresh()
        return freed

    def refresh(self) -> None:
        """Forget the listing."""
        self._listed_at = -LISTING_SECONDS

    def folders(self) -> list[Path]:
        """The folders, or single films, that are served; the folder of uploads comes last."""
        return [*self._roots, self._uploads]

    def folder_names(self) -> list[str]:
        """Names of the folders for the page, without their paths on this machine."""
        return [*(root.name for root in self._roots), "uploads"]

    def allowed(self, path: Path) -> bool:
        """Whether a path, with all links resolved, lies in one of the folders."""
        resolved = Path(os.path.realpath(path))
        return any(resolved.is_relative_to(root) for root in self.folders())

    def _listing(self, *, fresh: bool = False) -> dict[str, tuple[Path, FilmFile]]:
        with self._lock:
            if fresh or time.monotonic() - self._listed_at >= LISTING_SECONDS:
                self._listed = dict(islice(self._scan(), MAX_LISTED))
                self._listed_at = time.monotonic()
            return self._listed

    def _scan(self) -> Iterator[tuple[str, tuple[Path, FilmFile]]]:
        for root in self.folders():
            origin: Origin = "upload" if root == self._uploads else "folder"
            for path in _files_below(root):
                resolved = Path(os.path.realpath(path))
                if not self.allowed(resolved):
                    continue
                # a film that is served by itself lies in no folder
                folder = "." if path == root else path.parent.relative_to(root).as_posix()
                folder = "" if folder == "." else folder
                try:
                    file = _listed_file(film_id(resolved), path, folder, origin)
                except OSError:
                    continue  # removed meanwhile
                yield file.id, (resolved, file)


def _named(name: str, listing: Mapping[str, tuple[Path, FilmFile]]) -> list[str]:
    found = []
    for _, file in listing.values():
        path = f"{file.folder}/{file.name}" if file.folder else file.name
        if name in (file.id, file.name, path, Path(file.name).stem):
            found.append(file.id)
    return found


def _listed_file(film: str, path: Path, folder: str, origin: Origin) -> FilmFile:
    status = path.stat()
    # names of files are bytes, and JSON is Unicode
    name, folder = (text.encode(errors="replace").decode() for text in (path.name, folder))
    return FilmFile(
        id=film,
        name=name,
        folder=folder,
        size=status.st_size,
        changed=status.st_mtime,
        origin=origin,
    )


def film_id(path: Path) -> str:
    """The id of the film at a path, whatever links lead there."""
    # unlike resolve(), this takes links that lead to themselves
    return hashlib.blake2b(os.fsencode(os.path.realpath(path)), digest_size=8).hexdigest()


def _files_below(root: Path) -> Iterator[Path]:
    # a film may be served by itself
    if root.is_file():
        yield root
        return
    for folder, below, names in os.walk(root):
        depth = len(Path(folder).relative_to(root).parts)
        # hidden folders hold caches and the like; links to folders are not followed
        below[:] = sorted(name for name in below if not name.startswith("."))
        # a listing of a whole disk would take minutes
        if depth >= 6:
            below.clear()
        for name in sorted(names):
            path = Path(folder) / name
            if name.startswith(".") or path.suffix.lower() not in SUFFIXES:
                continue
            # neither pipes, devices nor links that lead nowhere
            if path.is_file():
                yield path


DRAFT = ".arriving-"
_UNSAFE = re.compile(r"[^\w .()\[\]&+,'-]+")


class TooLarge(MediaError):
    """More bytes than the server accepts."""

    def __init__(self, name: str, max_bytes: int) -> None:
        super().__init__(name, "too_large", f"larger than {max_bytes:,} bytes (--max-upload)")


def safe_name(name: str) -> str:
    """A plain file name with the ending of a film."""
    # the last part of a path with either kind of slash
    last = re.split(r"[/\\]", name)[-1]
    stem, suffix = os.path.splitext(_UNSAFE.sub("_", last).lstrip(". "))  # noqa: PTH122
    if suffix.lower() not in SUFFIXES:
        raise MediaError(last or "upload", "not_a_video", "the name must end like that of a film")
    # file systems count bytes, up to 255, and a number may be added
    stem = stem.encode()[:200].decode(errors="ignore")
    return f"{stem or 'film'}{suffix.lower()}"


class Uploads:
    """Stores films in the folder of uploads."""

    def __init__(self, options: ServeOptions) -> None:
        self._folder, self._limits = options.uploads, options.settings.media
        self._max_bytes = options.max_upload
        self._domains = [domain.lower() for domain in options.allow_url]
        # left by a server that was killed
        for draft in self._folder.glob(f"{DRAFT}*"):
            draft.unlink(missing_ok=True)

    async def upload(self, name: str, body: AsyncIterator[bytes], length: int | None) -> Path:
        """Store a film as it arrives, without blocking the event loop."""
        # before gigabytes are sent in vain
        if length is not None and length > self._max_bytes:
            raise TooLarge(name, self._max_bytes)
        with closing(self._draft(name)) as draft:
            pending = bytearray()
            async for chunk in body:
                pending += chunk
                # starting a thread for every network packet would cost more than writing it
                if len(pending) >= 1 << 22:
                    await asyncio.to_thread(draft.write, pending)
                    pending = bytearray()
            await asyncio.to_thread(draft.write, pending)
            if length is not None and draft.size != length:
                raise MediaError(name, "truncated", f"{draft.size} of {length} bytes arrived")
            return await asyncio.to_thread(draft.keep)

    def download(self, url: str) -> Path:
        """Store a film from an allowed domain."""
        self.check_url(url)
        with closing(self._draft(Path(urlsplit(url).path).name)) as draft:
            try:
                for chunk in self._body(url):
                    draft.write(chunk)
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                raise MediaError(url, "unreadable", f"cannot be downloaded ({error})") from error
            return draft.keep()

    def _draft(self, name: str) -> _Draft:
        return _Draft(self._folder, safe_name(name), self._max_bytes, self._limits)

    def check_url(self, url: str) -> str:
        """The host of a URL; raises unless its domain was allowed."""
        try:
            parts = urlsplit(url)
            parts.port  # noqa: B018 - raises if it is not a number
        except ValueError as error:
            raise ConfigError(f"{url}: not a URL ({error})") from error
        host = (parts.hostname or "").lower().rstrip(".")
        allowed = any(host == domain or host.endswith(f".{domain}") for domain in self._domains)
        if parts.scheme not in ("http", "https") or parts.username or not allowed:
            raise ConfigError(f"{host or url}: not allowed; start longtake serve with --allow-url")
        return host

    def _body(self, url: str) -> Iterator[bytes]:
        """The content of a URL; every hop is checked and connects to the address checked."""
        for _ in range(5):
            host = self.check_url(url)
            parts = urlsplit(url)
            port = parts.port or (443 if parts.scheme == "https" else 80)
            address = public_address(host, port)
            pinned = parts._replace(netloc=f"{address}:{port}").geturl()
            # the certificate is checked against the name, the connection goes to the address
            with (
                httpx.Client(trust_env=False, timeout=30.0) as client,
                client.stream(
                    "GET",
                    pinned,
                    headers={"Host": parts.netloc.rpartition("@")[2]},
                    extensions={"sni_hostname": host},
                ) as response,
            ):
                if not response.is_redirect:
                    response.raise_for_status()
                    yield from response.iter_bytes()
                    return
                url = urljoin(url, response.headers.get("location", ""))
        raise ConfigError(f"{url}: too many redirects")


def public_address(host: str, port: int) -> str:
    """An address of a host; raises if any of its addresses is not public."""
    try:
        entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:  # the latter for labels that are empty or too long
        raise ConfigError(f"{host}: cannot be found ({error})") from error
    addresses = [ipaddress.ip_address(str(entry[4][0])) for entry in entries]
    # all of them: a name with one private address is an attempt to reach this network
    if not addresses or not all(map(_is_public, addresses)):
        raise ConfigError(f"{host}: leads to an address that is not public")
    first = addresses[0]
    return f"[{first}]" if first.version == 6 else str(first)


UNICAST = ipaddress.IPv6Network("2000::/3")
"""Elsewhere, addresses may stand for those of IPv4, private ones too, as in 64:ff9b::7f00:1."""


def _is_public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address):
        tunnelled = address.sixtofour is not None or address.teredo is not None
        return address.is_global and address in UNICAST and not tunnelled
    return address.is_global and not address.is_multicast


class _Draft:
    """A file that becomes a film of the given name if its content is a film."""

    naming = threading.Lock()
    """Held while a free name is chosen and taken: films with one name may arrive together."""

    def __init__(self, folder: Path, name: str, max_bytes: int, limits: MediaSettings) -> None:
        self.size = 0
        self._folder, self._name, self._max_bytes, self._limits = folder, name, max_bytes, limits
        # not readable by other users of this machine
        descriptor, path = tempfile.mkstemp(Path(name).suffix, DRAFT, folder)
        self._path, self._file = Path(path), os.fdopen(descriptor, "wb")

    def write(self, data: bytes | bytearray) -> None:
        """Append some bytes, unless that makes the file too large."""
        # counted here, because a chunked upload declares no length
        self.size += len(data)
        if self.size > self._max_bytes:
            raise TooLarge(self._name, self._max_bytes)
        self._file.write(data)

    def keep(self) -> Path:
        """Check that the content is a film, and rename the file to a free name."""
        self._file.flush()
        # a film that is listed survives a power cut
        os.fsync(self._file.fileno())
        try:
            probe(self._path, self._limits)
        except MediaError as error:
            # under the name that the sender knows
            raise MediaError(self._name, error.problem, error.detail) from error
        # between choosing a free name and taking it, another film could take it
        with self.naming:
            return self._path.rename(_free(self._folder, self._name))

    def close(self) -> None:
        """Close the file, and remove it unless it was kept."""
        self._file.close()
        self._path.unlink(missing_ok=True)


def _free(folder: Path, name: str) -> Path:
    """A path with that name, numbered if the name is taken."""
    path = folder / name
    number = 2
    while path.exists():
        path = folder / f"{Path(name).stem} ({number}){Path(name).suffix}"
        number += 1
    return path
