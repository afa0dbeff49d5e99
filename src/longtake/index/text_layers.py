"""Text with times: subtitles, recognised speech and on-screen text, each stored as it is read."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from longtake._util.cancellation import check_stop
from longtake._util.timecode import clock
from longtake.algorithms.intervals import coverage
from longtake.algorithms.lexical import LANGUAGES
from longtake.algorithms.shots import spans, survey
from longtake.algorithms.speakers import numbered_voices
from longtake.errors import MissingExtra
from longtake.index.layers import Advance, ignore
from longtake.index.source import IndexedSource
from longtake.index.store import LayerKey
from longtake.perception.loader import PerceptionModels
from longtake.perception.protocols import SpeechRecognizer, TextReader
from longtake.perception.speech import VoiceEncoder
from longtake.tracing.events import note_once
from longtake.types import Frame, Line, Segment
from longtake.video.audio import listen
from longtake.video.container import check_plain_file
from longtake.video.subtitles import embedded_subtitles, read_subtitles, sidecar, unusable


class Subtitles:
    """The subtitles of one film, if it has any."""

    def __init__(self, source: IndexedSource, given: Path | None, begin: float) -> None:
        self._source, self.given, self._begin = source, given, begin
        self.only_given = False
        """Whether subtitles beside and inside the film are left out."""

    @property
    def file(self) -> Path | None:
        """The subtitle file in use: the given one, else the one beside the film if usable."""
        if self.given is not None or self.only_given:
            return self.given
        # the user did not name this file, so a bad one is ignored instead of failing the run
        beside = sidecar(self._source.path)
        return beside if beside is not None and self._usable(beside) else None

    def _usable(self, beside: Path) -> bool:
        """Whether a file can be read; a note reports one that is ignored."""
        why = unusable(beside, self._source.settings.media)
        if why:
            note_once("subtitles_left_out", why=why)
        return not why

    def key(self) -> LayerKey | None:
        """The layer that holds the lines; ``None`` if the film has no subtitles.

        Computed anew each time, because a file beside the film may appear or change at any time.
        """
        file = self.file
        if file is not None:
            check_plain_file(file)
            # by content: a file that is edited is read again
            content = hashlib.blake2b(file.read_bytes(), digest_size=8).hexdigest()
            params: dict[str, Any] = {"file": content, "suffix": file.suffix}
            # only if set: keys from before this option existed stay valid
            if self._begin:
                params["begin"] = self._begin
            return LayerKey("subtitles", 2, params)
        streams = () if self.only_given else self._source.video.info.subtitles
        return LayerKey("subtitles", 2, {"stream": streams[0].index}) if streams else None

    def lines(self, within: Segment | None = None) -> list[Line]:
        """The lines of the film or of a segment."""
        key = self.key()
        if key is None:
            return []
        text = self._source.text
        # all of the film is covered, also where nothing is said
        whole = Segment(0.0, self._source.video.duration)
        self._source.ensure(lambda: text.has(key), lambda: text.add(key, self._read(), [whole]))
        return text.lines(key, within)

    def _read(self) -> list[Line]:
        source, limits = self._source, self._source.settings.media
        if self.file is not None:
            return read_subtitles(self.file, limits, begin=self._begin)
        stream = source.video.info.subtitles[0].index
        return embedded_subtitles(
            source.path, origin=source.video.origin, index=stream, limits=limits
        )


TILE = 60.0
# a word may begin before its tile; a sentence takes a few seconds to end after it
BEFORE, AFTER = 2.0, 6.0
TileOrder: TypeAlias = Callable[[list[Segment]], list[Segment]]


class SpeechLayer:
    """The recognised speech of one film."""

    def __init__(self, source: IndexedSource, listener: SpeechRecognizer) -> None:
        self._source, self._text, self._listener = source, source.text, listener
        params = {"listener": listener.key, "tile": TILE}
        self.key = LayerKey("speech", 1, params)
        self.unsupported_key = LayerKey("unsupported_speech", 1, params)
        self.voices_key = LayerKey("voices", 1, params)

    @property
    def _duration(self) -> float:
        return self._source.video.duration

    def missing(self, within: Segment | None = None) -> list[Segment]:
        """Tiles that overlap ``within`` and are not transcribed."""
        within = within or Segment(0.0, self._duration)
        known = self._text.covered(self.key)
        tiles = []
        for number in range(math.ceil(self._duration / TILE)):
            tile = Segment(number * TILE, min((number + 1) * TILE, self._duration))
            if tile.overlap(within) > 0 and coverage(known, tile) < 1.0:
                tiles.append(tile)
        return tiles

    def build(self, within: Segment | None = None, advance: Advance = ignore) -> None:
        """Transcribe the tiles that are missing."""
        self._source.ensure(
            lambda: not self.missing(within), lambda: self.transcribe(within, advance)
        )

    def transcribe(
        self, within: Segment | None = None, advance: Advance = ignore, order: TileOrder = list
    ) -> None:
        """The same; call while the folder is ``building``, from any thread.

        ``order`` sorts the missing tiles, again after each transcribed one.
        """
        tiles = order(self.missing(within))
        count = len(tiles)
        while tiles:
            self.hear(tiles.pop(0))
            tiles = order(tiles)
            advance(1 - len(tiles) / count)

    def hear(self, tile: Segment) -> None:
        """Transcribe and store a tile; call while the folder is ``building``."""
        begin = max(0.0, tile.start - BEFORE)
        stretch = Segment(begin, min(self._duration, tile.end + AFTER))
        heard = self._listener.listen(self._sound(stretch), stretch.start)
        # the margins of two tiles overlap, so both may contain the same line
        neighbours = self._text.lines(self.key, stretch)
        lines = [line for line in heard.lines if line.segment.start in tile]
        lines = [line for line in lines if not _repeats(line, neighbours)]
        skipped = [part for part in heard.unsupported if part.segment.start in tile]
        if skipped:
            reasons = [Line(part.segment, part.reason) for part in skipped]
            self._text.add(self.unsupported_key, reasons, [part.segment for part in skipped])
        # last, since it marks the tile as covered
        self._text.add(self.key, lines, [tile])

    def _sound(self, stretch: Segment) -> NDArray[np.float32]:
        slices = listen(
            self._source.path,
            origin=self._source.video.origin,
            within=stretch,
            slice_seconds=stretch.duration,
            limits=self._source.settings.media,
        )
        # a stretch without sound gives no slices
        samples = np.concatenate([np.zeros(0, np.float32), *(part.samples for part in slices)])
        check_stop()
        return samples

    def tell_voices_apart(self, encoder: VoiceEncoder, advance: Advance = ignore) -> None:
        """Label each line with the number of its voice, where that is sure."""
        self.build()
        self._source.ensure(
            lambda: self._text.has(self.voices_key), lambda: self._label(encoder, advance)
        )

    def _label(self, encoder: VoiceEncoder, advance: Advance) -> None:
        lines = self._text.lines(self.key)
        rows = []
        for number, line in enumerate(lines, start=1):
            rows.append(encoder.encode(self._sound(line.segment)))
            advance(number / len(lines))
        voices = numbered_voices(np.array(rows), [line.segment.duration for line in lines])
        labelled = []
        for line, voice in zip(lines, voices, strict=True):
            text = line.text if voice is None else f"Speaker {voice}: {line.text}"
            labelled.append(Line(line.segment, text))
        self._text.add(self.voices_key, labelled, [Segment(0.0, self._duration)])


def _repeats(line: Line, others: list[Line]) -> bool:
    """Whether a neighbouring tile already has this line, starting a moment earlier."""
    half = 0.5 * line.segment.duration
    return any(line.segment.overlap(other.segment) > half for other in others)


WIDTH = 1280
"""Maximum width of a frame that is read: keeps small print legible at a bearable cost."""


class OnscreenLayer:
    """The on-screen text of one film. Reading takes seconds per frame, so each is read once."""

    def __init__(
        self, source: IndexedSource, reader: TextReader, glimpses: Callable[[], NDArray[Any]]
    ) -> None:
        self._source, self._text, self._reader = source, source.text, reader
        self._glimpses, self._times = glimpses, source.grid()
        few = len(self._times) < 2
        self._step = source.video.duration if few else float(self._times[1] - self._times[0])
        params = {"reader": reader.key, "step": self._step, "width": WIDTH}
        # version 3: distinguishes consecutive cards of small print
        self.key = LayerKey("onscreen", 3, params)
        self.exact_key = LayerKey("onscreen_exact", 1, params)

    @cached_property
    def _stands(self) -> NDArray[np.int64]:
        return survey(np.asarray(self._glimpses()))

    def missing(self, within: Segment | None = None) -> list[int]:
        """Frames that represent a shot inside ``within`` and have not been read."""
        within = within or Segment(0.0, self._source.video.duration)
        known = self._text.covered(self.key)
        # for every question, and choosing the shots of a long film takes seconds
        if coverage(known, within) >= 1.0:
            return []
        inside = (self._times < within.end) & (self._times + self._step > within.start)
        # a shot is represented by one frame, which may lie outside ``within``
        wanted = np.unique(self._stands[inside])
        return [int(row) for row in wanted if coverage(known, self._moment(row)) < 1.0]

    def build(self, within: Segment | None = None, advance: Advance = ignore) -> None:
        """Read the frames that are missing; each is stored as soon as it is read."""
        self._source.ensure(
            lambda: not self.missing(within), lambda: self._read_all(within, advance)
        )

    def exactly(self, time: float) -> list[Line]:
        """The text in the frame at a given time, which may differ from that of its shot."""
        row = int(np.searchsorted(self._times, time, side="right")) - 1
        row = min(max(row, 0), len(self._times) - 1)
        moment = self._moment(row)

        def read() -> None:
            (frame,) = self._source.video.at([float(self._times[row])], width=WIDTH)
            self._read(frame, [moment], self.exact_key)

        self._source.ensure(
            lambda: coverage(self._text.covered(self.exact_key), moment) >= 1.0, read
        )
        return self._text.lines(self.exact_key, moment)

    def _read_all(self, within: Segment | None, advance: Advance) -> None:
        rows = self.missing(within)
        if not rows:
            return
        frames = self._source.video.frames(self._times[rows], width=WIDTH)
        for done, (row, frame) in enumerate(zip(rows, frames, strict=True), 1):
            # the text holds for the whole shot that the row represents
            shown = [self._stretch(begin, end) for begin, end in spans(self._stands, row)]
            self._read(frame, shown, self.key)
            advance(done / len(rows))

    def _read(self, frame: Frame, shown: list[Segment], key: LayerKey) -> None:
        """Read a frame, and store its text for the segments in which it is shown."""
        check_stop()
        texts = [box.text for box in self._reader.read(frame)]
        lines = [Line(segment, text) for segment in shown for text in texts]
        self._text.add(key, lines, shown)

    def _moment(self, row: int) -> Segment:
        return self._stretch(row, row + 1)

    def _stretch(self, begin: int, end: int) -> Segment:
        # the last moment of the grid may reach beyond the end of the film
        last = float(self._times[end - 1]) + self._step
        return Segment(float(self._times[begin]), min(last, self._source.video.duration))


class FilmWords:
    """Subtitles, recognised speech and on-screen text of one film."""

    def __init__(
        self,
        source: IndexedSource,
        senses: PerceptionModels,
        glimpses: Callable[[], NDArray[Any]],
        *,
        subtitles: Path | None = None,
        subtitles_begin: float = 0.0,
    ) -> None:
        self._source, self._senses, self._glimpses = source, senses, glimpses
        self.subtitles = Subtitles(source, subtitles, subtitles_begin)
        self.hurried = False
        """Whether to use only known words instead of recognising long segments."""
        self._asked: tuple[list[Segment], list[Segment]] | None = None
        """If isolated, where speech and on-screen text were asked for."""

    @cached_property
    def recognised(self) -> SpeechLayer | None:
        """Speech recognition; ``None`` if it is not needed, impossible or switched off."""
        # ``unheard`` reports a recogniser that is not installed
        if self._needs_no_listener() or self.unheard:
            return None
        listener = self._senses.listener
        return None if listener is None else SpeechLayer(self._source, listener)

    @cached_property
    def unheard(self) -> str:
        """Why speech is not recognised, and what to install; empty if it is."""
        if self._needs_no_listener():
            return ""
        try:
            self._senses.listener  # noqa: B018
        except MissingExtra as error:
            return str(error)
        return ""

    @property
    def speech_note(self) -> str:
        """Why the film has no speech, or not all of it; empty if there is nothing to say."""
        if self.subtitles.key() is not None:
            return ""
        if not self._source.video.info.audio:
            return "the film has no sound"
        if self.unheard:
            return f"the film's speech is left out: {self.unheard}"
        if self.recognised is None:
            return "speech recognition is switched off (perception.listener)"
        foreign = self._source.text.covered(self.recognised.unsupported_key)
        lines = self._source.text.lines(self.recognised.key)
        seconds = sum(stretch.duration for stretch in foreign)
        # a few seconds beside understood lines are more likely a sigh or a song
        if seconds >= 10 or (foreign and not lines):
            return self._not_english(seconds, foreign)
        if self.recognised.missing() or lines:
            return ""
        return "nobody is heard to speak in the film's sound"

    def _not_english(self, seconds: float, stretches: Sequence[Segment]) -> str:
        longest = max(stretches, key=lambda stretch: stretch.duration)
        label = LANGUAGES.get(self._source.video.info.audio[0].language)
        labelled = f"; the sound is labelled {label}" if label else ""
        return (
            f"{seconds:.0f} s of speech, as at "
            f"{clock(longest.start)}, are not understood as English (another language, singing or "
            f"noise{labelled}). Whisper hears many languages: "
            'pip install "longtake[whisper]"; longtake models pull whisper; '
            "then add --set perception.listener=whisper"
        )

    @cached_property
    def readable(self) -> OnscreenLayer | None:
        """On-screen text; ``None`` if reading is switched off, or there are no pictures."""
        reader = self._senses.reader if self._source.video.info.codec else None
        return None if reader is None else OnscreenLayer(self._source, reader, self._glimpses)

    def speech_key(self) -> LayerKey | None:
        """The layer that speech comes from: subtitles, else recognised speech, else none."""
        return self.subtitles.key() or self._heard_key

    @property
    def _heard_key(self) -> LayerKey | None:
        """The layer of recognised speech, with labelled voices if there are any."""
        if self.recognised is None:
            return None
        # an experiment does not depend on earlier runs
        told_apart = self._asked is None and self._source.text.has(self.recognised.voices_key)
        return self.recognised.voices_key if told_apart else self.recognised.key

    def isolate(self) -> None:
        """Use only the given subtitles and what is recognised from now on, as experiments need."""
        self.subtitles.only_given = True
        self._asked = [], []

    def speech(self, within: Segment | None = None) -> list[Line]:
        """Subtitles if there are any, otherwise recognised speech, transcribed now where missing.

        A missing speech recogniser is noted and not an error, since pictures may give the answer.
        """
        if self.subtitles.key() is not None:
            return self.subtitles.lines(within)
        if self.recognised is None:
            # empty for a film without sound
            if self.unheard:
                note_once("speech_left_out", why=self.unheard)
            return []
        if self._asked is not None:
            self._asked[0].append(within or self._whole)
        if not self._skips(within):
            self.recognised.build(within)
        return self._source.text.lines(self._heard_key or self.recognised.key, within)

    def onscreen(self, within: Segment | None = None) -> list[Line]:
        """Text visible in the picture, read now where missing."""
        if self.readable is None:
            return []
        if self._asked is not None:
            self._asked[1].append(within or self._whole)
        if not self._skips(within):
            self.readable.build(within)
            return self._source.text.lines(self.readable.key, within)
        # a first look stores exact moments before it knows the shots
        shots = self._source.text.lines(self.readable.key, within)
        return shots or self._source.text.lines(self.readable.exact_key, within)

    def onscreen_at(self, time: float) -> list[Line]:
        """The text in the very frame at a given time."""
        return [] if self.readable is None else self.readable.exactly(time)

    def known(self) -> tuple[list[Line], list[Line]]:
        """Speech and on-screen text that are already stored."""
        text = self._source.text
        heard = self._heard_key
        speech = text.lines(heard) if heard else []
        onscreen = text.lines(self.readable.key) if self.readable else []
        if self._asked is not None:
            speech, onscreen = map(_within, (speech, onscreen), self._asked)
        if self.subtitles.key() is not None:
            speech = self.subtitles.lines()
        return speech, onscreen

    @property
    def complete(self) -> bool:
        """Whether everything that is said and shown is known, as far as it can be recognised."""
        self.subtitles.lines()  # which costs nothing
        whole = self._whole
        keys = (self.speech_key(), self.readable.key if self.readable else None)
        covered = self._source.text.covered
        return all(coverage(covered(key), whole) >= 1.0 for key in keys if key is not None)

    @property
    def _whole(self) -> Segment:
        return Segment(0.0, self._source.video.duration)

    def _skips(self, within: Segment | None) -> bool:
        """Whether a segment is too long to be recognised in a hurry."""
        length = self._source.video.duration if within is None else within.duration
        # two minutes are recognised even in a hurry: the question names them
        return self.hurried and length > 120.0

    def _needs_no_listener(self) -> bool:
        return self.subtitles.key() is not None or not self._source.video.info.audio


def _within(lines: Sequence[Line], stretches: Sequence[Segment]) -> list[Line]:
    """The lines that begin in one of the stretches, or overlap it."""
    kept = []
    for line in lines:
        start = line.segment.start
        if any(start in part or line.segment.overlap(part) > 0 for part in stretches):
            kept.append(line)
    return kept
