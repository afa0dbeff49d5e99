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
from longtake.library.catalog import REBUILD, Entry, FilmCatalog, matches
from longtake.library.fts_index import SegmentIndex
from longtake.library.search import LibrarySearchResult, search
from longtake.library.segments import FilmRows, material_of_film, material_of_footage, rows_of
from longtake.perception.loader import PerceptionModels
from longtake.perception.protocols import TextEncoder
from longtake.runner.films import open_film, open_perception, open_store

Opener: TypeAlias = Callable[[Entry], Footage]

# part of the index's folder name and of identities: libraries of version 0.2 open as they are
_INDEX_KIND = "embedded"


class Library:
    """Many films: search them, ask them, and keep track of them.

    Everything but the catalogue is derived from the films' layers and can be rebuilt.
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
        """The encoder of pictures and of queries for them."""
        return self.perception.images

    @cached_property
    def sentences(self) -> TextEncoder:
        """The encoder of speech and text."""
        return self._sentences or self.perception.sentences

    @cached_property
    def index(self) -> SegmentIndex:
        """The index across films; every choice of encoders has its own folder."""
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
        """The films whose name, path or tag contains a text, sorted by name."""
        return [entry for entry in self.catalogue.entries() if matches(entry, where)]

    def search(
        self,
        text: str,
        *,
        where: str = "",
        films: int = 10,
        moments: int = 3,
        among: Collection[str] | None = None,
    ) -> LibrarySearchResult:
        """The films and moments that fit a text best, among all films or those of ``among``."""
        chosen: list[str] | None = None
        if among is not None or where.strip():
            chosen = [entry.fingerprint for entry in self.entries(where)]
            if among is not None:
                chosen = [film for film in chosen if film in among]
        hits = search(
            self.index,
            text,
            self._lookup,
            images=self.images,
            sentences=self.sentences,
            among=chosen,
            films=films,
            moments=moments,
        )
        searched = self.catalogue.count() if chosen is None else len(chosen)
        return LibrarySearchResult(hits, searched)

    def _lookup(self, fingerprints: Collection[str]) -> dict[str, Entry]:
        # reading the whole catalogue would take longer than the search
        return {entry.fingerprint: entry for entry in self.catalogue.entries(fingerprints)}

    def footage(self, entry: Entry) -> Footage:
        """Open a film to ask it."""
        if self._opener is not None:
            return self._opener(entry)
        film = open_film(entry.path, self.settings, senses=self.perception)
        if film.fingerprint != entry.fingerprint:
            why = "has changed since it was added; add it again"
            raise MediaError(entry.path, "changed", why)
        return film

    def derive(self, entry: Entry, footage: Footage | None = None) -> bool:
        """Update the index from a film's layers; return whether it changed."""
        footage = footage or self.footage(entry)
        if isinstance(footage, Film):
            material = material_of_film(footage)
        else:
            material = material_of_footage(footage, parts={"footage": footage.name})
        held = self.index.films().get(entry.fingerprint)
        if held is not None and dict(held.parts) == material.parts:
            return False
        rows = rows_of(material, self.sentences)
        self.index.replace([FilmRows(entry.fingerprint, material.parts, rows)])
        return True

    def remove(self, fingerprints: Collection[str]) -> None:
        """Remove films from the library; their files and layers stay."""
        # the index first: if this fails, the film is still in the catalogue and can be removed
        self.index.remove(fingerprints)
        for fingerprint in fingerprints:
            self.catalogue.remove(fingerprint)

    def identity(self) -> str:
        """A hash of all settings that affect what is indexed."""
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
    """Figures about a library."""

    films: int
    seconds: float
    segments: int
    bytes: int
    """Size of the catalogue and the index, without the films' layers in the cache."""
    incomplete: int
    """Films that are not completely indexed."""
    missing: int
    """Films whose file is gone; they can be found but not asked."""
    failed: int


@dataclass(frozen=True)
class LibraryProblem:
    """Something that is wrong, and what to do about it."""

    what: str
    remedy: str


def status(library: Library) -> LibraryStatus:
    """Return figures about a library."""
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
    )


def problems(library: Library) -> list[LibraryProblem]:
    """What is wrong with a library."""
    try:
        entries = library.catalogue.entries()
        library.check_index()
    except LongtakeError as error:
        return [LibraryProblem(str(error), REBUILD)]
    listed = []
    for entry in entries:
        if entry.missing:
            remedy = f"add its new folder, or: longtake library remove {entry.fingerprint}"
            listed.append(LibraryProblem(f"{entry.path}: is gone", remedy))
        if entry.problem:
            what = f"{entry.path}: {entry.problem.removeprefix(f'{entry.path}: ')}"
            listed.append(LibraryProblem(what, "fix it, then add it again"))
    held = library.index.films()
    known = {entry.fingerprint for entry in entries}
    if unindexed := known - held.keys():
        what = f"{len(unindexed)} films are not in the index"
        listed.append(LibraryProblem(what, "add them again"))
    if strays := held.keys() - known:
        what = f"{len(strays)} films of the index are unknown"
        listed.append(LibraryProblem(what, REBUILD))
    stored = {use.fingerprint for use in open_store(library.settings).films()}
    if dropped := known - stored:
        what = f"the layers of {len(dropped)} films were removed from the cache"
        listed.append(LibraryProblem(what, "raise cache.limit_gb; asking these films takes longer"))
    return listed
