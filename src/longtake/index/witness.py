"""A film's perception as witness for text models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from longtake.models.witness import Description
from longtake.types import Frame, Segment

if TYPE_CHECKING:
    from longtake.index.film import Film

NEARBY = 5.0
"""Seconds to either side of a picture within which words are told with it."""
TAGS = 3


class FilmWitness:
    """Tells what the built-in eyes and ears make of a moment; the film's store remembers it."""

    def __init__(self, film: Film) -> None:
        self._film = film

    @property
    def revision(self) -> str:
        """Which models perceive, and which subtitles are read."""
        film = self._film
        reading, key = film.reading, film.subtitle_key()
        speech = key or (film.hearing.key if film.hearing else "")
        return "|".join(
            map(
                str,
                (film.fingerprint, film.senses.looker.key, reading.key if reading else "", speech),
            )
        )

    def describe(self, frame: Frame, channels: Sequence[str]) -> Description:
        """What there is in these channels around a frame."""
        film, time = self._film, min(frame.time, self._film.duration)
        around = Segment(max(0.0, time - NEARBY), min(film.duration, time + NEARBY))
        return Description(
            tags=tuple(tag.name for tag in film.tags([time], TAGS)[0])
            if "tags" in channels
            else (),
            onscreen=tuple(line.text for line in film.read(time)) if "onscreen" in channels else (),
            speech=tuple(line.text for line in film.speech(around)) if "speech" in channels else (),
        )
