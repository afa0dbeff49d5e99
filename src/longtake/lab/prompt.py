"""Reads a conversation as a simulated model does: pictures, timed facts, and the question.

Everything that a simulated model knows comes out of :class:`Shown`. The patterns below decide which
words count as times, options or facts, so changing one changes the replies of every model.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from longtake.lab import code
from longtake.lab.eyes import Eyes
from longtake.lab.facts import Sighting, Sign
from longtake.lab.grammar import facts_in, sign_text
from longtake.lab.profile import PROFILE
from longtake.lab.queries import Query, query_in
from longtake.lab.solving import joined
from longtake.lab.worded import form_in, tools_in
from longtake.models.chat import Image, Message, Text, ToolSpec
from longtake.timecode import SHORT_CLOCK, parse_time
from longtake.types import Segment

_NUMBER = r"\d+(?:\.\d+)?"
# "00:01:10 to 00:01:20", with or without brackets
_RANGE = re.compile(rf"\[?({SHORT_CLOCK})\]?\s*(?:to|until|-|–|—|→)\s*\[?({SHORT_CLOCK})\]?")
# "70 to 80 s"; a unit is required, or any two numbers would be a range
_SECONDS_RANGE = re.compile(
    rf"\b({_NUMBER})\s*s?\s*(?:to|-|–|—)\s*({_NUMBER})\s*(?:s|sec|seconds)\b"
)
# "start": 70.0, "end": 80.0 in quoted JSON
_FIELDS = re.compile(
    rf'"start\w*":\s*"?({SHORT_CLOCK}|{_NUMBER})"?,\s*"end\w*":\s*"?({SHORT_CLOCK}|{_NUMBER})"?'
)
# a single time, "00:01:10" or "70 s"
_MOMENT = re.compile(rf"({SHORT_CLOCK})|\b({_NUMBER})\s?s(?:econds)?\b")
# the time before a note; somebody looked at the film then
_NOTED = re.compile(rf"\[({SHORT_CLOCK})\]")
# "B. the green cup" on a line of its own
_OPTION = re.compile(r"^[ \t]*([A-Z])[.)][ \t]+(\S.*?)[ \t]*$", re.MULTILINE)
# "The film is 01:00:00 long" or "duration: 3600"
_LONG = re.compile(
    rf"({SHORT_CLOCK})\s+long|(?:duration|length|lasts)\W+(?:\w+\W+){{0,3}}?({SHORT_CLOCK}|{_NUMBER})",
    re.IGNORECASE,
)
_MATERIAL = re.compile(r"<material[^>]*>(.*?)</material>", re.DOTALL)
_SIGN = re.compile(sign_text())
# "reader (first round): B. Because …"
_NAMED_LINE = re.compile(
    r"\s*([^:\[\]{}\"]{1,60}?)\s*(?:\[[^\]]*\]\s*)?(?:\([^)]*\)\s*)?:\s+(\S.*)$"
)
_NUMBERED_LINE = re.compile(r"^\s*(\d+)\s*[:.)]\s+(\S.*?)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Shown:
    """Everything that one call shows to a model."""

    messages: Sequence[Message]
    eyes: Eyes
    world: tuple[int, int] | None = None
    """Seed and minutes of the only world whose pictures are recognised; ``None``: all worlds."""

    @cached_property
    def text(self) -> str:
        """The text of all messages."""
        parts = [part for message in self.messages for part in message.parts]
        return "\n".join(part.text for part in parts if isinstance(part, Text))

    @cached_property
    def own(self) -> str:
        """The text outside quoted material."""
        return _MATERIAL.sub("\n", self.text)

    @cached_property
    def moments(self) -> list[code.Moment | None]:
        """The moment of each picture; ``None`` if the code is unreadable or the world unknown."""
        parts = [part for message in self.messages for part in message.parts]
        moments = [code.read(part.frame.pixels) for part in parts if isinstance(part, Image)]
        return [moment if self._knows(moment) else None for moment in moments]

    def _knows(self, moment: code.Moment | None) -> bool:
        if self.world is None or moment is None:
            return True
        return self.world == (moment.seed, moment.minutes)

    @cached_property
    def seen(self) -> list[Sighting]:
        """What the model notices in the pictures."""
        positions: dict[code.Moment, int] = {}
        for number, moment in enumerate(self.moments):
            if moment is not None:
                positions.setdefault(moment, number)
        last = max(1, len(self.moments) - 1)
        seen: list[Sighting] = []
        for moment, number in positions.items():
            seen += self.eyes.look(moment, self._attention(number / last))
        return seen

    @cached_property
    def load(self) -> float:
        """The size of the call, in pictures: text counts by its tokens."""
        own = PROFILE.model
        words = len(self.text) / (own.characters_per_token * own.picture_tokens)
        return len(self.moments) + words

    def _attention(self, position: float) -> float:
        return self.eyes.attention(self.load, position)

    @cached_property
    def told(self) -> list[Sighting]:
        """The stated facts that the model takes in."""
        times = _times(self.text)
        stated: list[tuple[int, Sighting]] = []
        for place, fact in facts_in(self.text):
            stated.append((place, Sighting(fact, _before(times, place))))
        told = []
        for place, sighting in [*stated, *self._readings(times)]:
            attention = self._attention(place / max(1, len(self.text)))
            if self.eyes.takes_in(sighting.fact, attention):
                told.append(sighting)
        return told

    @cached_property
    def sightings(self) -> list[Sighting]:
        """Everything that the model knows."""
        return joined([*self.seen, *self.told])

    @cached_property
    def looked_at(self) -> list[float]:
        """Every moment looked at, in these pictures or by whoever wrote the notes."""
        pictured = [float(moment.second) for moment in self.moments if moment is not None]
        noted = [parse_time(time) for time in _NOTED.findall(self.text)]
        return sorted({*pictured, *noted})

    @cached_property
    def _asked(self) -> tuple[str, int, Query] | None:
        """The text that holds the question, the position of the question's end, and the query."""
        for text in (self.own, self.text):
            if located := query_in(text):
                return text, *located
        return None

    @property
    def query(self) -> Query | None:
        """The question, if it is one of the laboratory's."""
        return self._asked[2] if self._asked else None

    @cached_property
    def options(self) -> tuple[str, ...]:
        """The answer options after the question, in order."""
        text, start = (self._asked[0], self._asked[1]) if self._asked else (self.own, 0)
        options: list[str] = []
        for match in _OPTION.finditer(text, start):
            if ord(match[1]) - ord("A") != len(options):
                if options:
                    break  # a new list begins
                continue
            options.append(match[2])
        return tuple(options)

    @cached_property
    def duration(self) -> float:
        """Length of the film: from pictures or text, else the last time that the text mentions."""
        for moment in self.moments:
            if moment is not None:
                return moment.minutes * 60.0
        if self.world is not None:
            return self.world[1] * 60.0
        if match := _LONG.search(self.own):
            return parse_time(match[1] or match[2])
        return max((time for _, time in _times(self.text)), default=0.0) + 1.0

    def intervals(self, text: str | None = None) -> list[Segment]:
        """The time ranges that the text names, in order, without repeats."""
        placed: list[tuple[int, Segment]] = []
        for pattern in (_RANGE, _SECONDS_RANGE, _FIELDS):
            for match in pattern.finditer(self.text if text is None else text):
                start, end = parse_time(match[1]), parse_time(match[2])
                if end > start:
                    placed.append((match.start(), Segment(start, end)))
        placed.sort(key=lambda pair: pair[0])
        return list(dict.fromkeys(segment for _, segment in placed))

    def numbered_segments(self) -> dict[int, Segment]:
        """Segments from lines such as ``3. 00:10:00 to 00:20:00``, by number."""
        numbered = {}
        for line in self.text.splitlines():
            match = re.match(r"\s*(?:segment\s+)?(\d+)\s*[.:)]\s", line, re.IGNORECASE)
            if match and (segments := self.intervals(line[match.end() :])):
                numbered[int(match[1])] = segments[0]
        return numbered

    def named_lines(self) -> list[tuple[str, str]]:
        """Name and statement from lines such as ``reader: B. Because …``."""
        lines = []
        for block in _MATERIAL.findall(self.text) or [self.text]:
            for line in block.splitlines():
                match = _NAMED_LINE.match(line)
                if match and not re.match(r"\d+$|Question$", match[1]):
                    lines.append((match[1].strip(), match[2]))
        return lines

    def numbered_lines(self) -> dict[int, str]:
        """Statements from lines such as ``2: the green cup``, by number.

        Only quoted material is read if there is any.
        """
        body = "\n".join(_MATERIAL.findall(self.text)) or self.text
        return {int(number): said for number, said in _NUMBERED_LINE.findall(body)}

    def _readings(self, times: list[tuple[int, float]]) -> list[tuple[int, Sighting]]:
        """Sign texts on their own with their positions, as OCR reports them: after a time."""
        readings = []
        for match in _SIGN.finditer(self.text):
            line_start = self.text.rfind("\n", 0, match.start()) + 1
            before = self.text[line_start : match.start()]
            in_sentence = re.search(r"reads\s*[\"“'‹]?$", before)
            if _MOMENT.search(before) and not in_sentence:
                time = _before(times, match.start())
                sighting = Sighting(Sign(None, match[0], None), time)
                readings.append((match.start(), sighting))
        return readings

    @cached_property
    def worded_tools(self) -> tuple[ToolSpec, ...]:
        """Tools that the prompt describes in words, for models without tool calls."""
        return tuple(tools_in(self.own))

    @cached_property
    def form(self) -> Mapping[str, Any] | None:
        """The form of the reply that the prompt describes in words, where it does."""
        return form_in(self.own)


def _times(text: str) -> list[tuple[int, float]]:
    """Every time that a text names, with its position; a range counts as its middle."""
    times: list[tuple[int, float]] = []
    inside: set[int] = set()
    for pattern in (_RANGE, _SECONDS_RANGE, _FIELDS):
        for match in pattern.finditer(text):
            inside.update(range(*match.span()))
            times.append((match.start(), (parse_time(match[1]) + parse_time(match[2])) / 2))
    for match in _MOMENT.finditer(text):
        if match.start() not in inside:
            times.append((match.start(), parse_time(match[1] or match[2])))
    return sorted(times)


def _before(times: list[tuple[int, float]], place: int) -> float | None:
    """The last time named before a position in the text; the times are in order."""
    earlier = bisect_left(times, (place, -math.inf))
    return times[earlier - 1][1] if earlier else None
