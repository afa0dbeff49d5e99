"""The columns of a table, as a JSON Schema or a class of pydantic describes them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, TypeAlias, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    FiniteFloat,
    NonNegativeInt,
    TypeAdapter,
    ValidationError,
)
from pydantic_core import SchemaError

from longtake.errors import ConfigError
from longtake.retrieval.evidence import numbers
from longtake.retrieval.question_kinds import asks_for
from longtake.types import Question

Value: TypeAlias = str | float | int | bool | None
Kind: TypeAlias = Literal["string", "number", "integer", "boolean"]
TYPES: Mapping[str, Any] = {"string": str, "number": float, "integer": int, "boolean": bool}
WORDS_ABOUT = ("title", "description", "default", "examples", "$comment", "deprecated")
"""Keywords that restrict nothing."""


class Rules(BaseModel):
    """The keywords of JSON Schema that restrict a value, of those that are read."""

    model_config = ConfigDict(extra="forbid", strict=True)

    enum: list[str | bool | int | FiniteFloat | None] | None = Field(None, min_length=1)
    minimum: FiniteFloat | None = None
    maximum: FiniteFloat | None = None
    min_length: NonNegativeInt | None = Field(None, alias="minLength")
    max_length: NonNegativeInt | None = Field(None, alias="maxLength")
    pattern: str | None = None

    def type(self, kind: Kind) -> TypeAdapter[Any]:
        """Accepts the values of a kind that are allowed."""
        if self.enum is not None or kind == "boolean":
            return TypeAdapter(Any)
        if kind == "string":
            # pydantic's own search takes no exponential time
            limits = Field(
                min_length=self.min_length, max_length=self.max_length, pattern=self.pattern
            )
        else:
            limits = Field(ge=self.minimum, le=self.maximum)
        limited: Any = Annotated[TYPES[kind], limits]
        return TypeAdapter(limited)


@dataclass(frozen=True)
class Column:
    """A property of a schema."""

    name: str
    kind: Kind
    about: str
    """What to look for: its description, or its name in words."""
    rules: Rules
    nullable: bool
    """Whether the schema has null, which every cell may be."""

    @property
    def choices(self) -> list[str | bool | int | float]:
        """The values that are allowed, where they are listed."""
        return [each for each in self.rules.enum or () if each is not None]

    @property
    def question(self) -> Question:
        """The question whose answer is the value."""
        # a description may be a question already
        text = self.about if self.about.endswith("?") else f"What is the {self.about}?"
        choices = self.choices or (("yes", "no") if self.kind == "boolean" else ())
        question = Question(text, tuple(map(str, choices)) if len(choices) > 1 else ())
        # a cell has no room for an account
        return question if asks_for(question) == "count" else replace(question, kind="fact")

    def value(self, text: str) -> Value:
        """What a text holds of this column's type; ``None`` if nothing, or nothing allowed."""
        text = text.strip()
        value: Value = text or None
        if self.rules.enum is not None:
            chosen = [each for each in self.choices if str(each).lower() == text.lower()]
            value = chosen[0] if chosen else None
        elif self.kind == "boolean":
            value = {"yes": True, "true": True, "no": False, "false": False}.get(text.lower())
        elif self.kind != "string":
            stated = numbers_in(text)
            value = stated.pop() if len(stated) == 1 else None
        if value is None:
            return None
        try:
            value = self.rules.type(self.kind).validate_python(value)
        except ValidationError:
            return None
        # 25 rather than 25.0
        return int(value) if isinstance(value, float) and value.is_integer() else value

    @property
    def schema(self) -> dict[str, Any]:
        """The schema of a cell: as given, and null."""
        enum = {"enum": [*self.choices, None]} if self.rules.enum is not None else {}
        given = self.rules.model_dump(exclude_unset=True, by_alias=True)
        return {"type": [self.kind, "null"], **given, **enum}


