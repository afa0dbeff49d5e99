"""Films, the store and perception, opened as the settings say."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

import numpy as np

from longtake.algorithms.speakers import speaker, speakers
from longtake.config import PerceptionSettings, Settings, cache_folder
from longtake.errors import ConfigError, unknown
from longtake.footage.plain import FrameFootage
from longtake.index.film import Film
from longtake.index.store import Store
from longtake.perception.loader import PerceptionModels
from longtake.types import Frame
from longtake.video.pictures import open_picture

VIDEO_SUFFIXES = (".mp4", ".mkv", ".webm", ".avi", ".mov")
"""Suffixes of the videos in datasets."""


def open_store(settings: Settings) -> Store:
    """Open the user's store."""
    return Store(cache_folder(settings), limit_bytes=settings.cache.limit_gb * 1e9)


def open_film(
    path: Path,
    settings: Settings,
    *,
    subtitles: Path | None = None,
    subtitles_begin: float = 0.0,
    senses: PerceptionModels | None = None,
) -> Film:
    """Open a film with its folder in the user's store.

    ``subtitles_begin`` is the time in the subtitles at which the film begins; ``senses`` replace
    the models of perception that the settings choose.
    """
    store = open_store(settings)
    return Film(
        path,
        store,
        settings,
        senses=senses or _shared_models(settings.perception, store.root),
        subtitles=subtitles,
        subtitles_begin=subtitles_begin,
    )


def open_frames(folder: Path, settings: Settings) -> FrameFootage:
    """Open a folder of pictures, numbered from 0, with their times in ``times.json``."""
    times = json.loads((folder / "times.json").read_bytes())
    frames = []
    for number, time in enumerate(times):
        with open_picture(folder / f"{number:05d}") as picture:
            frames.append(Frame(time, np.asarray(picture.convert("RGB"))))
    store = open_store(settings)
    name = f"{len(frames)} pictures"
    return FrameFootage(name, frames, _shared_models(settings.perception, store.root))


def open_perception(settings: Settings) -> PerceptionModels:
    """The models of perception that films opened with these settings use."""
    return _shared_models(settings.perception, open_store(settings).root)


@lru_cache(maxsize=1)
def _shared_models(settings: PerceptionSettings, cache: Path) -> PerceptionModels:
    """Loads the models of perception once per process, since that takes seconds."""
    return PerceptionModels(settings, cache)


def rename_speaker(film: Film, label: str, name: str) -> None:
    """Rename a speaker; raises for an unknown speaker or an invalid name."""
    known = list(speakers(film.words.speech()))
    if label not in known:
        raise unknown("speaker", label, known)
    if not speaker(f"{name.strip()}: …")[0]:
        raise ConfigError(f"{name.strip() or 'an empty name'}: not a valid name of a speaker")
    film.source.text.rename(label, name.strip())
