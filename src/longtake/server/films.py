"""The films below the server's folders: found, named by an id, opened, deleted; and their frames.

Only a path that lies in one of the folders with all links followed is ever opened.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from PIL import Image

from longtake.errors import LongtakeError, MediaError
from longtake.footage.plain import FrameFootage
from longtake.index.film import Film
from longtake.index.store import private_folder
from longtake.runner.films import open_film, open_frames, open_store
from longtake.server.options import ServeOptions
from longtake.types import Frame


def jpeg(frame: Frame) -> bytes:
    """A frame as JPEG."""
    data = io.BytesIO()
    # a usual compromise between sharpness and size
    Image.fromarray(frame.pixels).save(data, "JPEG", quality=82)
    return data.getvalue()


def frame_at(film: Film, time: float, width: int) -> Frame:
    """The frame on screen at a time; the last one at the very end."""
    (shown,) = film.at([min(max(0.0, time), film.duration)], width=width)
    return shown


def jpeg_at(film: Film, time: float, width: int) -> bytes:
    """The frame on screen at a time, as JPEG."""
    return jpeg(frame_at(film, time, width))


SUFFIXES = frozenset(
    {
        *(".mp4", ".m4v", ".mov", ".mkv", ".webm", ".avi", ".ts", ".m2ts", ".mts", ".mpg"),
        *(".mpeg", ".flv", ".wmv", ".asf", ".ogv", ".mxf", ".3gp", ".vob", ".gif", ".h264"),
        *(".h265", ".hevc", ".ivf", ".nut"),
    }
)
"""Endings of the files that are listed as films."""
MOST = 5000
"""Films that are listed."""
FRESH = 2.0
"""Seconds for which a listing is used again."""
SENT = "sent-"
"""What the ids of films begin with that came with a question; they are not listed."""
_SENT_ID = re.compile(rf"{SENT}[0-9a-f]{{32}}")


Origin: TypeAlias = Literal["folder", "upload"]


class NoSuchFilm(MediaError):
    """There is no film of that id, or it lies outside the server's folders."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "not_found", "no film of this server; films lie below --films")


def public_message(error: LongtakeError) -> str:
    """An error without the place of its file, which is nobody's business."""
    if isinstance(error, MediaError):
        return f"{Path(error.path).name}: {error.detail}"
    return str(error)


@dataclass(frozen=True)
class FilmFile:
    """A film as it is listed, before it is opened."""

    id: str
    name: str
    folder: str
    """Where it lies, relative to the folder that is served."""
    size: int
    changed: float
    """Unix time."""
    origin: Origin


class ServedFilms:
    """Finds and opens films, and nothing else."""

    def __init__(self, options: ServeOptions) -> None:
        self._settings = options.settings
        # one by one: missing parents would be created readable for others
        for folder in (options.data.parent, options.data, options.uploads):
            private_folder(folder)
        self._uploads = options.uploads.resolve()
        self._sent = options.data.resolve() / "sent"
        self._roots = [root.resolve() for root in options.films]
        self._lock = threading.Lock()
        self._listed: dict[str, tuple[Path, FilmFile]] = {}
        self._listed_at = -FRESH
        self._open: OrderedDict[tuple[str, int, int], Film] = OrderedDict()

    def films(self) -> list[FilmFile]:
        """Every film, by name."""
        # by folder, as file managers do
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

    def add(self, path: Path) -> str:
        """The id of a film below one of the folders, given by path."""
        try:
            resolved = path.expanduser().resolve()
            film = film_id(resolved)
            listed = self.allowed(resolved) and film in self._listing(fresh=True)
        except (OSError, ValueError, RuntimeError) as error:
            # too long, with a NUL or a lone surrogate, or in the home of an unknown user
            raise NoSuchFilm(path.name) from error
        # the same words in every case: whether other files exist is nobody's business
        if not listed:
            raise NoSuchFilm(path.name)
        return film

    def open(self, film: str) -> Film:
        """A film, opened once while its file stays the same."""
        path = self.path(film)
        status = path.stat()
        key = (film, status.st_mtime_ns, status.st_size)
        with self._lock:
            # opening reads the times of all packets of the film
            if key in self._open:
                self._open.move_to_end(key)
                return self._open[key]
        opened = open_film(path, self._settings)
        with self._lock:
            self._open[key] = opened
            # each keeps the times of all its packets in memory
            while len(self._open) > 8:
                self._open.popitem(last=False)
        return opened

    def delete(self, film: str) -> int:
        """Remove what was derived from a film, and the film itself if it was uploaded."""
        path, file = self.path(film), self.file(film)
        freed = open_store(self._settings).clear(self.open(film).fingerprint)
        with self._lock:
            for key in [key for key in self._open if key[0] == film]:
                del self._open[key]
        # files in the user's own folders are never deleted
        if file.origin == "upload":
            path.unlink()
            freed += file.size
        self.refresh()
        return freed

    def refresh(self) -> None:
        """Forget the listing."""
        self._listed_at = -FRESH

    def folders(self) -> list[Path]:
        """The folders, and the films served by themselves; uploads come last."""
        return [*self._roots, self._uploads]

    def folder_names(self) -> list[str]:
        """The folders as a page names them: not where they lie on this machine."""
        return [*(root.name for root in self._roots), "uploads"]

    def allowed(self, path: Path) -> bool:
        """Whether a path, with all links followed, lies below one of the folders."""
        resolved = path.resolve()
        return any(resolved.is_relative_to(root) for root in self.folders())

    def _listing(self, *, fresh: bool = False) -> dict[str, tuple[Path, FilmFile]]:
        with self._lock:
            if fresh or time.monotonic() - self._listed_at >= FRESH:
                self._listed = dict(self._scan())
                self._listed_at = time.monotonic()
            return self._listed

    def _scan(self) -> Iterator[tuple[str, tuple[Path, FilmFile]]]:
        count = 0
        for root in self.folders():
            origin: Origin = "upload" if root == self._uploads else "folder"
            for path in _files_below(root):
                resolved = path.resolve()
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
                count += 1
                if count >= MOST:
                    return


def _listed_file(film: str, path: Path, folder: str, origin: Origin) -> FilmFile:
    status = path.stat()
    # names of files are bytes, and JSON is Unicode
    name, folder = (text.encode(errors="replace").decode() for text in (path.name, folder))
    return FilmFile(film, name, folder, status.st_size, status.st_mtime, origin)


def film_id(path: Path) -> str:
    """The id of the film at a resolved path."""
    return hashlib.blake2b(os.fsencode(path), digest_size=8).hexdigest()


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
            if not name.startswith(".") and Path(name).suffix.lower() in SUFFIXES:
                yield Path(folder) / name
