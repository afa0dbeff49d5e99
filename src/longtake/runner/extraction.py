"""Extracts a table from a film: every cell is a value with the moment that it rests on, or null.

::

    1  columns ← the properties of a JSON Schema: of one object, or of the objects in a list
    2  one object: each column is a question to the method, with its choices as options, checked as
       every answer is; the value is parsed from the answer and kept if a citation states it
    3  a list: a model reads the passages that are relevant to any column, part by part, and names
       the rows in each; a value is kept if a passage of its part holds it
    4  a value that no moment supports, or that the schema forbids, is null

One budget is for all cells of a film; those that it does not reach are null.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Annotated, Any, Literal, TypeAlias, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    FiniteFloat,
    NonNegativeInt,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    create_model,
)
from pydantic_core import SchemaError

from longtake._util.cancellation import Stop
from longtake.agents.run import Run
from longtake.algorithms import lexical
from longtake.algorithms.passages import SURE
from longtake.algorithms.speakers import speaker
from longtake.errors import BudgetSpent, ConfigError
from longtake.footage.protocol import Footage
from longtake.llm.budget import Ledger
from longtake.llm.structured.ask import ask
from longtake.retrieval.evidence import Value as Number
from longtake.retrieval.evidence import contradicts, held, is_instruction, numbers
from longtake.retrieval.passages import Passage, in_parts, numbered, read, sentences
from longtake.retrieval.question_kinds import COUNTING, NESTED, WHOLE, asks_for, asks_for_words
from longtake.retrieval.ranking import choose, relevance_of
from longtake.runner.session import Session, solve
from longtake.tracing.events import note, step
from longtake.types import Answer, Evidence, Question, Result, Usage

Value: TypeAlias = str | float | int | bool | None
Kind: TypeAlias = Literal["string", "number", "integer", "boolean"]
WORDS_ABOUT = ("title", "description", "default", "examples", "$comment", "deprecated")
"""Keywords that restrict nothing."""
PART_WORDS = 250
"""Words of passages in which a model looks for rows at once: a small one loses rows in more."""
MAX_PASSAGES, MAX_FOUND = 2000, 24
"""Passages whose meaning is compared with a column (as in lookup), and those that are read."""
ABOUT = 0.5
"""Share of the question's words, weighted by rarity, that a cited line of speech holds."""
MONEY = frozenset({"euro", "dollar", "pound", "franc"})
"""Base forms of words before which two numbers in a row are a price."""
SCALES = {"thousand": 1e3, "million": 1e6, "billion": 1e9}
# "how many million", "in thousands"
_SCALE = re.compile(rf"\b(?:how many|in) ({'|'.join(SCALES)})s?\b", re.IGNORECASE)
# one moment does not show what comes first
_SEVERAL = re.compile(r"\b(?:before|after|first|last|earlier|later)\b", re.IGNORECASE)
_NAME = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


class Rules(BaseModel):
    """The keywords of JSON Schema that restrict a value, of those that are read."""

    model_config = ConfigDict(extra="forbid", strict=True)

    enum: list[str | bool | int | FiniteFloat | None] | None = Field(None, min_length=1)
    minimum: FiniteFloat = -sys.float_info.max
    maximum: FiniteFloat = sys.float_info.max
    min_length: NonNegativeInt = Field(0, alias="minLength")
    max_length: NonNegativeInt = Field(sys.maxsize, alias="maxLength")
    pattern: str = ""

    @cached_property
    def matching(self) -> TypeAdapter[str]:
        """A text that the pattern allows; pydantic's own search takes no exponential time."""
        return TypeAdapter(Annotated[str, StringConstraints(pattern=self.pattern)])


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
    def needs_no_model(self) -> bool:
        """Whether it asks for occurrences of given words, which are counted."""
        return bool(asks_for_words(self.question))

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
            scale = _SCALE.search(self.about)
            unit = SCALES[scale[1].lower()] if scale else 1
            value = _number(text, unit, whole=self.kind == "integer")
        return value if value is not None and self._allows(value) else None

    def _allows(self, value: Value) -> bool:
        rules = self.rules
        if isinstance(value, str):
            if not rules.min_length <= len(value) <= rules.max_length:
                return False
            try:
                rules.matching.validate_python(value)
            except ValidationError:
                return False
            return True
        if isinstance(value, bool) or value is None:
            return True
        return rules.minimum <= value <= rules.maximum

    @property
    def schema(self) -> dict[str, Any]:
        """The schema of a cell: as given, and null."""
        enum = {"enum": [*self.choices, None]} if self.rules.enum is not None else {}
        given = self.rules.model_dump(exclude_unset=True, by_alias=True)
        return {"type": [self.kind, "null"], **given, **enum}


