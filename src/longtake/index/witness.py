"""A film's perception, describing frames to models that only read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from longtake.models.witness import Description
from longtake.types import Frame, Segment

if TYPE_CHECKING:
    from longtake.index.film import Film

NEARBY = 5.0
"""Speech within this many seconds of a frame is told with it."""
TAGS = 3


class FilmWitness:
    """Describes moments with the built-in perception; the film's store remembers the result."""

    def __init__(self, film: Film) -> None:
        self._film = film

    @property
    def revision(self) -> str:
        """Identity of the models that perceive and of the subtitles in use."""
        film, readable = self._film, self._film.words.readable
        onscreen = readable.key if readable else ""
        speech = film.words.speech_key() or ""
        return "|".join(map(str, (film.fingerprint, film.senses.tagger.key, onscreen, speech)))

    def describe(self, frame: Frame, channels: Sequence[str]) -> Description:
        """What the given channels say about a frame."""
        film = self._film
        # a caller may have rounded the time of the last frame up
        time = min(frame.time, film.duration)
        tags: tuple[str, ...] = ()
        onscreen: tuple[str, ...] = ()
        speech: tuple[str, ...] = ()
        # a channel that is not asked for must cost nothing
        if "tags" in channels:
            tags = tuple(tag.name for tag in film.pictures.tags([time], TAGS)[0])
        if "onscreen" in channels:
            onscreen = tuple(line.text for line in film.words.onscreen_at(time))
        if "speech" in channels:
            around = Segment(max(0.0, time - NEARBY), min(film.duration, time + NEARBY))
            speech = tuple(line.text for line in film.speech(around))
        return Description(tags, onscreen, speech)
