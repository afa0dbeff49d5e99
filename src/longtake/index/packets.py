"""A film's headers and packet table as a layer: reopening the film does not read the file."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from longtake.config import MediaSettings
from longtake.events import note_once
from longtake.index.store import UNREADABLE, Arrays, FilmFolder, LayerKey, Notes, note_damage
from longtake.media.packets import PacketTable
from longtake.media.video import StreamInfo, Video, VideoInfo

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
        # looking at a film needs no room on disk
        note_once("cache_not_written", why=f"{folder.path}: {error.strerror or error}")
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
