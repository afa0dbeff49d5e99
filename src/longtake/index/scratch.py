"""A stand-in for a cache that cannot be written, because the disk is full or read-only.

What the cache holds is still used: finished layers and models are linked, databases are copied.
What is computed goes to a temporary folder and is gone when the process ends.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import lru_cache
from pathlib import Path

from longtake.events import note_once
from longtake.index.store import FilmFolder, Store, private_folder

PROBE = bytes(2**16)
"""What is written to see whether a disk has room."""


def writable_store(store: Store) -> Store:
    """Return the store itself, or a stand-in if it cannot be written."""
    problem = _problem(store.root)
    if not problem:
        return store
    try:
        return _stand_in(store.root, problem)
    except OSError:
        return store  # no room anywhere: what is stored can still be read


def _problem(root: Path) -> str:
    """Why a folder cannot be written; empty if it can."""
    folder = next(path for path in (root, *root.absolute().parents) if path.exists())
    if not folder.is_dir():
        return ""  # the store says so in its own words
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(PROBE)
    except OSError as error:
        return error.strerror or str(error)
    return ""


@lru_cache
def _stand_in(root: Path, problem: str) -> Store:
    """One stand-in per process, so that films are indexed once."""
    scratch = Path(tempfile.mkdtemp(prefix="longtake-"))
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    models = private_folder(scratch / "models")
    for model in (root / "models").glob("*"):
        (models / model.name).symlink_to(model.absolute())
    return _StandIn(scratch, root, problem)


class _StandIn(Store):
    def __init__(self, scratch: Path, original: Path, problem: str) -> None:
        super().__init__(scratch)
        self._original, self._problem = original, problem

    def film(self, fingerprint: str, path: Path | None = None) -> FilmFolder:
        """The film's temporary folder, with links to what the cache knows about it."""
        folder = self.root / "films" / fingerprint
        if not folder.exists():
            _take_over(self._original / "films" / fingerprint, folder)
        return _ScratchFolder(folder, path, why=f"{self._original}: {self._problem}")


class _ScratchFolder(FilmFolder):
    def __init__(self, path: Path, film: Path | None, *, why: str) -> None:
        super().__init__(path, film)
        self._why = why

    def use(self, film: Path) -> None:
        """Mark the film as used, and say that nothing is kept."""
        note_once("cache_not_written", why=f"{self._why}; nothing will be kept")
        super().use(film)


def _take_over(stored: Path, folder: Path) -> None:
    layers = private_folder(private_folder(folder) / "layers")
    for layer in (stored / "layers").glob("[!.]*"):
        (layers / layer.name).symlink_to(layer.absolute())
    for database in ("text.db", "replies.sqlite"):
        if (stored / database).is_file():
            shutil.copyfile(stored / database, folder / database)
