"""What a simulated model perceives of a call: the pictures, the text, and the form of the reply.

:class:`Eyes` decides what is noticed, :class:`Shown` reads the messages. Functions below them read
forms and tools that the prompt describes in words.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from longtake._util.timecode import SHORT_CLOCK, parse_time
from longtake.llm.chat import Image, Message, Text, ToolSpec
from longtake.types import Segment
from longtake_bench.lab import frame_code
from longtake_bench.lab import vocabulary as v
from longtake_bench.lab.facts import (
    Deed,
    Fact,
    Presence,
    Saying,
    Sighting,
    Sign,
    Thing,
    facts_in,
    sentence,
    sign_text,
)
from longtake_bench.lab.frame_code import Moment
from longtake_bench.lab.profile import PROFILE, LabModel, pick, share
from longtake_bench.lab.queries import LabQuery, joined, query_in
from longtake_bench.lab.world import Script, make_script


@dataclass(frozen=True)
class Eyes:
    """Decides what is noticed, from a hash of seed, fact and second alone.

    With the same seed, higher acuity sees everything that lower acuity sees. The same fact one
    second later is a new draw. Facts and moments enter the hash by their text or ``repr``, so
    renaming their classes or fields would change what every model sees.
    """

    model: LabModel

    def attention(self, load: float, position: float) -> float:
        """The share of attention that something gets in a call: 1 / (1 + dilution · log₂ load).

        ``load`` is the size of the call in pictures, ``position`` runs from 0 to 1. The ends of a
        call lose less than the middle; the mean over all positions does not depend on ``middle``.
        """
        if self.model.dilution == 0.0 or load <= 1.0:
            return 1.0
        bent = 1.0 + self.model.middle * (6.0 * position * (1.0 - position) - 1.0)
        return 1.0 / (1.0 + self.model.dilution * math.log2(load) * bent)

    def look(self, moment: Moment, attention: float = 1.0) -> list[Sighting]:
        """What is noticed in a picture."""
        script = make_script(moment.seed, moment.minutes)
        visible = script.visible(moment.second)
        noticed = [self._notice(fact, moment, attention) for fact in visible]
        seen = [Sighting(fact, float(moment.second)) for fact in noticed if fact is not None]
        if share(self.model.seed, "imagined", moment) < self.model.hallucination:
            imagined = self._imagine(script, moment)
            seen.append(Sighting(imagined, float(moment.second)))
        return seen

    def _imagine(self, script: Script, moment: Moment) -> Deed:
        """A deed that is not there; its place and person do belong to the film."""
        person = pick(script.cast, self.model.seed, "who", moment)
        colour = pick(list(v.COLOURS), self.model.seed, "hue", moment)
        kind = pick(v.THINGS, self.model.seed, "kind", moment)
        verb = pick(list(v.VERBS), self.model.seed, "verb", moment)
        return Deed(person, verb, Thing(colour, kind), script.scene_at(moment.second).place)

    def takes_in(self, fact: Fact, attention: float = 1.0) -> bool:
        """Whether a fact that the prompt states is taken in."""
        if isinstance(fact, Saying):
            # hearing is a matter of acuity, as seeing is
            heard = self._acuity("spoken") * attention
            return share(self.model.seed, "spoken", sentence(fact)) < heard
        return share(self.model.seed, "reading", repr(fact)) < self.model.reading * attention

    def _acuity(self, kind: str) -> float:
        return self.model.by_kind.get(kind, self.model.acuity)

    def _sees(self, kind: str, fact: Fact, moment: Moment, attention: float) -> bool:
        drawn = share(self.model.seed, kind, sentence(fact), moment.second)
        return drawn < self._acuity(kind) * attention

    def _notice(self, fact: Fact, moment: Moment, attention: float) -> Fact | None:
        """The fact, part of it (the person without the deed, the sign unread), or ``None``."""
        match fact:
            case Deed(person, _, _, place):
                if self._sees("action", fact, moment, attention):
                    return fact
                less: Fact = Presence(person, place)
            case Sign(colour, _, place):
                if self._sees("onscreen", fact, moment, attention):
                    return fact
                less = Sign(colour, None, place)
            case _:
                less = fact
        # the rest of a missed fact, and anybody idle, is a matter of the acuity for people
        return less if self._sees("people", less, moment, attention) else None


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
# "B. the green cup" on a separate line
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

    @cached_property
    def text(self) -> str:
        """The text of all messages."""
        parts = [part for message in self.messages for part in message.parts]
        return "\n".join(part.text for part in parts if isinstance(part, Text))

    @cached_property
    def instructions(self) -> str:
        """The text outside quoted material."""
        return _MATERIAL.sub("\n", self.text)

    @cached_property
    def moments(self) -> list[frame_code.Moment | None]:
        """The moment of each picture; ``None`` if the code is unreadable or the world unknown."""
        parts = [part for message in self.messages for part in message.parts]
        moments = [frame_code.read(part.frame.pixels) for part in parts if isinstance(part, Image)]
        world = self.eyes.model.world
        if world is None:
            return moments
        return [each if each and world == (each.seed, each.minutes) else None for each in moments]

    @cached_property
    def seen(self) -> list[Sighting]:
        """What the model notices in the pictures."""
        positions: dict[frame_code.Moment, int] = {}
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
        defaults = PROFILE.model
        words = len(self.text) / (defaults.characters_per_token * defaults.picture_tokens)
        return len(self.moments) + words

    def _attention(self, position: float) -> float:
        return self.eyes.attention(self.load, position)

    @cached_property
    def read_facts(self) -> list[Sighting]:
        """The stated facts that the model notices."""
        times = _times(self.text)
        stated: list[tuple[int, Sighting]] = []
        for place, fact in facts_in(self.text):
            stated.append((place, Sighting(fact, _before(times, place))))
        taken_in = []
        for place, sighting in [*stated, *self._readings(times)]:
            attention = self._attention(place / max(1, len(self.text)))
            if self.eyes.takes_in(sighting.fact, attention):
                taken_in.append(sighting)
        return taken_in

    @cached_property
    def sightings(self) -> list[Sighting]:
        """Everything that the model knows."""
        return joined([*self.seen, *self.read_facts])

    @cached_property
    def looked_at(self) -> list[float]:
        """Every moment looked at, in these pictures or by whoever wrote the notes."""
        pictured = [float(moment.second) for moment in self.moments if moment is not None]
        noted = [parse_time(time) for time in _NOTED.findall(self.text)]
        return sorted({*pictured, *noted})

    @cached_property
    def _asked(self) -> tuple[str, int, LabQuery] | None:
        """The text that holds the question, the position of the question's end, and the query."""
        for text in (self.instructions, self.text):
            if located := query_in(text):
                return text, *located
        return None

    @property
    def query(self) -> LabQuery | None:
        """The question, if it is one of the laboratory's."""
        return self._asked[2] if self._asked else None

    @cached_property
    def options(self) -> tuple[str, ...]:
        """The answer options after the question, in order."""
        text, start = (self._asked[0], self._asked[1]) if self._asked else (self.instructions, 0)
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
        if self.eyes.model.world is not None:
            return self.eyes.model.world[1] * 60.0
        if match := _LONG.search(self.instructions):
            return parse_time(match[1] or match[2])
        return max((time for _, time in _times(self.text)), default=0.0) + 1.0

    def numbered_segments(self) -> dict[int, Segment]:
        """Segments from lines such as ``3. 00:10:00 to 00:20:00``, by number."""
        numbered = {}
        for line in self.text.splitlines():
            match = re.match(r"\s*(?:segment\s+)?(\d+)\s*[.:)]\s", line, re.IGNORECASE)
            if match and (segments := intervals_in(line[match.end() :])):
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
        return {int(number): statement for number, statement in _NUMBERED_LINE.findall(body)}

    def _readings(self, times: list[tuple[int, float]]) -> list[tuple[int, Sighting]]:
        """Sign texts outside sentences, as OCR reports them after a time, with their positions."""
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


