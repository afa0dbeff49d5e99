"""What can be read about a film: lines of speech, screens of text, captions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from longtake.algorithms import lexical
from longtake.algorithms.phrases import squeeze
from longtake.footage.protocol import Footage
from longtake.types import Line, Segment

SHORT_SCREEN = 5
"""Lines up to which a screen is shown whole; of a longer one, only what is new on it."""
SHORTEST_LINE = 2
"""Letters of a line worth reading: single ones are misread shapes."""

MISREAD = 1 / 3
"""Share of unknown words from which a long screen counts as misread, as blurred print is."""
LONG_WORD = 4
"""Letters of a word that counts for this: shorter ones are often abbreviations."""


@dataclass(frozen=True)
class Passage:
    """Lines that belong together, all from one source: ``speech``, ``onscreen`` or ``caption``."""

    source: str
    lines: tuple[Line, ...]
    bearing: float = 0.0
    """How much it has to do with the question."""

    @property
    def segment(self) -> Segment:
        """From the first line to the last."""
        return Segment(self.lines[0].segment.start, max(line.segment.end for line in self.lines))

    @property
    def text(self) -> str:
        """The lines in a row; those of a screen are kept apart, since they are no sentence."""
        return (" / " if self.source == "onscreen" else " ").join(line.text for line in self.lines)


def read(footage: Footage, stretch: Segment | None) -> list[Passage]:
    """Everything said, shown and described in a stretch; recognised now if need be."""
    if "captions" in footage.has:
        times = [t for t in footage.times.tolist() if stretch is None or t in stretch]
        captions = zip(times, footage.captions(times), strict=True)
        lines = [Line(Segment(time, time + 1), text) for time, text in captions]
        return [Passage("caption", (line,)) for line in lines]
    spoken = [Passage("speech", (line,)) for line in footage.speech(stretch)]
    shown = screens(footage.onscreen(stretch))
    return spoken + [passage for passage in shown if not is_misread(passage)]


def screens(lines: Sequence[Line]) -> list[Passage]:
    """Lines that are shown together, as one passage each.

    A name stands below "Narrator" and says nothing without it. A screen that shows the same as the
    one before prolongs it.
    """
    legible = [line for line in lines if len(squeeze(line.text)) >= SHORTEST_LINE]
    legible.sort(key=lambda line: line.segment.start)
    shown: list[Passage] = []
    before: frozenset[str] = frozenset()
    for _, group in groupby(legible, key=lambda line: line.segment.start):
        screen = list(group)
        known, before = before, frozenset(squeeze(line.text) for line in screen)
        new = [line for line in screen if squeeze(line.text) not in known]
        if shown and not new:
            shown[-1] = _prolonged(shown[-1], screen)
        else:
            kept = screen if len(screen) <= SHORT_SCREEN else new
            shown.append(Passage("onscreen", tuple(kept)))
    return shown


def is_misread(passage: Passage) -> bool:
    """Whether a long screen consists of words that no English text holds."""
    if len(passage.lines) <= SHORT_SCREEN:
        return False
    words = [word for word in lexical.content_words(passage.text) if len(word) >= LONG_WORD]
    unknown = [word for word in words if word.isascii() and not lexical.is_known(word)]
    return len(unknown) > MISREAD * len(words)


def _prolonged(passage: Passage, screen: Sequence[Line]) -> Passage:
    """A screen whose lines last as long as they are still shown on the next one."""
    until = {squeeze(line.text): line.segment.end for line in screen}
    lines = []
    for line in passage.lines:
        end = until.get(squeeze(line.text), line.segment.end)
        lines.append(Line(Segment(line.segment.start, max(end, line.segment.end)), line.text))
    return Passage(passage.source, tuple(lines))
