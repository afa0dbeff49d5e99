"""Whether a reply keeps to a schema, and schemas as strict servers want them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from longtake.models.replies.forms import follow

BOUNDS = frozenset(
    {"maxLength", "minLength", "pattern", "minimum", "maximum", "minItems", "maxItems"}
)
"""Keywords that some strict servers refuse; without them a schema still has its shape."""
_FIRST_KEY = re.compile(r'\{\s*"([^"\\]*)"\s*:')
_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
    "array": (list,),
    "object": (dict,),
}


def keeps(text: str, schema: Mapping[str, Any]) -> bool:
    """Whether a text is JSON of this shape; bounds on texts and numbers are not checked.

    A server that enforces a schema never sends anything else, so one reply that does not keep to it
    shows that the schema is not enforced.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return _fits(value, schema, schema)


def is_object(text: str) -> bool:
    """Whether a text is one JSON object, as JSON mode promises."""
    return keeps(text, {"type": "object"})


def may_keep(text: str, schema: Mapping[str, Any]) -> bool:
    """Whether a text that was cut off may have been the beginning of JSON of this shape."""
    start = text.lstrip()
    if start and not start.startswith("{"):
        return False
    key = _FIRST_KEY.match(start)
    return key is None or key.group(1) in schema.get("properties", {key.group(1): None})


def strict(schema: Mapping[str, Any], *, bounds: bool = True) -> dict[str, Any]:
    """The schema with every field required and nothing that only people read.

    Strict servers refuse optional fields, and words beside a ``$ref``.
    """
    made: dict[str, Any] = _strict(schema, bounds)
    return made


def _strict(node: Any, bounds: bool) -> Any:
    if isinstance(node, list):
        return [_strict(each, bounds) for each in node]
    if not isinstance(node, Mapping):
        return node
    if "$ref" in node:
        return {"$ref": node["$ref"]}
    made: dict[str, Any] = {}
    for key, value in node.items():
        # names of fields and definitions are not keywords
        if key in ("properties", "$defs"):
            made[key] = {name: _strict(each, bounds) for name, each in value.items()}
        elif key not in ("default", "title") and (bounds or key not in BOUNDS):
            made[key] = _strict(value, bounds)
    if "properties" in made:
        made["required"] = list(made["properties"])
        made["additionalProperties"] = False
    return made


def _fits(value: Any, node: Mapping[str, Any], schema: Mapping[str, Any]) -> bool:
    node = follow(schema, node)
    if "anyOf" in node:
        return any(_fits(value, each, schema) for each in node["anyOf"])
    if "enum" in node:
        return value in node["enum"]
    if "const" in node:
        return bool(value == node["const"])
    kinds = _TYPES.get(str(node.get("type")), (object,))
    # True is an int to Python, and is no number
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        return kinds == (object,)
    if isinstance(value, list):
        return all(_fits(each, node.get("items", {}), schema) for each in value)
    if isinstance(value, dict):
        return _fields_fit(value, node, schema)
    return True


def _fields_fit(
    value: Mapping[str, Any], node: Mapping[str, Any], schema: Mapping[str, Any]
) -> bool:
    fields = node.get("properties", {})
    if any(name not in value for name in node.get("required", ())):
        return False
    if node.get("additionalProperties") is False and value.keys() - fields.keys():
        return False
    return all(_fits(each, fields[name], schema) for name, each in value.items() if name in fields)
