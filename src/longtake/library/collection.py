"""A library: a catalogue of films, an index across them, and what opens a film to ask it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from filelock import FileLock

from longtake.config import Settings, cache_folder
from longtake.errors import LongtakeError, MediaError
from longtake.footage.protocol import Footage
from longtake.index.film import Film
from longtake.index.store import folder_bytes
from longtake.library.catalog import REBUILD, Entry, FilmCatalog, parse
from longtake.library.fts_index import SegmentIndex
from longtake.library.search import LibrarySearchResult, make_query, search
from longtake.library.segments import (
    FilmRows,
    Material,
    material_of_film,
    material_of_footage,
    rows_of,
)
from longtake.perception.loader import PerceptionModels
from longtake.perception.protocols import TextEncoder
from longtake.runner.films import open_film, open_perception, open_store

Opener: TypeAlias = Callable[[Entry], Footage]

# part of the index's folder name and of identities: libraries of version 0.2 open as they are
_INDEX_KIND = "embedded"


class Library:
    """Many films: search them, ask them, and keep track of them.

    Everything but the catalogue is derived from the films' own layers and can be rebuilt.
    """

    def __init__(
        self,
        folder: Path | None = None,
        settings: Settings | None = None,
        *,
        perception: PerceptionModels | None = None,
        sentences: TextEncoder | None = None,
        opener: Opener | None = None,
    ) -> None:
        self.settings = settings or Settings()
        self.folder = folder or cache_folder(self.settings) / "library"
        self.catalogue = FilmCatalog(self.folder)
        self._perception, self._sentences, self._opener = perception, sentences, opener

    @cached_property
    def perception(self) -> PerceptionModels:
        """The encoders of pictures and sentences; loaded on first use."""
        return self._perception or open_perception(self.settings)

    @property
    def images(self) -> Any:
        """The encoder that pictures and queries share."""
        return self.perception.images

    @cached_property
    def sentences(self) -> TextEncoder:
        """The encoder of what is said."""
        return self._sentences or self.perception.sentences

    @cached_property
    def index(self) -> SegmentIndex:
        """The index across films, in a folder of its own for every choice of encoders."""
        return SegmentIndex(self._index_folder, self._dims)

    @property
    def _dims(self) -> dict[str, int]:
        return {"picture": self.images.dim, "meaning": self.sentences.dim}

    @property
    def _index_folder(self) -> Path:
        spaces = {"picture": self.images.key, "meaning": self.sentences.key}
        identity = hashlib.blake2b(json.dumps(spaces).encode(), digest_size=6).hexdigest()
        return self.folder / "index" / f"{_INDEX_KIND}-{identity}"

    def check_index(self) -> None:
        """Read from every part of the index; a damaged one raises :class:`RunError`."""
        self.index.films()
        self.index.fetch([1])
        self.index.words("a", "said", 1)
        for kind, dim in self._dims.items():
            self.index.nearest(np.zeros(dim, np.float32), kind, 1)

    def delete_index(self) -> None:
        """Delete the index, whatever its state; :meth:`derive` fills a new one film by film."""
        self.index.close()
        lock = self._index_folder / "write.lock"
        with FileLock(lock, mode=0o600):
            for path in self._index_folder.iterdir():
                if path != lock:
                    path.unlink()

    def entries(self, where: str = "") -> list[Entry]:
        """The films for which a filter holds, by name."""
        holds = parse(where)
        return [entry for entry in self.catalogue.entries() if holds(entry)]

    def search(
        self,
        text: str,
        *,
        where: str = "",
        films: int = 10,
        moments: int = 3,
        among: Collection[str] | None = None,
    ) -> LibrarySearchResult:
        """The films and the moments in them that fit a text best; only films of ``among``."""
        entries: Collection[Entry] | None = None
        if among is not None or where.strip():
            chosen = self.entries(where)
            entries = [each for each in chosen if among is None or each.fingerprint in among]
        hits = search(
            self.index,
            make_query(text, self.images, self.sentences),
            self._lookup,
            images=self.images,
            among=None if entries is None else [entry.fingerprint for entry in entries],
            films=films,
            moments=moments,
        )
        return LibrarySearchResult(
            hits, self.catalogue.count() if entries is None else len(entries)
        )

    def _lookup(self, fingerprints: Collection[str]) -> dict[str, Entry]:
        # not the whole catalogue: to read it would take longer than the search
        return {entry.fingerprint: entry for entry in self.catalogue.entries(fingerprints)}

    def footage(self, entry: Entry) -> Footage:
        """The film itself, to be asked."""
        if self._opener is not None:
            return self._opener(entry)
        film = open_film(entry.path, self.settings, senses=self.perception)
        if film.fingerprint != entry.fingerprint:
            why = "the file has changed since it was added; add it again"
            raise MediaError(entry.path, "changed", why)
        return film

    def derive(self, entry: Entry, footage: Footage | None = None) -> bool:
        """Bring the index up to date with a film's layers; returns whether it changed."""
        material = self.material(footage or self.footage(entry))
        held = self.index.films().get(entry.fingerprint)
        if held is not None and dict(held.parts) == material.parts:
            return False
        rows = rows_of(material, self.sentences)
        self.index.replace([FilmRows(entry.fingerprint, material.parts, rows)])
        return True

    def material(self, footage: Footage) -> Material:
        """What is known about a film."""
        if isinstance(footage, Film):
            return material_of_film(footage)
        return material_of_footage(footage, parts={"footage": footage.name})

    def remove(self, fingerprints: Collection[str]) -> None:
        """Take films out of the library; their files and layers stay."""
        # the index first: a film that is still in the catalogue can be removed again
        self.index.remove(fingerprints)
        for fingerprint in fingerprints:
            self.catalogue.remove(fingerprint)

    def identity(self) -> str:
        """Identity of all settings that decide what indexing a film gives."""
        chosen = asdict(self.settings.perception)
        for irrelevant in ("threads", "batch"):
            chosen.pop(irrelevant)
        made_with = json.dumps([chosen, self.settings.index.fps, _INDEX_KIND], sort_keys=True)
        return hashlib.blake2b(made_with.encode(), digest_size=8).hexdigest()

    def find(self, name: str) -> list[Entry]:
        """Films by path, fingerprint (or its beginning) or exact name."""
        path = Path(name).absolute()
        return [
            entry
            for entry in self.catalogue.entries()
            if path in entry.paths
            or (len(name) >= 6 and entry.fingerprint.startswith(name))
            or entry.name == name
        ]


