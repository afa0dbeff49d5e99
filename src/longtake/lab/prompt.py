"""A conversation as a simulated model takes it in: pictures, sentences with their times, and what is asked."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from longtake.lab import code
from longtake.lab.eyes import Eyes
from longtake.lab.facts import Sighting, Sign
from longtake.lab.grammar import facts_in, sign_text
from longtake.lab.queries import Query, query_in
from longtake.lab.solving import joined
from longtake.models.chat import Image, Message, Text, ToolSpec
from longtake.types import Segment

CLOCK = r"\d{1,2}:\d{2}:\d{2}(?:[.,]\d+)?|\d{1,3}:\d{2}(?:\.\d+)?"
_NUMBER = r"\d+(?:\.\d+)?"
_RANGE = re.compile(rf"\[?({CLOCK})\]?\s*(?:to|until|-|–|—|→)\s*\[?({CLOCK})\]?")
_SECONDS_RANGE = re.compile(
    rf"\b({_NUMBER})\s*s?\s*(?:to|-|–|—)\s*({_NUMBER})\s*(?:s|sec|seconds)\b"
)
_FIELDS = re.compile(
    rf'"start\w*":\s*"?({CLOCK}|{_NUMBER})"?,\s*"end\w*":\s*"?({CLOCK}|{_NUMBER})"?'
)
_MOMENT = re.compile(rf"({CLOCK})|\b({_NUMBER})\s?s(?:econds)?\b")
_NOTED = re.compile(rf"\[({CLOCK})\]")
_OPTION = re.compile(r"^[ \t]*([A-Z])[.)][ \t]+(\S.*?)[ \t]*$", re.MULTILINE)
_LONG = re.compile(
    rf"({CLOCK})\s+long|(?:duration|length|lasts)\W+(?:\w+\W+){{0,3}}?({CLOCK}|{_NUMBER})",
    re.IGNORECASE,
)
_MATERIAL = re.compile(r"<material[^>]*>(.*?)</material>", re.DOTALL)
_SIGN = re.compile(sign_text())


def seconds(clock: str) -> float:
    """A clock or a number as seconds."""
    total = 0.0
    for part in clock.replace(",", ".").split(":"):
        total = total * 60 + float(part)
    return total


@dataclass(frozen=True)
class Shown:
    """All that a call puts before a model."""

    messages: Sequence[Message]
    eyes: Eyes
    world: tuple[int, int] | None = None
    """The only world whose pictures are known, as seed and minutes; ``None``: every one."""

    @cached_property
    def text(self) -> str:
        """The words of all turns."""
        return "\n".join(
            part.text
            for message in self.messages
            for part in message.parts
            if isinstance(part, Text)
        )

    @cached_property
    def own(self) -> str:
        """The words that are no quoted material."""
        return _MATERIAL.sub("\n", self.text)

    @cached_property
    def moments(self) -> list[code.Moment | None]:
        """The moments of all pictures, ``None`` where the code cannot be read."""
        pictures = [
            part for message in self.messages for part in message.parts if isinstance(part, Image)
        ]
        found = [code.read(picture.frame.pixels) for picture in pictures]
        return [
            m if m is None or self.world in (None, (m.seed, m.minutes)) else None for m in found
        ]

    @cached_property
    def seen(self) -> list[Sighting]:
        """What the pictures show, as far as it is noticed."""
        known = dict.fromkeys(moment for moment in self.moments if moment is not None)
        return [sighting for moment in known for sighting in self.eyes.look(moment)]

    @cached_property
    def told(self) -> list[Sighting]:
        """What the words state, as far as it is taken in."""
        times = _times(self.text)
        stated = [Sighting(fact, _before(times, place)) for place, fact in facts_in(self.text)]
        return [s for s in [*stated, *self._readings(times)] if self.eyes.takes_in(s.fact)]

    @cached_property
    def sightings(self) -> list[Sighting]:
        """Everything that is known."""
        return joined([*self.seen, *self.told])

    @cached_property
    def looks(self) -> list[float]:
        """Every moment that was looked at, now or by whoever wrote the notes."""
        pictured = [float(moment.second) for moment in self.moments if moment is not None]
        return sorted({*pictured, *(seconds(time) for time in _NOTED.findall(self.text))})

    @cached_property
    def _asked(self) -> tuple[str, int, Query] | None:
        for text in (self.own, self.text):
            if found := query_in(text):
                return text, *found
        return None

    @property
    def query(self) -> Query | None:
        """What is asked, where it is a question of the laboratory."""
        return self._asked[2] if self._asked else None

    @cached_property
    def options(self) -> tuple[str, ...]:
        """The options that follow the question, in order."""
        text, start = (self._asked[0], self._asked[1]) if self._asked else (self.own, 0)
        options: list[str] = []
        for match in _OPTION.finditer(text, start):
            if ord(match[1]) - ord("A") != len(options):
                if options:
                    break
                continue
            options.append(match[2])
        return tuple(options)

    @cached_property
    def duration(self) -> float:
        """How long the film is: as pictures or words say, else as far as anything is known of it."""
        for moment in self.moments:
            if moment is not None:
                return moment.minutes * 60.0
        if self.world is not None:
            return self.world[1] * 60.0
        if match := _LONG.search(self.own):
            return seconds(match[1] or match[2])
        return max((time for _, time in _times(self.text)), default=0.0) + 1.0

    def intervals(self, text: str | None = None) -> list[Segment]:
        """The stretches of film that the words name, in order, each once."""
        found: list[tuple[int, Segment]] = []
        for pattern in (_RANGE, _SECONDS_RANGE, _FIELDS):
            for match in pattern.finditer(self.text if text is None else text):
                a, b = seconds(match[1]), seconds(match[2])
                if b > a:
                    found.append((match.start(), Segment(a, b)))
        return list(dict.fromkeys(segment for _, segment in sorted(found, key=lambda one: one[0])))

    def numbered_segments(self) -> dict[int, Segment]:
        """Lines such as ``3. 00:10:00 to 00:20:00``."""
        found = {}
        for line in self.text.splitlines():
            match = re.match(r"\s*(?:segment\s+)?(\d+)\s*[.:)]\s", line, re.IGNORECASE)
            if match and (segments := self.intervals(line[match.end() :])):
                found[int(match[1])] = segments[0]
        return found

    def named_lines(self) -> list[tuple[str, str]]:
        """Lines such as ``reader: B. Because …``, as name and what was said."""
        lines = []
        for block in _MATERIAL.findall(self.text) or [self.text]:
            for line in block.splitlines():
                match = re.match(
                    r"\s*([^:\[\]{}\"]{1,60}?)\s*(?:\[[^\]]*\]\s*)?(?:\([^)]*\)\s*)?:\s+(\S.*)$",
                    line,
                )
                if match and not re.match(r"\d+$|Question$", match[1]):
                    lines.append((match[1].strip(), match[2]))
        return lines

    def numbered_lines(self) -> dict[int, str]:
        """Lines such as ``2: the green cup``, in quoted material where there is any."""
        body = "\n".join(_MATERIAL.findall(self.text)) or self.text
        return {
            int(n): said
            for n, said in re.findall(r"^\s*(\d+)\s*[:.)]\s+(\S.*?)\s*$", body, re.MULTILINE)
        }

    def _readings(self, times: list[tuple[int, float]]) -> list[Sighting]:
        """Texts of signs that stand by themselves, after a time in the same line."""
        found = []
        for match in _SIGN.finditer(self.text):
            line = self.text[self.text.rfind("\n", 0, match.start()) + 1 : match.start()]
            if _MOMENT.search(line) and not re.search(r"reads\s*[\"“'‹]?$", line):
                found.append(Sighting(Sign(None, match[0], None), _before(times, match.start())))
        return found

    @cached_property
    def worded_tools(self) -> tuple[ToolSpec, ...]:
        """Tools that the words tell of, one JSON object a line, for models without tool calls."""
        found = []
        for line in self.text.splitlines():
            if line.startswith('{"tool"'):
                try:
                    told = json.loads(line)
                except ValueError:
                    continue  # a line of the film's own
                if (
                    isinstance(told, dict)
                    and isinstance(told.get("arguments"), dict)
                    and "description" in told
                ):
                    found.append(
                        ToolSpec(str(told["tool"]), str(told["description"]), told["arguments"])
                    )
        return tuple(found)

    @cached_property
    def form(self) -> Mapping[str, Any] | None:
        """The JSON schema that the words ask for, where there is one."""
        decoder = json.JSONDecoder()
        found = None
        for match in re.finditer(r"^\s*\{\"", self.text, re.MULTILINE):
            try:
                value, _ = decoder.raw_decode(self.text[match.start() :].lstrip())
            except ValueError:
                continue  # prose that merely looks like JSON
            if isinstance(value, dict) and "properties" in value:
                found = value
        return found


def _times(text: str) -> list[tuple[int, float]]:
    """Every time that a text names, with its place; a range counts as its middle."""
    found: list[tuple[int, int, float]] = []
    for pattern in (_RANGE, _SECONDS_RANGE, _FIELDS):
        for match in pattern.finditer(text):
            found.append((match.start(), match.end(), (seconds(match[1]) + seconds(match[2])) / 2))
    covered = [(a, b) for a, b, _ in found]
    for match in _MOMENT.finditer(text):
        if not any(a <= match.start() < b for a, b in covered):
            found.append((match.start(), match.end(), seconds(match[1] or match[2])))
    return sorted((start, time) for start, _, time in found)


def _before(times: list[tuple[int, float]], place: int) -> float | None:
    """The last time that is named before a place in the text."""
    return max(((start, time) for start, time in times if start < place), default=(0, None))[1]
