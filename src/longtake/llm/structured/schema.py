"""Reply types: the schema that a reply is held to, and the same in words for the prompt.

A reply type is a pydantic model. A field of type :data:`Letter` holds the option that answers a
multiple-choice question; for an open-ended question it is ``None`` and is not asked for.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, BeforeValidator, Field, ValidationInfo, WithJsonSchema

from longtake.llm.structured.letters import read_letter
from longtake.types import Question

EXPLANATIONS = frozenset({"reason", "reasoning", "explanation", "rationale", "comment"})
"""Fields that say why. A reply without them still says what was asked for."""
_LETTER = "x-option-letter"
_NAMES = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "object": "an object",
    "null": "null",
}
_PLURALS = {
    "string": "texts",
    "integer": "whole numbers",
    "number": "numbers",
    "boolean": "true or false values",
    "object": "objects",
    "array": "lists",
}


def _letter(value: Any, info: ValidationInfo) -> str | None:
    question = (info.context or {}).get("question")
    # whatever a model writes there, an open-ended question has no letter
    if question is None or not question.options:
        return None
    letter = read_letter(value, question) if isinstance(value, str) else None
    if letter is None:
        raise ValueError(f"must be exactly one letter of {', '.join(question.letters)}")
    return letter


Letter: TypeAlias = Annotated[
    str | None, BeforeValidator(_letter), WithJsonSchema({"type": "string", _LETTER: True})
]
"""The letter of an option, ``None`` where the question has none. Its default must be ``None``."""

Brief: TypeAlias = Annotated[str, Field(description="at most 25 words")]
"""A text kept short, so that the fields after it arrive before the reply is cut off."""


def schema_for(kind: type[BaseModel], question: Question | None = None) -> dict[str, Any]:
    """The JSON schema of a reply type, letters narrowed to those of the question."""
    # the plain schema is cached and shared
    schema = copy.deepcopy(plain_schema(kind))
    letters = question.letters if question else ""
    for node in _objects(schema):
        properties: dict[str, Any] = node.get("properties", {})
        for name, value in list(properties.items()):
            if _LETTER not in value:
                continue
            required = [field for field in node.get("required", []) if field != name]
            if letters:
                kept = {key: item for key, item in value.items() if key == "description"}
                properties[name] = {"type": "string", "enum": list(letters), **kept}
                node["required"] = [field for field in properties if field in {*required, name}]
            else:
                del properties[name]
                node["required"] = required
        node["additionalProperties"] = False
    return schema


def in_words(schema: Mapping[str, Any]) -> str:
    """The fields of a schema in words, one per line.

    ::

        "reason": text, at most 25 words
        "choice": one of "A", "B", "C"

    Models that are shown a schema tend to repeat it; shown this, they fill it in.
    """
    fields = schema.get("properties", {})
    return "\n".join(f'"{name}": {_said(schema, node)}' for name, node in fields.items())


def bounded_schema(schema: Mapping[str, Any], max_tokens: int) -> dict[str, Any]:
    """A schema under which a reply ends within ``max_tokens``: texts share two characters a token.

    For a model that is held to the schema while it writes. Small ones come to repeat themselves
    inside a text and never reach the answer that was to follow it. English has four characters a
    token, so this cuts at half the room.
    """
    bounded = copy.deepcopy(dict(schema))
    fields = [field for node in _objects(bounded) for field in node.get("properties", {}).values()]
    texts = [
        field
        for field in fields
        if field.get("type") == "string" and not field.keys() & {"enum", "maxLength"}
    ]
    for field in texts:
        # a text keeps at least 60 characters, enough for a short reason
        field["maxLength"] = max(60, 2 * max_tokens // len(texts))
    return bounded


@lru_cache(maxsize=256)
def plain_schema(kind: type[BaseModel]) -> dict[str, Any]:
    """The schema as pydantic makes it. Cached, because that is slow; treat it as read-only."""
    return kind.model_json_schema()


def is_letter(node: Mapping[str, Any]) -> bool:
    """Whether a node of a plain schema is a :data:`Letter`."""
    return _LETTER in node


def letter_fields(kind: type[BaseModel]) -> list[str]:
    """The fields of a type that hold an option's letter."""
    properties = plain_schema(kind).get("properties", {})
    return [name for name, node in properties.items() if _LETTER in node]


