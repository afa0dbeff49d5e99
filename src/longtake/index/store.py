"""The store: everything derived from films, computed once and kept on disk.

::

    <cache>/films/<fingerprint>/
        film.json              name and path of the film when last seen; its mtime is the last use
        layers/<key>/          a finished layer: meta.json and arrays, read memory-mapped
        parts/<key>/           finished parts of a layer that is being built
        text.db                lines of text
        build.lock             held by the one process that is building

A layer appears by a single rename after all of it has reached the disk. A killed run therefore
leaves whole layers, whole parts, and temporary files that the next builder removes. A damaged layer
counts as missing: it is noted and built again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from longtake._util import write_atomically, write_synced
from longtake._util.cancellation import check_stop
from longtake.errors import ConfigError, RunError
from longtake.tracing.events import note, note_once

Arrays: TypeAlias = dict[str, NDArray[Any]]
Notes: TypeAlias = dict[str, Any]

UNREADABLE = (ValueError, EOFError, KeyError, TypeError)
"""Errors raised by a damaged JSON or NumPy file, including an array that was cut off."""


@dataclass(frozen=True)
class LayerKey:
    """Identity of a layer: whatever changes its content changes its key."""

    name: str
    version: int
    params: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        # sorted, so that equal parameters in any order give one key
        canonical = json.dumps(self.params, sort_keys=True, default=str).encode()
        return f"{self.name}-{self.version}-{hashlib.blake2b(canonical, digest_size=6).hexdigest()}"


@dataclass(frozen=True)
class FilmUse:
    """One film's share of the store."""

    fingerprint: str
    name: str
    """Name of the file when it was last seen."""
    bytes: int
    last_used: float
    """Unix time."""
    path: str = ""
    """Where the file was when it was last seen."""


class Store:
    """The cache folder: films by fingerprint."""

    def __init__(self, root: Path, *, limit_bytes: float = float("inf")) -> None:
        self.root = root
        self.limit_bytes = limit_bytes

    def check(self) -> None:
        """Raise if the store's folder cannot exist."""
        candidates = (self.root / "films", self.root, *self.root.parents)
        nearest = next(path for path in candidates if path.exists())
        if not nearest.is_dir():
            raise ConfigError(
                f"the cache cannot be at {self.root}: {nearest} is not a folder; "
                "set $LONGTAKE_CACHE or cache.folder",
                key="cache.folder",
            )

    def film(self, fingerprint: str, path: Path | None = None) -> FilmFolder:
        """The folder of one film, which may not exist yet; ``path`` names the film in notes."""
        self.check()
        return FilmFolder(self.root / "films" / fingerprint, path)

    def films(self) -> list[FilmUse]:
        """The films in the store, least recently used first."""
        self.check()
        folder = self.root / "films"
        if not folder.is_dir():
            return []
        uses = [_use(path) for path in folder.iterdir() if path.is_dir()]
        return sorted(uses, key=lambda use: use.last_used)

    def clear(self, fingerprint: str) -> int:
        """Remove everything derived from one film and return the number of bytes freed."""
        path = self.root / "films" / fingerprint
        if not path.is_dir():
            return 0
        freed = folder_bytes(path)
        with FilmFolder(path).building(wait=False):
            # renamed first, so that readers see all of it or nothing
            grave = Path(tempfile.mkdtemp(prefix=".gone-", dir=path.parent))
            path.rename(grave / path.name)
        shutil.rmtree(grave)
        return freed

    def evict(self, *, keep: str | None = None) -> list[FilmUse]:
        """Drop the least recently used films until the limit holds, except those being built."""
        uses = self.films()
        total = sum(use.bytes for use in uses)
        dropped = []
        for use in uses:
            if total <= self.limit_bytes:
                break
            if use.fingerprint == keep:
                continue
            try:
                self.clear(use.fingerprint)
            except RunError:
                continue  # another process is building it, so it is in use
            total -= use.bytes
            dropped.append(use)
        return dropped


