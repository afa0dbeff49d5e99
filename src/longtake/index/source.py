"""The file that an index starts from: its fingerprint, its packet table and its folder."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtake.config import MediaSettings, Settings
from longtake.index.store import UNREADABLE, Arrays, FilmFolder, LayerKey, Notes, Store, note_damage
from longtake.index.text import TextStore
from longtake.tracing.events import note_once
from longtake.types import Segment
from longtake.video.container import check_plain_file
from longtake.video.packets import PacketTable
from longtake.video.video import StreamInfo, Video, VideoInfo

PIECE = 2**20
"""Bytes hashed at the head, middle and tail."""


def fingerprint(path: Path) -> str:
    """Hash of the size, head, middle and tail of a file.

    A film that is moved or renamed keeps its store; one that is edited gets a new store. Two films
    of equal size that differ only between the hashed pieces share a fingerprint.
    """
    size = check_plain_file(path)
    hasher = hashlib.blake2b(f"parts:{size}:".encode(), digest_size=16)
    with path.open("rb") as file:
        if size <= 3 * PIECE:
            while piece := file.read(PIECE):
                hasher.update(piece)
        else:
            for offset in (0, size // 2, size - PIECE):
                file.seek(offset)
                hasher.update(file.read(PIECE))
    return hasher.hexdigest()


PACKETS = LayerKey("packets", 2)
_COLUMNS = ("pts", "dts", "key", "shown")
_FACTS = ("tick", "origin", "duration", "timed")


def open_video(folder: FilmFolder, path: Path, limits: MediaSettings) -> Video:
    """The film's decoder, opened from the stored packet table if there is one."""
    video = load_video(folder, path, limits)
    try:
        if video is not None:
            folder.use(path)
            return video
        video = Video(path, limits=limits)
        len(video.table)  # a file that is not a film fails here, before a folder is made for it
        _keep(folder, video)
    except OSError as error:
        if video is None:
            raise
        # a film can be used without the cache
        remedy = "set $LONGTAKE_CACHE or cache.folder"
        note_once("cache_not_written", why=f"{folder.path}: {error.strerror or error}; {remedy}")
    return video


def _keep(folder: FilmFolder, video: Video) -> None:
    folder.use(video.path)
    # not ``once``: a layer that can be read may still not make a packet table
    folder.ensure(
        lambda: load_video(folder, video.path, video.limits) is not None,
        lambda: folder.write(PACKETS, *_packed(video)),
    )


def load_video(folder: FilmFolder, path: Path, limits: MediaSettings) -> Video | None:
    """The film from its stored headers and packet table; ``None`` if missing or damaged."""
    stored = folder.read(PACKETS)
    if stored is None:
        return None
    try:
        return _restored(path, limits, *stored)
    except UNREADABLE as error:
        note_damage(folder.path / "layers" / str(PACKETS), error)
        return None


def _packed(video: Video) -> tuple[Arrays, Notes]:
    table = video.table
    arrays = {name: getattr(table, name) for name in _COLUMNS}
    facts = {name: getattr(table, name) for name in _FACTS}
    return arrays, {"info": dataclasses.asdict(video.info), "table": facts}


def _restored(path: Path, limits: MediaSettings, arrays: Arrays, notes: Mapping[str, Any]) -> Video:
    info = dict(notes["info"])
    # JSON has turned the tracks into plain dictionaries
    for name in ("audio", "subtitles"):
        info[name] = tuple(StreamInfo(**track) for track in info[name])
    columns: dict[str, Any] = {name: np.asarray(arrays[name]) for name in _COLUMNS}
    table = PacketTable(**columns, **notes["table"])
    return Video(path, limits=limits, info=VideoInfo(**info), table=table)


class IndexedSource:
    """What every part of a film's index starts from."""

    def __init__(self, path: Path, store: Store, settings: Settings) -> None:
        self.path, self.settings = path, settings
        self.fingerprint = fingerprint(path)
        self.folder = store.film(self.fingerprint, path)
        self.text = TextStore(self.folder.path / "text.db")

    @cached_property
    def video(self) -> Video:
        """The decoder, opened from the stored packet table if there is one."""
        return open_video(self.folder, self.path, self.settings.media)

    def ensure(self, done: Callable[[], bool], make: Callable[[], None]) -> None:
        """Run ``make`` under the build lock unless ``done``."""
        if not done():
            self._open()
            self.folder.ensure(done, make)

    def once(self, key: LayerKey, make: Callable[[], tuple[Arrays, Notes]]) -> tuple[Arrays, Notes]:
        """Arrays and notes of a layer, made now unless they are stored already."""
        self._open()
        return self.folder.once(key, make)

    def _open(self) -> None:
        # creates the folder that the lock is in, or fails before a folder is made for no film
        self.video  # noqa: B018

    @property
    def fps(self) -> float:
        """Moments of the grid per second."""
        return self.settings.index.fps

    def grid(self, within: Segment | None = None) -> NDArray[np.float64]:
        """The moments that frame layers refer to, of the whole film or a segment of it."""
        return self.video.grid(self.fps, within)