def intervals_in(text: str) -> list[Segment]:
    """The time ranges that a text names, in order, without repeats."""
    placed = sorted(_ranges(text), key=lambda each: each[0][0])
    return list(dict.fromkeys(Segment(a, b) for _, a, b in placed if b > a))


def _ranges(text: str) -> Iterator[tuple[tuple[int, int], float, float]]:
    """Every time range in a text, in any of the known notations, with its position."""
    for pattern in (_RANGE, _SECONDS_RANGE, _FIELDS):
        for match in pattern.finditer(text):
            yield match.span(), parse_time(match[1]), parse_time(match[2])


def _times(text: str) -> list[tuple[int, float]]:
    """Every time that a text names, with its position; a range counts as its middle."""
    times: list[tuple[int, float]] = []
    inside: set[int] = set()
    for span, start, end in _ranges(text):
        inside.update(range(*span))
        times.append((span[0], (start + end) / 2))
    for match in _MOMENT.finditer(text):
        if match.start() not in inside:
            times.append((match.start(), parse_time(match[1] or match[2])))
    return sorted(times)


def _before(times: list[tuple[int, float]], place: int) -> float | None:
    """The last time named before a position in the text; the times are in order."""
    earlier = bisect_left(times, (place, -math.inf))
    return times[earlier - 1][1] if earlier else None