class FilmFolder:
    """Everything stored about one film."""

    def __init__(self, path: Path, film: Path | None = None) -> None:
        self.path = path
        self._film = film
        # reentrant, so that building a layer can build the layers it is derived from
        self._lock = FileLock(path / "build.lock", mode=0o600)

    def use(self, film: Path) -> None:
        """Create the folder if needed and mark the film as used now."""
        films = self.path.parent
        # one by one: mkdir would create missing parents readable for others
        for folder in (films.parent, films, self.path):
            private_folder(folder)
        place = {"name": film.name, "path": str(film.absolute())}
        write_atomically(self.path / "film.json", json.dumps(place).encode())

    @contextlib.contextmanager
    def building(self, *, wait: bool = True) -> Iterator[None]:
        """Hold the build lock; a second process waits for the first and then finds its layers."""
        busy = "another process is working on this film"
        try:
            # first without waiting, so that a wait can be announced
            self._lock.acquire(timeout=0)
        except Timeout:
            if not wait:
                raise RunError(f"{self.path.name}: {busy}") from None
            note("waiting", film=str(self._film or self.path.name), why=busy)
            self._wait()
        try:
            yield
        finally:
            self._lock.release()

    def _wait(self) -> None:
        """Take the lock, unless the work is cancelled first."""
        while True:
            check_stop()
            try:
                # short waits, so that cancellation is noticed
                self._lock.acquire(timeout=0.2)
            except Timeout:
                continue
            return

    def ensure(self, done: Callable[[], bool], make: Callable[[], None]) -> None:
        """Run ``make`` under the lock unless ``done``; checked again once the lock is held."""
        if done():
            return
        with self.building():
            if not done():
                make()

    def once(self, key: LayerKey, make: Callable[[], tuple[Arrays, Notes]]) -> tuple[Arrays, Notes]:
        """Arrays and notes of a layer, made and written now unless they are stored already."""
        self.ensure(lambda: self.has(key), lambda: self.write(key, *make()))
        stored = self.read(key)
        if stored is None:
            raise RunError(f"{self._layer(key)}: was written and cannot be read; check the disk")
        return stored

    def read(self, key: LayerKey) -> tuple[Arrays, Notes] | None:
        """Memory-mapped arrays and notes of a layer; ``None`` if it is missing or damaged."""
        folder = self._layer(key)
        file = folder / "meta.json"
        try:
            meta = json.loads(file.read_text(encoding="utf-8"))
            arrays = {}
            for name in meta["arrays"]:
                file = folder / f"{name}.npy"
                # memory-mapped: rows that are not used are never read
                arrays[name] = np.load(file, mmap_mode="r")
            return arrays, dict(meta["notes"])
        except FileNotFoundError:
            return None
        except UNREADABLE as error:
            note_damage(file, error)
            return None

    def has(self, key: LayerKey) -> bool:
        """Whether a layer is finished and readable."""
        return self.read(key) is not None

    def write(
        self, key: LayerKey, arrays: Mapping[str, NDArray[Any]], notes: Mapping[str, Any]
    ) -> None:
        """Write a finished layer; call while :meth:`building`."""
        layers = private_folder(self.path / "layers")
        # in the same folder, because a rename is atomic only within one file system
        draft = Path(tempfile.mkdtemp(prefix=f".{key}.", dir=layers))
        try:
            for name, array in arrays.items():
                _save(draft / f"{name}.npy", array)
            meta = {
                "name": key.name,
                "version": key.version,
                "params": dict(key.params),
                "arrays": sorted(arrays),
                "notes": dict(notes),
            }
            write_synced(draft / "meta.json", json.dumps(meta, default=str).encode())
            # content before name: after a power cut no layer may be there half-written
            _sync_folder(draft)
            # exists only if it was damaged
            shutil.rmtree(self._layer(key), ignore_errors=True)
            draft.rename(self._layer(key))
        except OSError:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        _sync_folder(layers)
        # the parts are needed until the layer has safely replaced them
        shutil.rmtree(self.path / "parts" / str(key), ignore_errors=True)

    def write_part(self, key: LayerKey, number: int, rows: NDArray[Any]) -> None:
        """Keep one finished part of a layer that is being built."""
        folder = private_folder(private_folder(self.path / "parts") / str(key))
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".", delete=False) as file:
            draft = Path(file.name)
        try:
            _save(draft, rows)
            draft.rename(folder / f"{number:06d}.npy")
        except OSError:
            draft.unlink(missing_ok=True)
            raise

    def sweep(self, key: LayerKey) -> None:
        """Remove temporary files of a killed builder; call while :meth:`building`."""
        for leftover in (self.path / "parts" / str(key)).glob(".*"):
            leftover.unlink()
        for leftover in (self.path / "layers").glob(f".{key}.*"):
            shutil.rmtree(leftover)

    def parts(self, key: LayerKey) -> dict[int, Path]:
        """Finished, readable parts by number."""
        folder = self.path / "parts" / str(key)
        return {int(path.stem): path for path in sorted(folder.glob("*.npy")) if _readable(path)}

    def _layer(self, key: LayerKey) -> Path:
        return self.path / "layers" / str(key)


def private_folder(path: Path) -> Path:
    """Create a folder that only the user can read, unless it exists."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def note_damage(file: Path, error: Exception) -> None:
    """Note that a file is damaged and will be made again."""
    note_once("damaged", file=str(file), why=str(error) or type(error).__name__)


def folder_bytes(path: Path) -> int:
    """Total size of all files below a folder; files that vanish meanwhile are skipped."""
    total = 0
    # os.walk, unlike rglob, does not mind folders that vanish
    for parent, _, names in os.walk(path):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += (Path(parent) / name).stat().st_size
    return total


def _use(path: Path) -> FilmUse:
    info = path / "film.json"
    name, film, used = "?", "", time.time()
    # a film without a readable name must still be listed and cleared
    with contextlib.suppress(OSError, *UNREADABLE):
        used = info.stat().st_mtime
        place = json.loads(info.read_text(encoding="utf-8"))
        name, film = str(place["name"]), str(place["path"])
    return FilmUse(path.name, name, folder_bytes(path), used, film)


def _readable(path: Path) -> bool:
    """Whether an array's header is valid and the file complete; the values are not read."""
    try:
        np.load(path, mmap_mode="r")
    except UNREADABLE as error:
        note_damage(path, error)
        return False
    return True


def _save(path: Path, array: NDArray[Any]) -> None:
    whole = np.asarray(array, order="C")
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(whole))
        # np.save would hide the error number of a full disk
        file.write(whole.reshape(-1).view(np.uint8).data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(path: Path) -> None:
    # the names in a folder reach the disk only when the folder itself is synced
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
