"""Films and pictures that come with a question: found in the catalog, or stored by their content.

What is sent is kept in ``<data>/sent`` under the hash of its bytes, so that every question about it
finds the same index. The oldest is removed when there is too much.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

from PIL import Image, UnidentifiedImageError

from longtake.errors import MediaError
from longtake.index.store import private_folder, write_atomically
from longtake.media.video import probe
from longtake.server.films import SENT, NoSuchFilm
from longtake.server.openai.requests import BadRequest, Footage, NamedFilm, SentFrames, SentVideo
from longtake.server.state import State

KEPT = 8_000_000_000
"""Bytes of sent films that are kept."""
MAX_PIXELS = 16_000_000
"""Pixels of a sent picture."""
_BASE64 = re.compile(r"data:(\w+/[\w.+-]+);base64,", re.ASCII)
SUFFIXES = {"video/webm": ".webm", "video/x-matroska": ".mkv", "video/quicktime": ".mov"}


def place(state: State, footage: Footage) -> str:
    """The id of what a question is about; raises if it is not there, or no film."""
    if isinstance(footage, NamedFilm):
        return _named(state, footage.name)
    if isinstance(footage, SentFrames):
        return _frames(state, footage)
    return _video(state, footage)


def _named(state: State, name: str) -> str:
    """A film by id, name, name without its ending, or path below its folder."""
    matches = []
    for file in state.catalog.films():
        path = f"{file.folder}/{file.name}" if file.folder else file.name
        if name in (file.id, file.name, path, Path(file.name).stem):
            matches.append(file.id)
    if not matches:
        raise NoSuchFilm(name)
    if len(matches) > 1:
        raise BadRequest(f"film:{name} could be {len(matches)} films; name its folder, too")
    return matches[0]


def _video(state: State, video: SentVideo) -> str:
    scheme = urlsplit(video.url[:64]).scheme
    if scheme == "file":
        parts = urlsplit(video.url)
        if parts.netloc not in ("", "localhost"):
            raise BadRequest("video_url: a file of another machine")
        return state.catalog.add(Path(unquote(parts.path)))
    if scheme in ("http", "https"):
        return state.catalog.add(state.arrivals.download(video.url))
    if scheme != "data":
        raise BadRequest("video_url: must be file:, http(s): or data:video/…;base64,…")
    kind, data = read_data_url(video.url, "video")
    folder = _folder(state)
    film = f"{SENT}{hashlib.blake2b(data, digest_size=16).hexdigest()}"
    path = folder / f"{film}{SUFFIXES.get(kind, '.mp4')}"
    if not path.exists():
        draft = path.with_name(f".{path.name}")
        draft.write_bytes(data)
        try:
            probe(draft, state.options.settings.media)
            draft.rename(path)
        except MediaError as error:
            # the name of our own file would mean nothing to the client
            raise BadRequest(f"video_url: {error.detail}") from error
        finally:
            draft.unlink(missing_ok=True)
        _evict(folder, keep=path)
    return film


def _frames(state: State, sent: SentFrames) -> str:
    pictures = []
    for url in sent.urls:
        _, data = read_data_url(url, "image")
        _check_picture(data)
        pictures.append(data)
    # without times, pictures are one second apart, and the answer says that this is made up
    times = sent.times or tuple(float(number) for number in range(len(pictures)))
    digest = hashlib.blake2b(json.dumps(times).encode(), digest_size=16)
    for data in pictures:
        digest.update(hashlib.blake2b(data).digest())
    film = f"{SENT}{digest.hexdigest()}"
    folder = _folder(state) / film
    if not (folder / "times.json").exists():
        private_folder(folder)
        for number, data in enumerate(pictures):
            (folder / f"{number:05d}").write_bytes(data)
        # written last: a folder with this file is complete
        write_atomically(folder / "times.json", json.dumps(times).encode())
        _evict(folder.parent, keep=folder)
    return film


def _folder(state: State) -> Path:
    return private_folder(state.options.data / "sent")


def read_data_url(url: str, kind: str) -> tuple[str, bytes]:
    """The media type and the bytes of a data URL of an ``image`` or a ``video``."""
    head = _BASE64.match(url)
    if head is None or not head[1].startswith(f"{kind}/"):
        raise BadRequest(f"{kind}_url: only data:{kind}/…;base64,… is supported")
    try:
        return head[1], base64.b64decode(url[head.end() :], validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadRequest(f"{kind}_url: not base64") from error


@contextmanager
def opened_picture(data: bytes) -> Iterator[Image.Image]:
    """A sent picture, whose size is checked before it is decoded."""
    try:
        with Image.open(io.BytesIO(data)) as picture:
            if picture.width * picture.height > MAX_PIXELS:
                raise BadRequest(f"image_url: {picture.width}×{picture.height} is too large")
            yield picture
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError) as error:
        raise BadRequest("image_url: not a picture") from error


def _check_picture(data: bytes) -> None:
    with opened_picture(data) as picture:
        picture.verify()


def _evict(folder: Path, keep: Path) -> None:
    """Remove the oldest of what was sent, until the rest is below the limit."""
    entries = sorted(folder.iterdir(), key=lambda entry: entry.stat().st_mtime, reverse=True)
    total = 0
    for entry in entries:
        files = [entry, *entry.rglob("*")] if entry.is_dir() else [entry]
        total += sum(file.stat().st_size for file in files)
        if total > KEPT and entry != keep:
            if entry.is_dir():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)