# Forms and tools as prompts describe them in words: without a schema in the request, as between
# uses of tools, a simulated model reads the words, as a real model would.
_MEMBER = re.compile(r'(?:^|, | and |\n)"([^"\n]+)": ')
_TOOL = re.compile(r"^(\w+): (.*) Arguments: (.*)$", re.MULTILINE)
_FORM = re.compile(r'Its fields:\n((?:"[^"\n]+": .*(?:\n|$))+)')
_ITEMS = {"texts": "string", "whole numbers": "integer", "numbers": "number"}


def form_in(text: str) -> dict[str, Any] | None:
    """The form that a prompt asks for last."""
    forms = _FORM.findall(text)
    return {"type": "object", "properties": _members(forms[-1])} if forms else None


def tools_in(text: str) -> Iterator[ToolSpec]:
    """The tools that a prompt lists, one per line."""
    for name, description, arguments in _TOOL.findall(text):
        schema = {"type": "object", "properties": _members(arguments)}
        yield ToolSpec(name, description, schema)


def is_form(line: str) -> bool:
    """Whether a line describes a field of the reply or a tool, so that it is not material."""
    return _TOOL.match(line) is not None or re.match(r'"[^"]+": ', line) is not None


def _members(text: str) -> dict[str, Any]:
    """The fields of ``"name": words`` pairs; the words of a name end at the next name."""
    text = text.strip()
    lines = text.split("\n")
    if len(lines) > 1:
        return {name: node for line in lines for name, node in _members(line).items()}
    starts = list(_MEMBER.finditer(text))
    members: dict[str, Any] = {}
    for number, match in enumerate(starts):
        if match.group(1) in members:
            continue
        end = starts[number + 1].start() if number + 1 < len(starts) else len(text)
        words = text[match.end() : end]
        # the rest describes an object inside this field
        if words.endswith(("each with", "an object with")) or "each with " in words:
            members[match.group(1)] = _node(text[match.end() :])
            break
        members[match.group(1)] = _node(words)
    return members


def _node(words: str) -> dict[str, Any]:
    """The schema of one field."""
    kind, _, described = words.partition(" (")
    node = {"description": described.removesuffix(")")} if described else {}
    if kind.startswith("one of "):
        return node | {"type": "string", "enum": re.findall(r'"([^"]*)"', kind)}
    if kind.startswith("a list of "):
        return node | _list(words.removeprefix("a list of "))
    if kind.startswith("an object with "):
        return {"type": "object", "properties": _members(words.removeprefix("an object with "))}
    if kind.startswith("true or false"):
        return node | {"type": "boolean"}
    if kind.startswith(("a whole number", "a number")):
        whole = kind.startswith("a whole")
        return node | {"type": "integer" if whole else "number"} | _bounds(kind)
    return node | {"type": "string"}


def _list(words: str) -> dict[str, Any]:
    node: dict[str, Any] = {"type": "array"}
    if max_items := re.match(r"(?:at most |\d+ to )(\d+) ", words):
        node["maxItems"] = int(max_items[1])
        words = words[max_items.end() :]
    words = re.sub(r"^at least \d+ ", "", words)
    if "each with " in words:
        inside = words.partition("each with ")[2]
        return node | {"items": {"type": "object", "properties": _members(inside)}}
    if words.startswith("lists of "):
        return node | {"items": _list(words.removeprefix("lists of "))}
    for plural, kind in _ITEMS.items():
        if words.startswith(plural):
            return node | {"items": {"type": kind} | _bounds(words)}
    return node | {"items": {"type": "string"}}


def _bounds(words: str) -> dict[str, Any]:
    if between := re.search(r"from (-?[\d.]+) to (-?[\d.]+)", words):
        return {"minimum": float(between[1]), "maximum": float(between[2])}
    return {}