def _number(text: str, unit: float, *, whole: bool) -> float | int | None:
    """The number that a text states, in a unit; ``None`` if it states none or several."""
    stated = _stated(numbers(text))
    if not stated and text.lower().strip(" .") == "one":
        stated = {1.0}
    if len(stated) != 1:
        return None
    (value,) = stated
    value = value / unit if value >= unit else value
    if value.is_integer():
        return int(value)
    return None if whole else value


def _stated(values: Iterable[Number]) -> set[float]:
    """What numbers of a text mean; "twelve fifty euros" is 12.5, not 1250."""
    stated = set()
    for each in values:
        whole, cents = each.text[:2], each.text[2:]
        # "ten ten euros" is ten, said twice
        is_price = each.after in MONEY and {whole, cents} <= each.forms and whole != cents
        stated.add(float(each.text) / 100 if is_price and len(each.text) == 4 else float(each.text))
    return stated


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
        names = [column.name for column in self.columns]
        row = {
            "type": "object",
            "properties": {column.name: column.schema for column in self.columns},
            "required": names,
            "additionalProperties": False,
        }
        return {"type": "array", "items": row} if self.many else row


def read_schema(given: Any) -> TableSchema:
    """The table that a JSON Schema or a class of pydantic describes."""
    if isinstance(given, type) and issubclass(given, BaseModel):
        given = given.model_json_schema()
    if not isinstance(given, Mapping):
        raise ConfigError("the schema must be an object of JSON Schema")
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
    if isinstance(schema, Mapping) and "$ref" in schema:
        name = str(schema["$ref"]).removeprefix("#/$defs/")
        defined = root.get("$defs")
        target = defined.get(name) if isinstance(defined, Mapping) else None
        if not isinstance(target, Mapping) or "$ref" in target:
            raise ConfigError(f"the schema refers to {schema['$ref']}, which is not in its $defs")
        return {**target, **{key: each for key, each in schema.items() if key != "$ref"}}
    if not isinstance(schema, Mapping):
        raise ConfigError("every schema within the schema must be an object")
    return schema


