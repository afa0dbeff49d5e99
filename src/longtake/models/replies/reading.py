"""Replies with a type: the schema that is asked for, and the reading of what comes back.

A reply type is a pydantic model. A field of type :data:`Letter` holds the option that a multiple-choice
question is answered with; for an open-ended question it is ``None`` and is not asked for.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Annotated, Any, TypeAlias, TypeVar

from pydantic import BaseModel, BeforeValidator, ValidationError, ValidationInfo, WithJsonSchema

from longtake.models.replies.letters import read_letter
from longtake.models.replies.loose_json import Found, NotJson, objects, parse
from longtake.types import Question

M = TypeVar("M", bound=BaseModel)

SHORTEST_TEXT = 60
"""Characters that :func:`closing` leaves a text at least."""
_MARK = "x-option-letter"


class Unreadable(ValueError):
    """A reply that does not hold what was asked for; its text says why, for the model to read."""


def _letter(value: Any, info: ValidationInfo) -> str | None:
    question = (info.context or {}).get("question")
    if question is None or not question.options:
        return None
    letter = read_letter(value, question) if isinstance(value, str) else None
    if letter is None:
        raise ValueError(f"must be exactly one letter of {', '.join(question.letters)}")
    return letter


Letter: TypeAlias = Annotated[
    str | None, BeforeValidator(_letter), WithJsonSchema({"type": "string", _MARK: True})
]
"""The letter of an option, ``None`` where the question has none. Give such a field the default ``None``."""


def schema_for(kind: type[BaseModel], question: Question | None = None) -> dict[str, Any]:
    """The JSON schema of a reply type, letters narrowed to those of the question."""
    schema = copy.deepcopy(_plain_schema(kind))
    letters = question.letters if question else ""
    for node in _objects(schema):
        properties: dict[str, Any] = node.get("properties", {})
        for name, value in list(properties.items()):
            if _MARK not in value:
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


def told(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema as a model reads it: references spelled out, and nothing that does not help to fill it in.

    A small model reads a few dozen tokens a second, and titles and closing clauses would be half of them.
    """
    known = schema.get("$defs", {})

    def plain(node: Any) -> Any:
        if isinstance(node, list):
            return [plain(item) for item in node]
        if not isinstance(node, Mapping):
            return node
        if "$ref" in node:
            return plain(known[node["$ref"].rpartition("/")[2]])
        if "properties" in node:
            fields = {name: plain(value) for name, value in node["properties"].items()}
            needed = list(node.get("required", []))
            return {"properties": fields} | (
                {} if len(needed) == len(fields) else {"required": needed}
            )
        return {
            key: plain(value)
            for key, value in node.items()
            if key not in ("title", "$defs", "default")
        }

    shown: dict[str, Any] = plain(schema)
    return shown


