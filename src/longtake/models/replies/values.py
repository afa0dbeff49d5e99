"""Values as models write them, brought into the type that a field has.

Grades such as ``3/3`` or ``high``, segments such as ``Segment 3`` or a time in it, yes and no,
a list where one text was asked for and the other way round. What cannot mean one thing only is left
as it is, for the type to refuse.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from longtake.errors import ConfigError
from longtake.models.replies.forms import follow, is_letter
from longtake.models.replies.loose_json import NotJson, parse
from longtake.timecode import parse_time
from longtake.types import Segment

_CLOCK = re.compile(r"\d{1,3}:\d{2}(?::\d{2})?(?:\.\d+)?")
_NUMBER = re.compile(r"[-+]?\d{1,12}(?:\.\d{1,9})?")
_OUT_OF = re.compile(r"(\d{1,6})\s*(?:/|out of|of)\s*(\d{1,6})")
_LABELLED = re.compile(
    r"(?:segment|seg|score|grade|confidence|level|rating|number|no\.?|#)\s*[:=#]?\s*(\d{1,9})",
    re.IGNORECASE,
)
_RANGE = re.compile(r"(?:segments?\s*)?(\d{1,6})\s*(?:-|–|—|to|and|&|,)\s*\d{1,6}", re.IGNORECASE)
_EXPLAINED = re.compile(r"(\d{1,9})\s*[:.,;(=–—-]\s*\D{1,2000}")
_THREE_LEVELS = {"low": 0, "medium": 1, "moderate": 1, "high": 2}
_COUNTED = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_TRUTHS = {"yes": True, "true": True, "no": False, "false": False}
_NOTHING = ("", "none", "nothing", "null", "empty", "na")
_BULLET = re.compile(r"^\s*(?:[-*•+]|\d{1,3}[.)])\s+")
_NUMBERED_ITEM = re.compile(
    r"\s*(?:[-*•]\s+)?(?:segment\s+(\d{1,6})\s*[:.|)–—-]|(\d{1,6})\s*\|)\s*(\S.*)", re.IGNORECASE
)
_PLACEHOLDER = re.compile(r"[<\[(]?(?:text|string|\.\.\.|…)[>\])]?(?:, at most \d+ words)?")
_VALUE_KEYS = ("value", "const", "text")
"""Keys under which models put a value into an object of its own …"""
_LETTER_KEYS = (*_VALUE_KEYS, "letter", "answer", "choice", "option")
"""… and a letter."""


def fold(name: str) -> str:
    """A name for comparison: letters and digits in lower case."""
    return re.sub(r"[\W_]", "", unicodedata.normalize("NFKC", name).casefold())


def is_placeholder(value: Any) -> bool:
    """Whether a value repeats what was to be filled in instead of filling it in."""
    return isinstance(value, str) and _PLACEHOLDER.fullmatch(value.strip().lower()) is not None


@dataclass(frozen=True)
class Fitter:
    """Brings the values of a reply into the shape of a schema."""

    schema: Mapping[str, Any]
    numbered: Mapping[int, Segment] = field(default_factory=dict)
    """The segments that the prompt lists by number, for replies that name one by its time."""

    def fit(self, value: Any, node: Mapping[str, Any]) -> Any:
        """The value as a field with this schema takes it, unchanged where that is not clear."""
        node = follow(self.schema, node)
        if "anyOf" in node:
            return self._choose(value, node["anyOf"])
        if isinstance(value, list) and len(value) == 1 and node.get("type") != "array":
            value = value[0]
        if isinstance(value, dict) and "properties" not in node and node.get("type") != "array":
            value = _inner(value, _LETTER_KEYS if is_letter(node) else _VALUE_KEYS)
        if is_letter(node):
            return str(value) if isinstance(value, int) and not isinstance(value, bool) else value
        if "enum" in node:
            return _member(value, node["enum"])
        fitters: dict[Any, Callable[[Any, Mapping[str, Any]], Any]] = {
            "string": self._text,
            "integer": self._number,
            "number": self._number,
            "boolean": self._truth,
            "array": self._list,
            "object": self._object,
        }
        as_kind = fitters.get(node.get("type"))
        return value if as_kind is None else as_kind(value, node)

    def _choose(self, value: Any, branches: Sequence[Mapping[str, Any]]) -> Any:
        """Only null and one other type can be told apart; several types are pydantic's to try."""
        others = [branch for branch in branches if branch.get("type") != "null"]
        if value is None or len(others) != 1:
            return value
        return self.fit(value, others[0])

    def _text(self, value: Any, _: Mapping[str, Any]) -> Any:
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return " ".join(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)
        return value

    def _truth(self, value: Any, _: Mapping[str, Any]) -> Any:
        return _TRUTHS.get(fold(value), value) if isinstance(value, str) else value

    def _number(self, value: Any, node: Mapping[str, Any]) -> Any:
        if not isinstance(value, str):
            return value
        number = read_number(value, node.get("minimum"), node.get("maximum"))
        if number is None and "maximum" not in node:
            number = self._segment_at(value)
        return value if number is None else number

    def _segment_at(self, text: str) -> int | None:
        """The number of the only listed segment that a time, or a range of times, lies in."""
        try:
            times = [parse_time(clock) for clock in _CLOCK.findall(text)]
        except ConfigError:
            return None
        if not times or len(times) > 2:
            return None
        middle = sum(times) / len(times)
        numbers = [number for number, segment in self.numbered.items() if middle in segment]
        return numbers[0] if len(numbers) == 1 else None

    def _list(self, value: Any, node: Mapping[str, Any]) -> Any:
        item = follow(self.schema, node.get("items", {}))
        if value is None or (isinstance(value, str) and fold(value) in _NOTHING):
            return []
        if isinstance(value, str):
            value = _items(value)
        elif isinstance(value, dict):
            inner = [part for part in value.values() if isinstance(part, list)]
            value = inner[0] if len(inner) == 1 and len(value) == 1 else [value]
        if not isinstance(value, list):
            return value
        return [self._item(part, item) for part in value if not is_placeholder(part)]

    def _item(self, value: Any, node: Mapping[str, Any]) -> Any:
        if node.get("type") == "string" and isinstance(value, dict):
            texts = [part for part in value.values() if isinstance(part, str)]
            return texts[0] if len(texts) == 1 else value
        return self.fit(value, node)

    def _object(self, value: Any, node: Mapping[str, Any]) -> Any:
        fields: Mapping[str, Any] = node.get("properties", {})
        if isinstance(value, str):
            value = self._numbered_item(value, fields)
        if not isinstance(value, dict):
            return value
        names = {fold(name): name for name in fields}
        members: dict[str, Any] = {}
        for key, part in value.items():
            name = names.get(fold(str(key)))
            if name is None:
                members[str(key)] = part
            else:
                members[name] = self.fit(part, fields[name])
        return members

    def _numbered_item(self, text: str, fields: Mapping[str, Any]) -> Any:
        """``Segment 3: a dog`` or ``3 | a dog`` as an object with one number and one text."""
        kinds = {str(follow(self.schema, node).get("type")): name for name, node in fields.items()}
        match = _NUMBERED_ITEM.fullmatch(text)
        if match is None or kinds.keys() != {"integer", "string"} or len(fields) != 2:
            return text
        number = int(match.group(1) or match.group(2))
        return {kinds["integer"]: number, kinds["string"]: match.group(3)}


