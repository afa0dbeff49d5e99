"""Watches folders and adds films as they appear.

Folders are looked through every few seconds: that works on network drives, where notifications do
not. A file counts once it has stopped growing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from longtake.library.adding import Report
from longtake.library.collection import Library
from longtake.media.container import FileVersion, file_version
from longtake.media.folders import films_in

EVERY = 5.0
"""Seconds between looks."""
Snapshot: TypeAlias = dict[Path, FileVersion]


def snapshot(paths: Sequence[Path]) -> Snapshot:
    """The films below some folders as they are now; folders that are gone are left out."""
    there = [path for path in paths if path.exists()]
    return {place.path: file_version(place.path) for place in films_in(there)}


def watch(
    library: Library,
    paths: Sequence[Path],
    add: Callable[[], Report],
    *,
    on_round: Callable[[Report], None] = lambda _: None,
    every: float = EVERY,
    sleep: Callable[[float], None] = time.sleep,
    rounds: int | None = None,
) -> None:
    """Add what is there, then whatever appears or changes, until interrupted.

    ``rounds`` ends it after so many looks, for tests.
    """
    # looked at first: a film that appears while the others are added is new in the next round
    done = before = snapshot(paths)
    on_round(add())
    looked = 0
    while rounds is None or looked < rounds:
        sleep(every)
        looked += 1
        now = snapshot(paths)
        # two looks that agree: whoever is copying files here has finished
        if now == before and now != done:
            library.catalogue.watch(path.absolute() for path in paths if path.is_dir())
            on_round(add())
            done = now
        before = now
