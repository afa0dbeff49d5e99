"""The state of a library: what it holds, what is missing, and what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass

from longtake.errors import LongtakeError
from longtake.index.store import folder_bytes
from longtake.library.collection import Library
from longtake.library.entries import Entry
from longtake.session.films import open_store


@dataclass(frozen=True)
class Status:
    """A library in figures."""

    films: int
    seconds: float
    segments: int
    bytes: int
    """Catalogue and index; the films' own layers are in the cache."""
    backend: str
    incomplete: int
    """Films of which some part is not indexed yet."""
    missing: int
    """Films whose file is gone; they can be found, but not asked."""
    failed: int
    folders: tuple[str, ...]
    """Folders that are watched."""


@dataclass(frozen=True)
class Problem:
    """Something that is wrong, and what to do about it."""

    what: str
    remedy: str


def status(library: Library) -> Status:
    """The library in figures."""
    entries = library.catalogue.entries()
    held = library.index.films()
    return Status(
        films=len(entries),
        seconds=sum(entry.duration for entry in entries),
        segments=sum(holding.rows for holding in held.values()),
        bytes=folder_bytes(library.folder),
        backend=library.backend,
        incomplete=sum(not entry.complete for entry in entries),
        missing=sum(entry.missing for entry in entries),
        failed=sum(bool(entry.problem) for entry in entries),
        folders=tuple(map(str, library.catalogue.folders())),
    )


def problems(library: Library) -> list[Problem]:
    """What is wrong with a library."""
    found = []
    entries = library.catalogue.entries()
    try:
        held = library.index.films()
        library.index.fetch([1])
    except LongtakeError as error:
        return [Problem(str(error), "longtake library doctor --rebuild")]
    found += [_missing(entry) for entry in entries if entry.missing]
    found += [
        Problem(f"{e.path}: {e.problem}", "fix it, then add it again") for e in entries if e.problem
    ]
    known = {entry.fingerprint for entry in entries}
    rebuild = "longtake library doctor --rebuild"
    if unindexed := known - held.keys():
        found.append(Problem(f"{len(unindexed)} films are not in the index", "add them again"))
    if strays := held.keys() - known:
        found.append(Problem(f"{len(strays)} films of the index are unknown", rebuild))
    stored = {use.fingerprint for use in open_store(library.settings).films()}
    if dropped := known - stored:
        what = f"the layers of {len(dropped)} films were dropped from the cache"
        found.append(Problem(what, "raise cache.limit_gb; asking these films takes longer"))
    return found


def _missing(entry: Entry) -> Problem:
    what = f"{entry.path}: is gone"
    return Problem(what, f"add its new folder, or: longtake library remove {entry.fingerprint}")
