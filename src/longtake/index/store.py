"""Everything derived from a film, computed once, on disk.

::

    <cache>/films/<fingerprint>/
        film.json              the film's name and place when last seen; its age is the film's last use
        layers/<key>/          a finished layer: meta.json and arrays, read memory-mapped
        parts/<key>/           finished pieces of a layer that is being built
        text.db                lines of text with full-text search
        build.lock             held by the one process that is building

A layer appears by one rename after everything in it reached the disk, so a killed run leaves whole layers,
whole pieces, and temporary files that the next builder removes. What a failing disk has damaged counts as
missing, with a note: it is built again.
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
from typing import Any

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from longtake.errors import ConfigError, RunError
from longtake.events import note_once

Arrays = dict[str, NDArray[Any]]

UNREADABLE = (ValueError, EOFError, KeyError, TypeError)
"""What reading a damaged JSON or NumPy file raises; mapping an array that was cut off is among it."""


@dataclass(frozen=True)
class LayerKey:
    """What a layer holds and how it was made; anything that changes the content changes the key."""

    name: str
    version: int
    params: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        canonical = json.dumps(self.params, sort_keys=True, default=str).encode()
        return f"{self.name}-{self.version}-{hashlib.blake2b(canonical, digest_size=6).hexdigest()}"


@dataclass(frozen=True)
class FilmUse:
    """One film's share of the store."""

    fingerprint: str
    name: str
    """The file's name when it was last seen."""
    bytes: int
    last_used: float
    """Unix time."""


class Store:
    """The cache folder: films by fingerprint."""

    def __init__(self, root: Path, *, limit_bytes: float = float("inf")) -> None:
        self.root = root
        self.limit_bytes = limit_bytes

    def check(self) -> None:
        """Refuse a place where no folder can be."""
        there = next(
            path for path in (self.root / "films", self.root, *self.root.parents) if path.exists()
        )
        if not there.is_dir():
            raise ConfigError(
                f"the cache cannot be at {self.root}: {there} is not a folder; set $LONGTAKE_CACHE or cache.folder",
                key="cache.folder",
            )

    def film(self, fingerprint: str) -> FilmFolder:
        """The folder of one film; it need not exist yet."""
        self.check()
        return FilmFolder(self.root / "films" / fingerprint)

    def films(self) -> list[FilmUse]:
        """What the store holds, least recently used first."""
        self.check()
        folder = self.root / "films"
        uses = [_use(path) for path in folder.iterdir() if path.is_dir()] if folder.is_dir() else []
        return sorted(uses, key=lambda use: use.last_used)

    def clear(self, fingerprint: str) -> int:
        """Remove everything derived from one film; gives the bytes freed."""
        path = self.root / "films" / fingerprint
        if not path.is_dir():
            return 0
        freed = folder_bytes(path)
        with FilmFolder(path).building(wait=False):
            # renamed first, so that a reader sees all of it or nothing
            grave = Path(tempfile.mkdtemp(prefix=".gone-", dir=path.parent))
            path.rename(grave / path.name)
        shutil.rmtree(grave)
        return freed

    def evict(self, *, keep: str | None = None) -> list[FilmUse]:
        """Drop the films that were not used for longest until the limit holds; films in work stay."""
        uses = self.films()
        total = sum(use.bytes for use in uses)
        gone = []
        for use in uses:
            if total <= self.limit_bytes:
                break
            if use.fingerprint == keep:
                continue
            try:
                self.clear(use.fingerprint)
            except RunError:
                continue  # another process is building it: in use by definition
            total -= use.bytes
            gone.append(use)
        return gone


