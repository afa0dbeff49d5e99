"""What describes a frame in words, for models that cannot see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from longtake.types import Frame


@dataclass(frozen=True, slots=True)
class Description:
    """One moment of a film in words, by channel."""

    tags: tuple[str, ...] = ()
    onscreen: tuple[str, ...] = ()
    speech: tuple[str, ...] = ()


class Witness(Protocol):
    """Perceives moments of a film and keeps the result in the film's store: asking again is cheap."""

    @property
    def revision(self) -> str:
        """Changes whenever a frame would be described differently; part of the reply cache's key."""

    def describe(self, frame: Frame, channels: Sequence[str]) -> Description:
        """What the given channels say about a frame."""
