"""Values as models write them, brought into the type that a field has.

Grades such as ``3/3``, segments such as ``Segment 3``, yes and no, a list where one text was asked
for and the other way round. What cannot mean one thing only is left as it is, for the type to
refuse.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from longtake.models.replies.forms import follow, is_letter
from longtake.models.replies.tolerant_json import NotJson, parse

_NUMBER = re.compile(r"[-+]?\d{1,12}(?:\.\d{1,9})?")
_OUT_OF = re.compile(r"(\d{1,6})\s*(?:/|out of|of)\s*(\d{1,6})")
_LABELLED = re.compile(
    r"(?:segment|score|grade|confidence|level|rating|number|#)\s*[:=#]?\s*(\d{1,9})", re.IGNORECASE
)
_RANGE = re.compile(r"(?:segments?\s*)?(\d{1,6})\s*(?:-|–|—|to|and|&|,)\s*\d{1,6}", re.IGNORECASE)
_EXPLAINED = re.compile(r"(\d{1,9})\s*[:.,;(=–—-]\s*\D{1,2000}")
_TRUTHS = {"yes": True, "true": True, "no": False, "false": False}
_NOTHING = ("", "none", "nothing", "null", "empty", "na")
_MARKED_ITEM = re.compile(r"\s*(?:[-*•+]|\d{1,3}[.)])\s+(.*)")
_NUMBERED_ITEM = re.compile(
    r"\s*(?:segment\s+(\d{1,6})\s*[:.|)–—-]|(\d{1,6})\s*\|)\s*(\S.*)", re.IGNORECASE
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


def fit_value(value: Any, node: Mapping[str, Any], schema: Mapping[str, Any]) -> Any:
    """The value as a field with this schema takes it, unchanged where that is not clear.

    ``node`` is the field's part of ``schema``.
    """
    node = follow(schema, node)
    if "anyOf" in node:
        # only null and one other type can be told apart; several types are pydantic's to try
        others = [branch for branch in node["anyOf"] if branch.get("type") != "null"]
        return value if value is None or len(others) != 1 else fit_value(value, others[0], schema)
    kind = node.get("type")
    if kind == "array":
        return _fit_list(value, follow(schema, node.get("items", {})), schema)
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if "properties" in node:
        return _fit_object(value, node["properties"], schema)
    if isinstance(value, dict):
        value = _inner_value(value, _LETTER_KEYS if is_letter(node) else _VALUE_KEYS)
    if "enum" in node:
        return _fit_choice(value, node["enum"])
    if kind == "string":
        return _fit_text(value)
    if kind in ("integer", "number"):
        return _fit_number(value, node.get("maximum"))
    if kind == "boolean" and isinstance(value, str):
        return _TRUTHS.get(fold(value), value)
    return value


def read_number(text: str, maximum: float | None) -> int | float | None:
    """The number that a text states; ``None`` where it states none, or a range of grades."""
    bare = unicodedata.normalize("NFKC", text).strip(" \t\r\n*_`\"'“”.!()[]")
    if _NUMBER.fullmatch(bare):
        number = float(bare)
        return int(number) if number.is_integer() else number
    if match := _OUT_OF.fullmatch(bare):
        return int(match.group(1)) if maximum in (None, int(match.group(2))) else None
    # a request for segments 3 to 4 is met by looking into 3; a grade from 3 to 4 is none
    last = _RANGE if maximum is None else _EXPLAINED
    match = _LABELLED.fullmatch(bare) or last.fullmatch(bare)
    return int(match.group(1)) if match else None


def listed_items(text: str) -> list[str]:
    """The items of a list in plain text, where every line, or every line but one, is marked."""
    lines = [line for line in text.splitlines() if line.strip()]
    items: list[str] = []
    for line in lines:
        marked = _MARKED_ITEM.fullmatch(line)
        if marked or _NUMBERED_ITEM.fullmatch(line):
            items.append((marked.group(1) if marked else line).strip())
    return items if len(items) >= len(lines) - 1 else []


def _fit_text(value: Any) -> Any:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return " ".join(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return value


def _fit_number(value: Any, maximum: float | None) -> Any:
    if isinstance(value, bool):
        return str(value)  # pydantic would read true as 1
    number = read_number(value, maximum) if isinstance(value, str) else None
    return value if number is None else number


def _fit_choice(value: Any, choices: Sequence[Any]) -> Any:
    if not isinstance(value, str):
        return value
    same = [choice for choice in choices if fold(str(choice)) == fold(value)]
    return same[0] if len(same) == 1 else value


def _fit_list(value: Any, item: Mapping[str, Any], schema: Mapping[str, Any]) -> Any:
    if value is None or (isinstance(value, str) and fold(value) in _NOTHING):
        return []
    if isinstance(value, str):
        value = _items_in(value)
    elif isinstance(value, dict):
        value = [value]
    if not isinstance(value, list):
        return value
    return [_fit_item(part, item, schema) for part in value if not is_placeholder(part)]


def _fit_item(value: Any, node: Mapping[str, Any], schema: Mapping[str, Any]) -> Any:
    if node.get("type") == "string" and isinstance(value, dict):
        texts = [part for part in value.values() if isinstance(part, str)]
        return texts[0] if len(texts) == 1 else value
    return fit_value(value, node, schema)


def _items_in(text: str) -> list[Any]:
    """The items of a list that was written as one text."""
    if text.lstrip().startswith("["):
        try:
            inner = parse(text.strip())
        except NotJson:
            inner = None
        if isinstance(inner, list):
            return inner
    return listed_items(text) or [text.strip()]


def _fit_object(value: Any, fields: Mapping[str, Any], schema: Mapping[str, Any]) -> Any:
    if isinstance(value, str):
        value = _numbered_item(value, fields, schema)
    if not isinstance(value, dict):
        return value
    names = {fold(name): name for name in fields}
    members: dict[str, Any] = {}
    for key, part in value.items():
        name = names.get(fold(str(key)))
        members[name or str(key)] = fit_value(part, fields[name], schema) if name else part
    return members


def _numbered_item(text: str, fields: Mapping[str, Any], schema: Mapping[str, Any]) -> Any:
    """``Segment 3: a dog`` or ``3 | a dog`` as an object with one number and one text."""
    kinds = {str(follow(schema, node).get("type")): name for name, node in fields.items()}
    match = _NUMBERED_ITEM.fullmatch(text)
    if match is None or kinds.keys() != {"integer", "string"} or len(fields) != 2:
        return text
    number = int(match.group(1) or match.group(2))
    return {kinds["integer"]: number, kinds["string"]: match.group(3)}


def _inner_value(value: dict[str, Any], keys: Sequence[str]) -> Any:
    """The value that an object such as ``{"type": "string", "value": "B"}`` holds."""
    held = [value[key] for key in keys if key in value]
    return held[0] if len(held) == 1 else value