def closing(schema: Mapping[str, Any], max_tokens: int) -> dict[str, Any]:
    """A schema under which a reply ends within ``max_tokens``: texts share two characters a token.

    For a model that is held to the schema while it writes. Small ones come to repeat themselves inside a text and never
    reach the answer that was to follow it. English has four characters a token, so that this cuts at half the room.
    """
    bounded = copy.deepcopy(dict(schema))
    fields = [field for node in _objects(bounded) for field in node.get("properties", {}).values()]
    texts = [
        field
        for field in fields
        if field.get("type") == "string" and not field.keys() & {"enum", "maxLength"}
    ]
    for field in texts:
        field["maxLength"] = max(SHORTEST_TEXT, 2 * max_tokens // len(texts))
    return bounded


def read(text: str, kind: type[M], question: Question | None = None) -> M:
    """The reply in a text, or :class:`Unreadable` with the reason.

    Of several objects that fit, all must say the same: which of two answers was meant is not guessed.
    """
    if not text.strip():
        raise Unreadable("the reply was empty")
    fits: list[M] = []
    problems: list[str] = []
    try:
        candidates = list(_candidates(text, kind, question))
    except NotJson as error:
        raise Unreadable(f"the reply holds a JSON object that cannot be read: {error}") from error
    for found in candidates:
        try:
            value = _validate(found, kind, question)
        except ValidationError as error:
            problems.append(explain(error))
        except Unreadable as error:
            problems.append(str(error))
        else:
            if value not in fits:
                fits.append(value)
    if len(fits) == 1:
        return fits[0]
    if fits:
        raise Unreadable(f"the reply holds {len(fits)} different answers; give exactly one")
    raise Unreadable(problems[-1] if problems else "the reply holds no JSON object")


def explain(error: ValidationError) -> str:
    """What is wrong with a reply, one line a field."""
    lines = []
    for problem in error.errors(include_url=False, include_input=False)[:5]:
        where = ".".join(str(step) for step in problem["loc"]) or "reply"
        lines.append(f"{where}: {problem['msg'].removeprefix('Value error, ')}")
    return "\n".join(lines)


@lru_cache(maxsize=256)
def _plain_schema(kind: type[BaseModel]) -> dict[str, Any]:
    """The schema as pydantic makes it, which takes longer than all else here; not to be changed."""
    return kind.model_json_schema()


def _candidates(text: str, kind: type[BaseModel], question: Question | None) -> Iterator[Found]:
    """Values that may be the reply: the text itself, the objects in it, or a bare letter."""
    whole = text.strip()
    try:
        found = parse(whole)
    except NotJson:
        found = None
    if found is not None and isinstance(found.value, dict):
        yield found
        return
    # a fence is no sign of being meant: a reply that quotes a film can fence what the film shows
    inside = list(objects(whole))
    yield from inside
    if not inside and question is not None and question.options:
        field = _only_letter(kind)
        if field is not None:
            yield Found({field: whole})


def _only_letter(kind: type[BaseModel]) -> str | None:
    """The letter field of a type that needs nothing else."""
    properties = _plain_schema(kind).get("properties", {})
    letters = [name for name, value in properties.items() if _MARK in value]
    others = [
        name
        for name, field in kind.model_fields.items()
        if field.is_required() and name not in letters
    ]
    return letters[0] if len(letters) == 1 and not others else None


def _validate(found: Found, kind: type[M], question: Question | None) -> M:
    if found.cut is not None and not _free_text(kind, found.cut):
        raise Unreadable(f"the reply was cut off inside {'.'.join(map(str, found.cut))}")
    if (
        not found.value.keys() & kind.model_fields.keys()
    ):  # an echoed schema, or somebody else's object
        raise Unreadable(f"the object holds none of the fields {', '.join(kind.model_fields)}")
    schema = _plain_schema(kind)
    if path := _truth_for_number(schema, schema, found.value):
        raise Unreadable(f"{path}: must be a number")
    value = kind.model_validate(found.value, context={"question": question})
    if question is not None and question.options:
        for name, field in schema.get("properties", {}).items():
            if _MARK in field and getattr(value, name) is None:
                raise Unreadable(
                    f"{name}: must be exactly one letter of {', '.join(question.letters)}"
                )
    return value


def _free_text(kind: type[BaseModel], path: tuple[str | int, ...]) -> bool:
    """Whether the field at a path takes any text, so that one without its end is true as far as it goes."""
    schema = _plain_schema(kind)
    node: Mapping[str, Any] = schema
    for step in path:
        node = _follow(schema, node)
        inner = node.get("items") if isinstance(step, int) else node.get("properties", {}).get(step)
        if not isinstance(inner, Mapping):
            return False
        node = inner
    node = _follow(schema, node)
    return node.get("type") == "string" and node.keys() <= {"type", "title", "default"}


def _truth_for_number(schema: Mapping[str, Any], node: Any, value: Any, path: str = "") -> str:
    """Where a reply says true or false and a number is wanted; pydantic would read that as 1 or 0."""
    node = _follow(schema, node) if isinstance(node, Mapping) else {}
    if isinstance(value, bool):
        return path if node.get("type") in ("integer", "number") else ""
    inner: list[tuple[Any, Any, Any]] = []
    if isinstance(value, dict):
        inner = [(name, node.get("properties", {}).get(name), item) for name, item in value.items()]
    elif isinstance(value, list):
        inner = [(number, node.get("items"), item) for number, item in enumerate(value)]
    found = (
        _truth_for_number(schema, kind, item, f"{path}.{name}".strip("."))
        for name, kind, item in inner
    )
    return next(filter(None, found), "")


def _follow(schema: Mapping[str, Any], node: Mapping[str, Any]) -> Mapping[str, Any]:
    while "$ref" in node:
        node = schema["$defs"][str(node["$ref"]).rpartition("/")[2]]
    return node


def _objects(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The object schemas in a schema, its definitions included."""
    for node in [schema, *schema.get("$defs", {}).values()]:
        if node.get("type") == "object" and "properties" in node:
            yield node
