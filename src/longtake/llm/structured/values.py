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

from longtake.llm.structured.json_text import NotJson, parse
from longtake.llm.structured.schema import follow

_NUMBER = re.compile(r"[-+]?\d{1,12}(?:\.\d{1,9})?")
_OUT_OF = re.compile(r"(\d{1,6})\s*(?:/|out of|of)\s*(\d{1,6})")
_NAMED = re.compile(
    r"(?:segment|score|grade|confidence|level|rating|number|#)\s*[:=#]?\s*(\d{1,9})", re.IGNORECASE
)
_RANGE = re.compile(r"(?:segments?\s*)?(\d{1,6})\s*(?:-|–|—|to|and|&|,)\s*\d{1,6}", re.IGNORECASE)
_EXPLAINED = re.compile(r"(\d{1,9})\s*[:.,;(=–—-]\s*\D{1,2000}")
_TRUTHS = {"yes": True, "true": True, "no": False, "false": False}
_NOTHING = ("", "none", "nothing", "null", "empty", "na")
_ITEM = re.compile(r"\s*(?:[-*•+]|\d{1,3}[.)])\s+(.*)")
_PLACEHOLDER = re.compile(r"[<\[(]?(?:text|string|\.\.\.|…)[>\])]?(?:, at most \d+ words)?")


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
        # {"type": "string", "value": "B"}, or a value in an object of its own
        held = value.get("value", next(iter(value.values())) if len(value) == 1 else value)
        value = held if isinstance(held, str | int | float) else value
    if "enum" in node:
        # case and punctuation apart; two that fold alike are left for the type to refuse
        same = [choice for choice in node["enum"] if fold(str(choice)) == fold(str(value))]
        return same[0] if len(same) == 1 else value
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
    match = _NAMED.fullmatch(bare) or last.fullmatch(bare)
    return int(match.group(1)) if match else None


def listed_items(text: str) -> list[str]:
    """The items of a bulleted or numbered list; none if more than its first line is no item."""
    lines = [line for line in text.splitlines() if line.strip()]
    items = [match.group(1).strip() for line in lines if (match := _ITEM.fullmatch(line))]
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


def _fit_list(value: Any, item: Mapping[str, Any], schema: Mapping[str, Any]) -> Any:
    if value is None or (isinstance(value, str) and fold(value) in _NOTHING):
        return []
    if isinstance(value, str):
        value = _items_in(value)
    parts: Sequence[Any] = value if isinstance(value, list) else [value]
    return [_fit_item(part, item, schema) for part in parts if not is_placeholder(part)]


def _fit_item(value: Any, node: Mapping[str, Any], schema: Mapping[str, Any]) -> Any:
    if node.get("type") == "string" and isinstance(value, dict):
        # models wrap each entry in an object: [{"caption": "a dog"}]
        texts = [part for part in value.values() if isinstance(part, str)]
        return texts[0] if len(texts) == 1 else value
    return fit_value(value, node, schema)


def _items_in(text: str) -> list[Any]:
    """The items of a list that was written as one text."""
    try:
        inner = parse(text)
    except NotJson:
        inner = None
    return inner if isinstance(inner, list) else listed_items(text) or [text.strip()]


def _fit_object(value: Any, fields: Mapping[str, Any], schema: Mapping[str, Any]) -> Any:
    if not isinstance(value, dict):
        return value
    # models change the case and the separators of keys
    names = {fold(name): name for name in fields}
    members: dict[str, Any] = {}
    for key, part in value.items():
        name = names.get(fold(str(key)))
        members[name or str(key)] = fit_value(part, fields[name], schema) if name else part
    return members