def read_number(text: str, least: float | None, most: float | None) -> int | float | None:
    """The number that a text states; ``None`` where it states none, or a range of grades."""
    said = unicodedata.normalize("NFKC", text).strip(" \t\r\n*_`\"'“”.!()[]")
    if _NUMBER.fullmatch(said):
        number = float(said)
        return int(number) if number.is_integer() else number
    if match := _OUT_OF.fullmatch(said):
        return int(match.group(1)) if most in (None, int(match.group(2))) else None
    if match := _LABELLED.fullmatch(said):
        return int(match.group(1))
    if most is None:
        # a wish for segments 3 to 4 is met by looking into 3
        match = _RANGE.fullmatch(said)
        return int(match.group(1)) if match else None
    if match := _EXPLAINED.fullmatch(said):
        return int(match.group(1))
    word = fold(said)
    if word in _COUNTED:
        return _COUNTED.index(word)
    if least is not None and most - least == 2 and word.removeprefix("very") in _THREE_LEVELS:
        return int(least) + _THREE_LEVELS[word.removeprefix("very")]
    return None


def _inner(value: dict[str, Any], keys: Sequence[str]) -> Any:
    """The value that an object such as ``{"type": "string", "value": "B"}`` holds."""
    held = [value[key] for key in keys if key in value]
    return held[0] if len(held) == 1 else value


def _member(value: Any, choices: Sequence[Any]) -> Any:
    if not isinstance(value, str):
        return value
    same = [choice for choice in choices if fold(str(choice)) == fold(value)]
    return same[0] if len(same) == 1 else value


def _items(text: str) -> list[Any]:
    """The items of a list that was written as one text."""
    if text.lstrip().startswith("["):
        try:
            inner = parse(text.strip()).value
        except NotJson:
            inner = None
        if isinstance(inner, list):
            return inner
    lines = [line for line in text.splitlines() if line.strip()]
    return [_BULLET.sub("", line).strip() for line in lines]