def decisive_fields(kind: type[BaseModel], question: Question | None = None) -> list[str]:
    """The fields without which a reply says nothing: those required, explanations apart."""
    # without options a letter is not asked for
    letters = letter_fields(kind) if question is not None and question.options else []
    needed = [
        name
        for name, field in kind.model_fields.items()
        if name in letters or (field.is_required() and name not in letter_fields(kind))
    ]
    # a type that only explains is decided by its explanation
    return [name for name in needed if name not in EXPLANATIONS] or needed


def follow(schema: Mapping[str, Any], node: Mapping[str, Any]) -> Mapping[str, Any]:
    """A node of a schema, or what it refers to."""
    while "$ref" in node:
        node = schema["$defs"][str(node["$ref"]).rpartition("/")[2]]
    return node


def _said(schema: Mapping[str, Any], node: Mapping[str, Any]) -> str:
    """One field in words: its type, its bounds, its description."""
    described = node.get("description", "")
    node = follow(schema, node)
    kind = _kind_in_words(schema, node)
    # the docstring of a nested type describes the type, not this field
    if not described and "properties" not in node:
        described = node.get("description", "")
    if not described:
        return kind
    return f"{kind}, {described}" if described.startswith("at most") else f"{kind} ({described})"


def _kind_in_words(schema: Mapping[str, Any], node: Mapping[str, Any]) -> str:
    if "enum" in node:
        return "one of " + ", ".join(f'"{value}"' for value in node["enum"])
    if "const" in node:
        return f'"{node["const"]}"'
    if "anyOf" in node:
        return " or ".join(_kind_in_words(schema, follow(schema, part)) for part in node["anyOf"])
    if node.get("type") == "array":
        return _list_in_words(schema, node)
    if "properties" in node:
        return f"an object with {_members(schema, node)}"
    return _NAMES.get(str(node.get("type")), "text") + _bounds(node)


def _list_in_words(schema: Mapping[str, Any], node: Mapping[str, Any]) -> str:
    item = follow(schema, node.get("items", {}))
    minimum, maximum = node.get("minItems"), node.get("maxItems")
    number = ""
    if maximum is not None:
        number = f"{minimum} to {maximum} " if minimum else f"at most {maximum} "
    elif minimum:
        number = f"at least {minimum} "
    if "enum" in item:
        return f"a list of {number}values, each {_kind_in_words(schema, item)}"
    if "properties" in item:
        return f"a list of {number}objects, each with {_members(schema, item)}"
    if item.get("type") == "array":
        return f"a list of {number}lists{_list_in_words(schema, item).removeprefix('a list')}"
    return f"a list of {number}{_PLURALS.get(str(item.get('type')), 'texts')}{_bounds(item)}"


def _members(schema: Mapping[str, Any], node: Mapping[str, Any]) -> str:
    members = [f'"{name}": {_said(schema, inner)}' for name, inner in node["properties"].items()]
    return members[0] if len(members) == 1 else f"{', '.join(members[:-1])} and {members[-1]}"


def _bounds(node: Mapping[str, Any]) -> str:
    minimum, maximum = node.get("minimum"), node.get("maximum")
    if minimum is not None and maximum is not None:
        return f" from {minimum} to {maximum}"
    if minimum is not None:
        return f", at least {minimum}"
    return "" if maximum is None else f", at most {maximum}"


def _objects(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The object schemas in a schema, its definitions included."""
    nodes: Sequence[dict[str, Any]] = [schema, *schema.get("$defs", {}).values()]
    for node in nodes:
        if node.get("type") == "object" and "properties" in node:
            yield node


BOUNDS = frozenset(
    {"maxLength", "minLength", "pattern", "minimum", "maximum", "minItems", "maxItems"}
)
"""Keywords that strict servers of vendors refuse; without them a schema still has its shape."""


def strict_schema(schema: Mapping[str, Any], *, bounds: bool = True) -> dict[str, Any]:
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
