"""One film file: where it is, its folder in the store, and its decoder."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from longtake.config import Settings
from longtake.index.fingerprint import fingerprint
from longtake.index.packets import open_video
from longtake.index.store import Arrays, LayerKey, Notes, Store
from longtake.index.text import TextStore
from longtake.media.video import Video
from longtake.types import Segment


class Source:
    """What every part of a film's index starts from."""

    def __init__(
        self, path: Path, store: Store, settings: Settings, *, full_hash: bool = False
    ) -> None:
        self.path, self.settings = path, settings
        self.fingerprint = fingerprint(path, full=full_hash)
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