def _split(schema: Any, root: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
    """The schema of a value, and whether it may be null as well."""
    schema = _resolved(schema, root)
    choices = schema.get("anyOf")
    if isinstance(choices, list):
        others = [each for each in choices if each != {"type": "null"}]
        if len(others) == 1:
            about = {key: each for key, each in schema.items() if key != "anyOf"}
            return {**_resolved(others[0], root), **about}, len(choices) > 1
    kinds = schema.get("type")
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
        rules.matching  # noqa: B018  # reports an invalid pattern before anything is read
    except ValidationError as error:
        key, why = error.errors()[0]["loc"][0], error.errors()[0]["msg"]
        understood = Rules.model_json_schema()["properties"]
        if key not in understood:
            why = f"of what restricts a value, {', '.join(understood)} are understood"
        raise ConfigError(f"the schema's property {name} has {key}: {why}", key=name) from None
    except SchemaError as error:
        why = str(error).splitlines()[-1]
        raise ConfigError(f"the schema's property {name} has pattern: {why}", key=name) from None
    in_words = " ".join(_NAME.findall(name)).lower() or name
    return Column(name, kind, str(plain.get("description") or in_words).strip(), rules, nullable)


@dataclass(frozen=True)
class Cell:
    """A value and what supports it; both are ``None``, or neither."""

    value: Value = None
    evidence: Evidence | None = None


@dataclass(frozen=True)
class FilmTable:
    """What was extracted from one film."""

    film: str
    schema: TableSchema
    rows: tuple[Mapping[str, Cell], ...]
    usage: Usage
    models: Mapping[str, str]
    unfilled: tuple[str, ...] = ()
    """Columns that are null because the model is small."""

    @property
    def cells(self) -> int:
        """The number of cells."""
        return len(self.rows) * len(self.schema.columns)

    @property
    def nulls(self) -> int:
        """How many of them no moment supports."""
        return sum(cell.value is None for row in self.rows for cell in row.values())

    @property
    def data(self) -> Any:
        """The values alone: valid against :attr:`TableSchema.output`."""
        rows = [{name: cell.value for name, cell in row.items()} for row in self.rows]
        return rows if self.schema.many else rows[0]

    @property
    def result(self) -> Result:
        """The table as a run's result: JSON, with every citation."""
        cited = [cell.evidence for row in self.rows for cell in row.values() if cell.evidence]
        answer = Answer(text=json.dumps(self.plain, ensure_ascii=False), evidence=tuple(cited))
        return Result(answer, self.usage, "extract", self.models)

    @property
    def plain(self) -> dict[str, Any]:
        """Values and citations as JSON."""
        citations = []
        for row in self.rows:
            cited = {name: cell.evidence and asdict(cell.evidence) for name, cell in row.items()}
            citations.append(cited)
        return {
            "film": self.film,
            "data": self.data,
            "citations": citations if self.schema.many else citations[0],
            "cells": self.cells,
            "nulls": self.nulls,
        }


def extract(
    footage: Footage,
    schema: TableSchema,
    session: Session,
    method: str | None = None,
    *,
    stop: Stop | None = None,
) -> FilmTable:
    """The table that a schema asks for, from a film; events go to the active stream."""
    if schema.many:
        run = session.reader(folder=footage.replies_folder, stop=stop)
        if run["llm"].card.small:
            # it names speakers as materials, and whole lines as reasons
            raise ConfigError(
                f"{run.names['llm']} is too small to fill a table: name a larger model"
            )
        rows = _rows(footage, schema.columns, run)
        return FilmTable(footage.name, schema, tuple(rows), run.usage, run.names)
    opened = session.method(method or session.assignment.default_method, discover=True)
    # one budget for all cells
    ledger = Ledger(session.settings.budget)
    run = session.run(opened, footage, ledger=ledger, stop=stop)
    small = session.has_small_models(opened.roles)
    filled = [column for column in schema.columns if not small or column.needs_no_model]
    row = dict.fromkeys((column.name for column in schema.columns), Cell())
    unfilled = tuple(column.name for column in schema.columns if column not in filled)
    if not filled:
        names = ", ".join(run.names.values())
        raise ConfigError(f"{names} is too small to fill a table: name a larger model")
    for column in filled:  # 2
        check = session.settings.answers.verify
        answer = solve(opened, footage, column.question, run, check=check).answer
        given = answer.evidence if answer.status == "answered" else ()
        supporting = _supporting(column, answer.text, given)
        row[column.name] = _supported(column, answer.text, supporting)
    return FilmTable(footage.name, schema, (row,), run.usage, run.names, unfilled)


def _supporting(column: Column, text: str, evidence: Sequence[Evidence]) -> list[Evidence]:
    """The citations that support the value, without those about something else.

    Of a long turn or screen, only the sentences that state the value count. Captions do not count,
    since another model wrote them. Pictures do not count if the question counts or relates moments.
    """
    question = column.question
    if asks_for_words(question):
        return list(evidence)  # every occurrence was found by its words
    related = any(each.search(question.text) for each in (_SEVERAL, NESTED, WHOLE, COUNTING))
    asked = lexical.lemmas([question.text])
    value = _stated(numbers(text))
    about = []
    for each in evidence:
        if each.source in ("frame", "caption"):
            if each.source == "frame" and not related:
                about.append(each)
            continue
        parts = [part for part in _said(each) if value & _stated(numbers(part))]
        if held("", asked, " ".join(parts) or each.text) >= ABOUT:
            about.append(each)
    return about


def _said(cited: Evidence | Passage) -> list[str]:
    """The sentences of a line or screen, without who speaks."""
    return sentences(speaker(cited.text)[1] if cited.source == "speech" else cited.text)


def _supported(column: Column, text: str, evidence: Sequence[Evidence]) -> Cell:
    """The value that an answer holds, with the first of its citations that states it."""
    counts = asks_for(column.question) == "count"
    if counts and not any(_states(text, each) for each in evidence):
        # a count that no line states is the number of moments, not a number from the model
        moments = str(len(evidence))
        text = moments if moments in {each.text for each in numbers(text)} else ""
    elif column.kind in ("number", "integer"):
        # a line must state the number; pictures have no words
        evidence = [each for each in evidence if not each.text or _states(text, each)]
    elif not column.question.options and len(sentences(text)) > 1:
        # a cell has room for the sentence that says most about the question
        asked = lexical.lemmas([column.question.text])
        text = max(sentences(text), key=lambda sentence: held("", asked, sentence))
    value = column.value(text)
    return Cell() if value is None or not evidence else Cell(value, evidence[0])


def _states(text: str, evidence: Evidence) -> bool:
    """Whether a cited line states a number of an answer."""
    return bool(_stated(numbers(text)) & _stated(numbers(evidence.text)))


def _rows(footage: Footage, columns: Sequence[Column], run: Run) -> list[dict[str, Cell]]:
    """The rows that a model finds in what is said and shown, as far as the budget goes."""
    rows: dict[tuple[Value, ...], dict[str, Cell]] = {}
    try:
        for part in run.on_time(lambda: _parts(footage, columns)):
            named = run.on_time(lambda part=part: _named(columns, part, run))  # type: ignore[misc]
            for values in named:
                row = _held(columns, values, part)
                key = tuple(cell.value for cell in row.values())
                # the same row is often named twice, and a single value makes no row of several
                if sum(value is not None for value in key) >= min(2, len(columns)):
                    rows.setdefault(key, row)
    except BudgetSpent as spent:
        note("budget_spent", why=str(spent))
    return list(rows.values())


def _parts(footage: Footage, columns: Sequence[Column]) -> list[list[Passage]]:
    """The passages that bear on any column, in parts that a model reads at once."""
    with step("search"):
        passages = [each for each in read(footage, None) if not is_instruction(each.text)]
        found: set[int] = set()
        for column in columns if passages else ():
            scores = relevance_of(footage, [column.about], passages, MAX_PASSAGES)
            found |= set(choose(scores, passages, MAX_FOUND, 1))
    in_order = sorted(found, key=lambda number: passages[number].segment)
    return in_parts([passages[number] for number in in_order], PART_WORDS)


def _named(columns: Sequence[Column], part: Sequence[Passage], run: Run) -> list[dict[str, str]]:
    """The values that a model names, row by row."""
    names = [column.name for column in columns]
    if any(_is_reserved(name) for name in names):
        names = [f"column_{number}" for number in range(1, len(columns) + 1)]
    fields: Any = {
        name: (str, Field("", description=column.about + _choices(column)))
        for name, column in zip(names, columns, strict=True)
    }
    row = create_model("Row", **fields)
    table: Any = create_model("Rows", rows=(list[row], Field(description="one per item")))  # type: ignore[valid-type]
    with step("read"):
        reply = ask(
            run["llm"], "shared/rows", table, default=None, max_tokens=400, passages=numbered(part)
        )
    rows = [] if reply is None else [each.model_dump().values() for each in reply.rows]
    return [dict(zip((column.name for column in columns), row, strict=True)) for row in rows]


def _is_reserved(name: str) -> bool:
    """Whether a class of pydantic can have no field of this name."""
    return not name.isidentifier() or name.startswith(("_", "model_")) or hasattr(BaseModel, name)


def _choices(column: Column) -> str:
    return f" ({', '.join(map(str, column.question.options))})" if column.question.options else ""


def _held(
    columns: Sequence[Column], values: Mapping[str, str], part: Sequence[Passage]
) -> dict[str, Cell]:
    """The values that are held by the passage that holds most of the row."""
    of_row = lexical.lemmas(values.values())

    def share(passage: Passage) -> float:
        return held("", of_row, passage.text)

    # what is said elsewhere is another item's
    best = max(part, key=share)
    row = {}
    for column in columns:
        text = values[column.name]
        is_held = held(text, lexical.lemmas([text]), best.text) >= SURE
        # "no" is said in many lines, none of which is about the column
        may_hold = column.kind != "boolean" and (column.kind != "string" or is_held)
        evidence = []
        if may_hold and contradicts(text, best.text, column.about) is None:
            evidence = [Evidence(best.segment, best.source, best.text)]
        row[column.name] = _supported(column, text, evidence)
    return row
