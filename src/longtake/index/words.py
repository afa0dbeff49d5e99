"""A film's words: what is said and what can be read."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from longtake.algorithms.coverage import coverage
from longtake.errors import MissingExtra
from longtake.events import note_once
from longtake.index.onscreen import OnscreenLayer
from longtake.index.source import Source
from longtake.index.speech import SpeechLayer
from longtake.index.store import LayerKey
from longtake.index.subtitles import Subtitles
from longtake.perception.senses import Senses
from longtake.types import Line, Segment

SHORT = 120.0
"""Seconds of a film that are recognised even in a hurry: the question names them."""


class Words:
    """Subtitles, recognised speech and on-screen text of one film."""

    def __init__(
        self,
        source: Source,
        senses: Senses,
        glimpses: Callable[[], NDArray[Any]],
        *,
        subtitles: Path | None = None,
        subtitles_begin: float = 0.0,
    ) -> None:
        self._source, self._senses, self._glimpses = source, senses, glimpses
        self.subtitles = Subtitles(source, subtitles, subtitles_begin)
        self.hurried = False
        """Whether words are taken as far as they are known, rather than recognised for minutes."""

    @cached_property
    def recognised(self) -> SpeechLayer | None:
        """Speech recognition; ``None`` if it is not needed, impossible or switched off."""
        # a listener that is not installed is reported by ``unheard``, not raised here
        if self._needs_no_listener() or self.unheard:
            return None
        listener = self._senses.listener
        return None if listener is None else SpeechLayer(self._source, listener)

    @cached_property
    def unheard(self) -> str:
        """Why the film's speech is left out and how to install a listener; empty if it is not."""
        if self._needs_no_listener():
            return ""
        try:
            self._senses.listener  # noqa: B018
        except MissingExtra as error:
            return str(error)
        return ""

    @cached_property
    def readable(self) -> OnscreenLayer | None:
        """On-screen text; ``None`` if reading is switched off."""
        reader = self._senses.reader
        return None if reader is None else OnscreenLayer(self._source, reader, self._glimpses)

    def speech_key(self) -> LayerKey | None:
        """The layer that speech comes from: subtitles, else recognised speech, else none."""
        return self.subtitles.key() or (self.recognised.key if self.recognised else None)

    def speech(self, within: Segment | None = None) -> list[Line]:
        """Subtitles if there are any, otherwise recognised speech, transcribed now where missing.

        Without a listener there is none, with a note: an answer from the pictures is worth having.
        """
        if self.subtitles.key() is not None:
            return self.subtitles.lines(within)
        if self.recognised is None:
            # a film without sound is not worth a note, a missing listener is
            if self.unheard:
                note_once("speech_left_out", why=self.unheard)
            return []
        if not self._skips(within):
            self.recognised.build(within)
        return self._source.text.lines(self.recognised.key, within)

    def onscreen(self, within: Segment | None = None) -> list[Line]:
        """Text visible in the picture, read now where missing."""
        if self.readable is None:
            return []
        if not self._skips(within):
            self.readable.build(within)
            return self._source.text.lines(self.readable.key, within)
        shots = self._source.text.lines(self.readable.key, within)
        return shots or self._source.text.lines(self.readable.exact_key, within)

    def onscreen_at(self, time: float) -> list[Line]:
        """The text in the very frame at a given time."""
        return [] if self.readable is None else self.readable.exactly(time)

    def known(self) -> tuple[list[Line], list[Line]]:
        """Speech and on-screen text that are already stored."""
        text = self._source.text
        if self.subtitles.key() is not None:
            speech = self.subtitles.lines()
        else:
            speech = text.lines(self.recognised.key) if self.recognised else []
        return speech, text.lines(self.readable.key) if self.readable else []

    @property
    def complete(self) -> bool:
        """Whether everything that is said and shown is known, as far as it can be recognised."""
        self.subtitles.lines()  # which costs nothing
        whole = Segment(0.0, self._source.video.duration)
        keys = (self.speech_key(), self.readable.key if self.readable else None)
        covered = self._source.text.covered
        return all(coverage(covered(key), whole) >= 1.0 for key in keys if key is not None)

    def _skips(self, within: Segment | None) -> bool:
        """Whether a stretch is too long to be recognised in a hurry."""
        length = self._source.video.duration if within is None else within.duration
        return self.hurried and length > SHORT

    def _needs_no_listener(self) -> bool:
        return self.subtitles.key() is not None or not self._source.video.info.audio
