"""Extracts a table from a film: every cell is a value with the moment that it rests on, or null.

::

    1  columns ← the properties of a JSON Schema: of one object, or of the objects in a list
    2  one object: each column is a question to the method, with its choices as options, checked as
       every answer is; the value is parsed from the answer and kept if a citation supports it
    3  a list: a model reads the passages that are relevant to any column, part by part, and names
       the rows in each; a value is kept if a passage of its part holds it
    4  a value that no moment supports, or that the schema forbids, is null

One budget is for all cells of a film; those that it does not reach are null. Small models are
refused: they name speakers as materials, and whole lines as reasons.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pydantic import BaseModel, Field, create_model

from longtake import registry
from longtake._util.cancellation import Stop
from longtake.agents.run import Run
from longtake.algorithms import lexical
from longtake.algorithms.passages import SURE
from longtake.errors import BudgetSpent, ConfigError
from longtake.footage.protocol import Footage
from longtake.llm.budget import Ledger
from longtake.llm.structured.ask import ask
from longtake.retrieval.evidence import contradicts, held, is_instruction
from longtake.retrieval.passages import Passage, in_parts, numbered, read
from longtake.retrieval.question_kinds import COUNTING, NESTED, WHOLE, asks_for, asks_for_words
from longtake.retrieval.ranking import choose, relevance_of
from longtake.runner.session import Session, solve
from longtake.runner.table_schema import Column, TableSchema, Value, numbers_in
from longtake.tracing.events import note, step
from longtake.types import Answer, Evidence, Result, Usage

PART_WORDS = 250
"""Words of passages in which a model looks for rows at once: a small one loses rows in more."""
MAX_PASSAGES, MAX_FOUND = 2000, 24
"""Passages whose meaning is compared with a column (as in lookup), and those that are read."""
ABOUT = 0.5
"""Share of the question's words, weighted by rarity, that a cited line of speech holds."""
# one moment does not show what comes first
_SEVERAL = re.compile(r"\b(?:before|after|first|last|earlier|later)\b", re.IGNORECASE)


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


def check_large(session: Session, schema: TableSchema, method: str) -> None:
    """Raise if the models are too small to fill a table."""
    roles = ("llm",) if schema.many else registry.methods.get(method).roles
    if session.has_small_models(roles, discover=True):
        names = ", ".join(dict.fromkeys(session.assignment.names(roles).values()))
        raise ConfigError(f"{names} is too small to fill a table: name a larger model")


def extract(
    footage: Footage,
    schema: TableSchema,
    session: Session,
    method: str | None = None,
    *,
    stop: Stop | None = None,
) -> FilmTable:
    """The table that a schema asks for, from a film; events go to the active stream."""
    method = method or session.assignment.default_method
    check_large(session, schema, method)
    if schema.many:
        run = session.reader(folder=footage.replies_folder, stop=stop)
        rows = _rows(footage, schema.columns, run)
        return FilmTable(footage.name, schema, tuple(rows), run.usage, run.names)
    opened = session.method(method, discover=True)
    # one budget for all cells
    run = session.run(opened, footage, ledger=Ledger(session.settings.budget), stop=stop)
    row = {}
    for column in schema.columns:  # 2
        check = session.settings.answers.verify
        answer = solve(opened, footage, column.question, run, check=check).answer
        row[column.name] = _supported(column, answer) if answer.status == "answered" else Cell()
    return FilmTable(footage.name, schema, (row,), run.usage, run.names)


def _supported(column: Column, answer: Answer) -> Cell:
    """The value that an answer holds, with the first of its citations that supports it."""
    question = column.question
    if asks_for_words(question) and asks_for(question) == "count":
        # every occurrence was found and cited
        return _cell(column, str(len(answer.evidence)), answer.evidence)
    return _cell(column, answer.text, [each for each in answer.evidence if _tells(column, each)])


def _tells(column: Column, cited: Evidence) -> bool:
    """Whether a citation can tell what a column asks for.

    Captions cannot, since another model wrote them, nor can a picture if the question counts or
    relates moments. What is said or written must be about the question.
    """
    asked = column.question.text
    if cited.source == "caption":
        return False
    if cited.source == "frame":
        return not any(each.search(asked) for each in (_SEVERAL, NESTED, WHOLE, COUNTING))
    return held("", lexical.lemmas([asked]), cited.text) >= ABOUT


def _cell(column: Column, text: str, evidence: Sequence[Evidence]) -> Cell:
    """The value of a text with the first citation; a number must be stated if there are words."""
    value = column.value(text)
    if column.kind in ("number", "integer") and not asks_for_words(column.question):
        stated = numbers_in(text)
        evidence = [each for each in evidence if not each.text or stated & numbers_in(each.text)]
    return Cell() if value is None or not evidence else Cell(value, evidence[0])


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
    """The passages that are relevant to any column, in parts that a model reads at once."""
    with step("search"):
        passages = [each for each in read(footage, None) if not is_instruction(each.text)]
        found: set[int] = set()
        for column in columns if passages else ():
            scores = relevance_of(footage, [column.about], passages, MAX_PASSAGES)
            found |= set(choose(scores, passages, MAX_FOUND, 1))
    in_order = sorted(found, key=lambda number: passages[number].segment)
    return in_parts([passages[number] for number in in_order], PART_WORDS)


def _named(columns: Sequence[Column], part: Sequence[Passage], run: Run) -> list[list[str]]:
    """The values that a model names, row by row, in the order of the columns."""
    names = [column.name for column in columns]
    if not all(map(_may_be_field, names)):
        names = [f"column_{number}" for number in range(1, len(columns) + 1)]
    fields: dict[str, Any] = {}
    for name, column in zip(names, columns, strict=True):
        choices = f" ({', '.join(column.question.options)})" if column.question.options else ""
        fields[name] = (str, Field("", description=column.about + choices))
    row = create_model("Row", **fields)
    table: Any = create_model("Rows", rows=(list[row], Field(description="one per item")))  # type: ignore[valid-type]
    with step("read"):
        reply = ask(
            run["llm"], "shared/rows", table, default=None, max_tokens=400, passages=numbered(part)
        )
    return [] if reply is None else [list(each.model_dump().values()) for each in reply.rows]


def _may_be_field(name: str) -> bool:
    """Whether a class of pydantic can have a field of this name."""
    reserved = name.startswith(("_", "model_")) or hasattr(BaseModel, name)
    return name.isidentifier() and not reserved


def _held(
    columns: Sequence[Column], values: Sequence[str], part: Sequence[Passage]
) -> dict[str, Cell]:
    """The values that are held by the passage that holds most of the row."""
    of_row = lexical.lemmas(values)
    # what is said elsewhere is another item's
    best = max(part, key=lambda passage: held("", of_row, passage.text))
    evidence = Evidence(best.segment, best.source, best.text)
    row = {}
    for column, text in zip(columns, values, strict=True):
        is_held = held(text, lexical.lemmas([text]), best.text) >= SURE
        # "no" is said in many lines, none of which is about the column
        may_hold = column.kind != "boolean" and (column.kind != "string" or is_held)
        fits = may_hold and contradicts(text, best.text, column.about) is None
        row[column.name] = _cell(column, text, [evidence] if fits else [])
    return row
