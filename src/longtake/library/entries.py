"""What the catalogue knows about one film."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Entry:
    """A film of a library, by its content: it may lie in several places under several names."""

    fingerprint: str
    name: str
    """Its title, or the name of its file."""
    duration: float
    paths: tuple[Path, ...] = ()
    """Where it was last seen; the first is the one in use."""
    date: str = ""
    """ISO date as far as it is known: ``2025-03-14``, ``2025-03`` or ``2025``."""
    place: str = ""
    tags: tuple[str, ...] = ()
    added: float = 0.0
    """Unix time."""
    problem: str = ""
    """Why it could not be indexed; empty if it could."""
    complete: str = ""
    """Identity of the settings under which all of it was indexed; empty: not all of it is."""

    @property
    def path(self) -> Path:
        """A place where the film is, or the last one where it was."""
        for path in self.paths:
            if path.exists():
                return path
        return self.paths[0] if self.paths else Path(self.name)

    @property
    def missing(self) -> bool:
        """Whether it is in none of its places."""
        return not any(path.exists() for path in self.paths)

    @property
    def year(self) -> int | None:
        """The year of its date."""
        return int(self.date[:4]) if self.date else None


@dataclass(frozen=True)
class Facts:
    """What is learnt about a film from its metadata, its name and its folder."""

    name: str
    duration: float
    date: str = ""
    place: str = ""
    tags: tuple[str, ...] = ()