class FilmFolder:
    """What is known about one film."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def use(self, film: Path) -> None:
        """Make the folder if need be, and mark the film as used now."""
        films = self.path.parent
        for folder in (films.parent, films, self.path):
            private_folder(folder)
        place = {"name": film.name, "path": str(film.absolute())}
        write_atomically(self.path / "film.json", json.dumps(place).encode())

    @contextlib.contextmanager
    def building(
        self, *, wait: bool = True, on_wait: Callable[[], None] | None = None
    ) -> Iterator[None]:
        """Hold the right to build; a second process waits for the first and then finds its layers."""
        lock = FileLock(self.path / "build.lock", mode=0o600)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            if not wait:
                raise RunError(
                    f"{self.path.name}: another process is working on this film"
                ) from None
            if on_wait is not None:
                on_wait()
            lock.acquire()
        try:
            yield
        finally:
            lock.release()

    def read(self, key: LayerKey) -> tuple[Arrays, dict[str, Any]] | None:
        """Arrays, memory-mapped, and notes of a finished layer; ``None`` when it is not there or is damaged."""
        folder = self._layer(key)
        file = folder / "meta.json"
        try:
            meta = json.loads(file.read_text(encoding="utf-8"))
            arrays = {}
            for name in meta["arrays"]:
                file = folder / f"{name}.npy"
                arrays[name] = np.load(file, mmap_mode="r")
            return arrays, dict(meta["notes"])
        except FileNotFoundError:
            return None
        except UNREADABLE as error:
            note_damage(file, error)
            return None

    def has(self, key: LayerKey) -> bool:
        """Whether a layer is finished and can be read."""
        return self.read(key) is not None

    def write(
        self, key: LayerKey, arrays: Mapping[str, NDArray[Any]], notes: Mapping[str, Any]
    ) -> None:
        """Finish a layer; call while :meth:`building`."""
        layers = private_folder(self.path / "layers")
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
            _write_synced(draft / "meta.json", json.dumps(meta, default=str).encode())
            _sync_folder(draft)
            shutil.rmtree(self._layer(key), ignore_errors=True)  # there only where it was damaged
            draft.rename(self._layer(key))
        except OSError:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        _sync_folder(layers)
        shutil.rmtree(self.path / "parts" / str(key), ignore_errors=True)

    def write_part(self, key: LayerKey, number: int, rows: NDArray[Any]) -> None:
        """Keep one finished piece of a layer that is being built."""
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
        """Remove what a killed builder left half-written; call while :meth:`building`."""
        for left_over in (self.path / "parts" / str(key)).glob(".*"):
            left_over.unlink()
        for left_over in (self.path / "layers").glob(f".{key}.*"):
            shutil.rmtree(left_over)

    def parts(self, key: LayerKey) -> dict[int, Path]:
        """Finished pieces by number, those that can be read."""
        folder = self.path / "parts" / str(key)
        return {int(path.stem): path for path in sorted(folder.glob("*.npy")) if _readable(path)}

    def _layer(self, key: LayerKey) -> Path:
        return self.path / "layers" / str(key)


def private_folder(path: Path) -> Path:
    """A folder for the user's eyes only, made if need be."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file by one with ``data`` in it, or leave it as it was."""
    with tempfile.NamedTemporaryFile(
        dir=path.parent, prefix=f".{path.name}.", delete=False
    ) as file:
        draft = Path(file.name)
    try:
        _write_synced(draft, data)
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def note_damage(file: Path, error: Exception) -> None:
    """Note that a file is useless and will be made again."""
    note_once("damaged", file=str(file), why=str(error) or type(error).__name__)


def folder_bytes(path: Path) -> int:
    """Bytes of all files below a folder; files that vanish meanwhile count nothing."""
    total = 0
    for parent, _, names in os.walk(path):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += (Path(parent) / name).stat().st_size
    return total


def _use(path: Path) -> FilmUse:
    info = path / "film.json"
    name, used = "?", time.time()
    with contextlib.suppress(
        OSError, *UNREADABLE
    ):  # a film is listed and cleared without its name too
        used = info.stat().st_mtime
        name = str(json.loads(info.read_text(encoding="utf-8"))["name"])
    return FilmUse(path.name, name, folder_bytes(path), used)


def _readable(path: Path) -> bool:
    """Whether an array's header is sound and the file as long as it says; the numbers are not read."""
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
        # not by np.save, whose error does not say that the disk is full
        file.write(whole.reshape(-1).view(np.uint8).data)
        file.flush()
        os.fsync(file.fileno())


def _write_synced(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
