"""The store and films, from settings: what the commands need that ask no model."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from longtake.config import PerceptionSettings, Settings, cache_folder
from longtake.index.film import Film
from longtake.index.store import Store
from longtake.perception.senses import Senses


def open_store(settings: Settings) -> Store:
    """The user's store."""
    return Store(cache_folder(settings), limit_bytes=settings.cache.limit_gb * 1e9)


def open_film(
    path: Path,
    settings: Settings,
    *,
    subtitles: Path | None = None,
    subtitles_begin: float = 0.0,
    full_hash: bool = False,
    senses: Senses | None = None,
) -> Film:
    """A film with its part of the user's store.

    ``subtitles_begin`` is the time in the subtitles at which the film begins; ``senses`` take the
    place of those that the settings name.
    """
    store = open_store(settings)
    return Film(
        path,
        store,
        settings,
        senses=senses or _senses(settings.perception, store.root),
        subtitles=subtitles,
        subtitles_begin=subtitles_begin,
        full_hash=full_hash,
    )


@lru_cache(maxsize=1)
def _senses(settings: PerceptionSettings, cache: Path) -> Senses:
    """Loading models takes seconds, so all films of a process share one set until settings change."""
    return Senses(settings, cache)