def numbers_in(text: str) -> set[float]:
    """The numbers that a text states, in digits or words."""
    return {float(each.text) for each in numbers(text)}


@dataclass(frozen=True)
class TableSchema:
    """The columns of a table, and whether it has several rows."""

    columns: tuple[Column, ...]
    many: bool

    @property
    def forbids_null(self) -> list[str]:
        """The columns whose schema has no null."""
        return [column.name for column in self.columns if not column.nullable]

    @property
    def output(self) -> dict[str, Any]:
        """The schema of what is extracted: the given one, in which every cell may be null."""
        row = {
            "type": "object",
            "properties": {column.name: column.schema for column in self.columns},
            "required": [column.name for column in self.columns],
            "additionalProperties": False,
        }
        return {"type": "array", "items": row} if self.many else row


def read_schema(given: Any) -> TableSchema:
    """The table that a JSON Schema or a class of pydantic describes."""
    if isinstance(given, type) and issubclass(given, BaseModel):
        given = given.model_json_schema()
    row, many = _resolved(given, given), False
    if row.get("type") == "array":
        row, many = _resolved(row.get("items"), given), True
    properties = row.get("properties")
    if row.get("type") != "object" or not isinstance(properties, Mapping) or not properties:
        raise ConfigError(
            "the schema must describe an object with properties, or a list of such objects:"
            ' {"type": "object", "properties": {"price": {"type": "number"}}}'
        )
    columns = [_column(name, each, given) for name, each in properties.items()]
    return TableSchema(tuple(columns), many)


def _resolved(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema with its reference into ``$defs`` followed."""
    if not isinstance(schema, Mapping):
        raise ConfigError("every schema must be an object of JSON Schema")
    if "$ref" not in schema:
        return schema
    defined = root.get("$defs")
    name = str(schema["$ref"]).removeprefix("#/$defs/")
    target = defined.get(name) if isinstance(defined, Mapping) else None
    if not isinstance(target, Mapping) or "$ref" in target:
        raise ConfigError(f"the schema refers to {schema['$ref']}, which is not in its $defs")
    return {**target, **{key: each for key, each in schema.items() if key != "$ref"}}


def _split(schema: Any, root: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
    """The schema of a value, and whether it may be null as well."""
    schema = _resolved(schema, root)
    choices, kinds = schema.get("anyOf"), schema.get("type")
    if isinstance(choices, list):
        others = [each for each in choices if each != {"type": "null"}]
        if len(others) == 1:
            about = {key: each for key, each in schema.items() if key != "anyOf"}
            return {**_resolved(others[0], root), **about}, len(choices) > 1
    if isinstance(kinds, list):
        left = [each for each in kinds if each != "null"]
        return {**schema, "type": left[0] if len(left) == 1 else left}, "null" in kinds
    return schema, False


def _column(name: str, schema: Any, root: Mapping[str, Any]) -> Column:
    plain, nullable = _split(schema, root)
    kind = plain.get("type", "string" if "enum" in plain else None)
    if kind not in get_args(Kind):
        raise ConfigError(
            f"the schema's property {name} is of type {kind}; a cell is one of"
            f" {', '.join(get_args(Kind))}, or null",
            key=name,
        )
    given = {key: each for key, each in plain.items() if key not in ("type", *WORDS_ABOUT)}
    try:
        rules = Rules.model_validate(given)
        rules.type(kind)  # reports an invalid pattern before anything is read
    except ValidationError as error:
        key, why = error.errors()[0]["loc"][0], error.errors()[0]["msg"]
        raise ConfigError(f"the schema's property {name} has {key}: {why}", key=name) from None
    except SchemaError as error:
        why = str(error).splitlines()[-1]
        raise ConfigError(f"the schema's property {name} has pattern: {why}", key=name) from None
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", name)
    about = str(plain.get("description") or " ".join(words).lower() or name)
    return Column(name, kind, about.strip(), rules, nullable)
