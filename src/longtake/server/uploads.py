"""Films that arrive over the network: uploads, and downloads from domains that were allowed.

Both are streamed to a draft beside their final place, checked to be films, and only then take their
name: a killed server leaves a draft, which the next one removes, never half a film.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import re
import secrets
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import httpx

from longtake.config import MediaSettings
from longtake.errors import ConfigError, MediaError
from longtake.server.films import SUFFIXES
from longtake.server.options import ServeOptions
from longtake.video.video import probe

DRAFT = ".arriving-"
_UNSAFE = re.compile(r"[^\w .()\[\]&+,'-]+")


class TooLarge(MediaError):
    """More bytes than the server takes."""

    def __init__(self, name: str, max_bytes: int) -> None:
        super().__init__(name, "too_large", f"larger than {max_bytes:,} bytes (--max-upload)")


def remove_drafts(folder: Path) -> None:
    """Remove what an earlier server left unfinished."""
    for draft in folder.glob(f"{DRAFT}*"):
        draft.unlink(missing_ok=True)


def safe_name(name: str) -> str:
    """A plain file name with the ending of a film."""
    # only the last part of a path, by either kind of slash
    last = re.split(r"[/\\]", name)[-1]
    stem, suffix = os.path.splitext(_UNSAFE.sub("_", last).lstrip(". "))  # noqa: PTH122
    if suffix.lower() not in SUFFIXES:
        raise MediaError(last or "upload", "not_a_video", "the name must end like that of a film")
    # file systems count bytes, up to 255, and a number may be added
    stem = stem.encode()[:200].decode(errors="ignore")
    return f"{stem or 'film'}{suffix.lower()}"


class Uploads:
    """Takes films into the folder of uploads."""

    def __init__(self, options: ServeOptions) -> None:
        self._folder, self._limits = options.uploads, options.settings.media
        self._max_bytes, self._domains = options.max_upload, options.allow_url
        remove_drafts(self._folder)

    async def upload(self, name: str, body: AsyncIterator[bytes], length: int | None) -> Path:
        """Store a film as it arrives; the loop waits for no disk."""
        # refused before gigabytes are sent for nothing
        if length is not None and length > self._max_bytes:
            raise TooLarge(name, self._max_bytes)
        with closing(self._draft(name)) as draft:
            pending = bytearray()
            async for chunk in body:
                pending += chunk
                # a thread for each network packet would cost more than the writing
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
    """An address of a host; raises if any of its addresses is not a public one."""
    try:
        entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:  # the latter for labels that are empty or too long
        raise ConfigError(f"{host}: cannot be found ({error})") from error
    addresses = [ipaddress.ip_address(str(entry[4][0])) for entry in entries]
    # all of them: a name with one private address is an attempt to reach this network
    if not addresses or not all(each.is_global and not each.is_multicast for each in addresses):
        raise ConfigError(f"{host}: leads to an address that is not public")
    first = addresses[0]
    return f"[{first}]" if first.version == 6 else str(first)


class _Draft:
    """A file that becomes a film of a given name if it is one."""

    naming = threading.Lock()
    """Held while a name is chosen and taken: films of one name may arrive at the same time."""

    def __init__(self, folder: Path, name: str, max_bytes: int, limits: MediaSettings) -> None:
        self.size = 0
        self._folder, self._name, self._max_bytes, self._limits = folder, name, max_bytes, limits
        self._path = folder / f"{DRAFT}{secrets.token_hex(8)}{Path(name).suffix}"
        self._file = self._path.open("xb")
        # others on this machine need not see what was sent
        self._path.chmod(0o600)

    def write(self, data: bytes | bytearray) -> None:
        """Append some bytes, unless that makes the file too large."""
        # counted here, because a chunked upload declares no length
        self.size += len(data)
        if self.size > self._max_bytes:
            raise TooLarge(self._name, self._max_bytes)
        self._file.write(data)

    def keep(self) -> Path:
        """Check that it is a film by its content, and give it a name that is free."""
        self._file.flush()
        # a film that is listed survives a power cut
        os.fsync(self._file.fileno())
        try:
            probe(self._path, self._limits)
        except MediaError as error:
            # by the name that the sender knows
            raise MediaError(self._name, error.problem, error.detail) from error
        # between choosing a free name and taking it, another film could take it
        with self.naming:
            return self._path.rename(_free(self._folder, self._name))

    def close(self) -> None:
        """Close the file, and remove it unless it was kept."""
        self._file.close()
        self._path.unlink(missing_ok=True)


def _free(folder: Path, name: str) -> Path:
    """A path of that name, numbered if there is one already."""
    path = folder / name
    number = 2
    while path.exists():
        path = folder / f"{Path(name).stem} ({number}){Path(name).suffix}"
        number += 1
    return path
