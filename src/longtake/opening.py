"""Films and the store from settings: all that commands need which ask no model."""

from __future__ import annotations

from pathlib import Path

from longtake.config import Settings, cache_folder
from longtake.footage.film import Film
from longtake.footage.store import Store


def open_store(settings: Settings) -> Store:
    """The user's store."""
    return Store(cache_folder(settings), limit_bytes=settings.cache.limit_gb * 1e9)


def open_film(
    path: Path, settings: Settings, *, subtitles: Path | None = None, subtitles_begin: float = 0.0,
    full_hash: bool = False,
) -> Film:  # fmt: skip
    """A film with its part of the user's store; ``subtitles_begin`` is the time in them at which the film begins."""
    return Film(
        path, open_store(settings), settings, subtitles=subtitles, subtitles_begin=subtitles_begin, full_hash=full_hash
    )