@dataclass(frozen=True)
class LibraryStatus:
    """A library in figures."""

    films: int
    seconds: float
    segments: int
    bytes: int
    """Catalogue and index; the films' own layers are in the cache."""
    incomplete: int
    """Films of which some part is not indexed yet."""
    missing: int
    """Films whose file is gone; they can be found, but not asked."""
    failed: int
    folders: tuple[str, ...]
    """Folders that are watched."""


@dataclass(frozen=True)
class LibraryProblem:
    """Something that is wrong, and what to do about it."""

    what: str
    remedy: str


def status(library: Library) -> LibraryStatus:
    """The library in figures."""
    entries = library.catalogue.entries()
    held = library.index.films()
    return LibraryStatus(
        films=len(entries),
        seconds=sum(entry.duration for entry in entries),
        segments=sum(holding.rows for holding in held.values()),
        bytes=folder_bytes(library.folder),
        incomplete=sum(not entry.complete for entry in entries),
        missing=sum(entry.missing for entry in entries),
        failed=sum(bool(entry.problem) for entry in entries),
        folders=tuple(map(str, library.catalogue.folders())),
    )


def problems(library: Library) -> list[LibraryProblem]:
    """What is wrong with a library."""
    listed = []
    try:
        entries = library.catalogue.entries()
        library.check_index()
    except LongtakeError as error:
        return [LibraryProblem(str(error), REBUILD)]
    held = library.index.films()
    listed += [_missing(entry) for entry in entries if entry.missing]
    listed += [
        LibraryProblem(f"{e.path}: {e.problem}", "fix it, then add it again")
        for e in entries
        if e.problem
    ]
    known = {entry.fingerprint for entry in entries}
    if unindexed := known - held.keys():
        listed.append(
            LibraryProblem(f"{len(unindexed)} films are not in the index", "add them again")
        )
    if strays := held.keys() - known:
        listed.append(LibraryProblem(f"{len(strays)} films of the index are unknown", REBUILD))
    stored = {use.fingerprint for use in open_store(library.settings).films()}
    if dropped := known - stored:
        what = f"the layers of {len(dropped)} films were dropped from the cache"
        listed.append(LibraryProblem(what, "raise cache.limit_gb; asking these films takes longer"))
    return listed


def _missing(entry: Entry) -> LibraryProblem:
    what = f"{entry.path}: is gone"
    return LibraryProblem(
        what, f"add its new folder, or: longtake library remove {entry.fingerprint}"
    )
