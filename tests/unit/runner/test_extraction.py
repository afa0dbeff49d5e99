"""Tables from films: every cell a value with its citation, or null."""

from __future__ import annotations

import json
from dataclasses import replace

import jsonschema
import pytest
from pydantic import BaseModel, Field, RootModel
from support.footages import TestFootage

from longtake.config import AnswerSettings, BudgetSettings, Settings
from longtake.errors import ConfigError
from longtake.llm import catalog
from longtake.llm.backends.scripted import ScriptedChat
from longtake.methods.lookup.method import Lookup
from longtake.runner.extraction import extract
from longtake.runner.session import Session
from longtake.runner.table_schema import read_schema
from longtake.types import Answer, Evidence, Line, Segment

SAID = [
    Line(Segment(0, 5), "The remote control is sold for twenty five euros."),
    Line(Segment(5, 10), "The case of the remote control is made of titanium."),
    Line(Segment(10, 15), "It has a yellow battery."),
]
PRODUCT = {
    "type": "object",
    "properties": {
        "price": {"type": "number", "description": "How much is the remote control sold for?"},
        "material": {"type": "string", "description": "What is the case made of?"},
        "designer": {"type": ["string", "null"], "description": "Who designed the volcano?"},
    },
}
ITEMS = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "part": {"type": "string", "description": "part of the remote control"},
            "price": {"type": "integer", "description": "price in euros"},
        },
    },
}


@pytest.fixture
def extracted(monkeypatch):
    """Extracts with a model that replies as a function of the prompt's text says."""

    def act(schema, reply, lines=SAID, *, small=False, verify=True, **budget):
        def script(messages, options):
            return reply(messages[-1].text)

        model = ScriptedChat(script)
        model.card = replace(model.card, small="told" if small else "")
        monkeypatch.setattr(catalog.ModelCatalog, "open", lambda self, name, **rest: model)
        monkeypatch.setattr(Session, "has_small_models", lambda self, *roles, **rest: small)
        answers = AnswerSettings(verify=verify)
        session = Session(Settings(budget=BudgetSettings(**budget), answers=answers))
        footage = TestFootage(60, lines=lines)
        table = extract(footage, read_schema(schema), session, "lookup")
        jsonschema.validate(table.data, read_schema(schema).output)
        return table

    return act


def told(text):
    if "sold for?" in text:
        return "It is sold for twenty five euros."
    return "titanium" if "made of?" in text else "Ada"


def test_every_value_has_its_citation_and_the_rest_is_null(extracted):
    table = extracted(PRODUCT, told)
    assert table.data == {"price": 25, "material": "titanium", "designer": None}
    price, material, designer = table.rows[0].values()
    assert price.evidence.segment == Segment(0, 5)
    assert material.evidence.text == SAID[1].text
    assert designer.evidence is None
    assert (table.cells, table.nulls) == (3, 1)


@pytest.mark.parametrize("reply", ["It is sold for 30 euros.", "", "25 or 30 euros"])
def test_a_number_that_no_moment_states_is_null(extracted, reply):
    table = extracted(PRODUCT, lambda text: reply)
    assert table.data["price"] is None


def test_a_value_that_the_schema_forbids_is_null(extracted):
    def product(name, **rules):
        given = json.loads(json.dumps(PRODUCT))
        given["properties"][name].update(rules)
        return extracted(given, told).data[name]

    assert product("price", maximum=20) is None
    assert product("price", minimum=20, maximum=25) == 25
    assert product("material", maxLength=3) is None
    assert product("material", pattern="^t") == "titanium"


def test_a_line_about_another_thing_supports_nothing(extracted):
    other = Line(Segment(15, 20), "The volcano museum is sold for ninety euros.")
    table = extracted(PRODUCT, lambda text: "ninety euros", lines=[*SAID, other])
    assert table.data["price"] is None


def test_a_count_is_the_number_of_moments(extracted):
    schema = {
        "type": "object",
        "properties": {
            "times": {"type": "integer", "description": "How often is titanium mentioned?"}
        },
    }
    lines = [*SAID, Line(Segment(20, 25), "Titanium is light.")]
    table = extracted(schema, told, lines=lines)
    assert table.data == {"times": 2}
    assert table.rows[0]["times"].evidence.text == SAID[1].text


def test_choices_and_yes_or_no_are_options(extracted):
    asked = []

    def reply(text):
        asked.append(text)
        return json.dumps({"choice": "B"})

    schema = {
        "type": "object",
        "properties": {
            "material": {"enum": ["plastic", "titanium"], "description": "What is the case?"},
            "yellow": {"type": "boolean", "description": "Is the battery not yellow?"},
        },
    }
    table = extracted(schema, reply)
    assert table.data["material"] == "titanium"
    assert table.rows[0]["material"].evidence.text == SAID[1].text
    assert any("A. yes" in text for text in asked)


def test_a_list_has_a_row_per_item_and_keeps_what_was_said(extracted):
    rows = [
        {"part": "remote control", "price": "25"},
        {"part": "case", "price": "25"},
        {"part": "yellow battery", "price": "9"},
        {"part": "remote control", "price": "25"},
    ]
    table = extracted(ITEMS, lambda text: json.dumps({"rows": rows}))
    # no line names the case with its price or nine euros, and a row is there once
    assert table.data == [{"part": "remote control", "price": 25}]
    assert all(cell.evidence.text == SAID[0].text for cell in table.rows[0].values())


@pytest.mark.parametrize("schema", [PRODUCT, ITEMS])
def test_a_small_model_is_refused_before_it_is_asked(extracted, schema):
    with pytest.raises(ConfigError, match="too small to fill a table: name a larger model"):
        extracted(schema, lambda text: pytest.fail("asked"), small=True)


def test_a_column_may_have_any_name(extracted):
    part, price = ITEMS["items"]["properties"].values()
    items = {"type": "object", "properties": {"_part": part, "copy": price}}
    rows = {"rows": [{"column_1": "remote control", "column_2": "25"}]}
    table = extracted({"type": "array", "items": items}, lambda text: json.dumps(rows))
    assert table.data == [{"_part": "remote control", "copy": 25}]


@pytest.mark.parametrize("schema", [PRODUCT, ITEMS])
def test_a_film_in_which_nothing_is_said_has_no_values(extracted, schema):
    table = extracted(schema, told, lines=[])
    assert table.cells == table.nulls
    assert table.data == [] or set(table.data.values()) == {None}


def test_cells_beyond_the_budget_are_null(extracted):
    table = extracted(PRODUCT, told, calls=1)
    assert table.data["price"] == 25
    assert table.nulls == 2
    assert extracted(ITEMS, told, tokens=1).data == []


class Talk(BaseModel):
    speaker: str | None = Field(description="Who speaks?")
    minutes: int


def test_a_class_of_pydantic_is_a_schema():
    one, many = read_schema(Talk), read_schema(RootModel[list[Talk]])
    assert (one.many, many.many) == (False, True)
    assert [column.name for column in many.columns] == ["speaker", "minutes"]
    assert one.columns[0].question.text == "Who speaks?"
    assert one.columns[1].question.text == "What is the minutes?"
    assert one.forbids_null == ["minutes"]
    assert one.output["properties"]["minutes"]["type"] == ["integer", "null"]


def column(schema):
    return {"type": "object", "properties": {"a": schema}}


def test_a_pattern_takes_no_exponential_time():
    (cell,) = read_schema(column({"type": "string", "pattern": "^(a+)+$"})).columns
    assert cell.value("a" * 60) == "a" * 60
    assert cell.value("a" * 60 + "!") is None


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ([], "must be an object of JSON Schema"),
        ({"type": "string"}, "an object with properties"),
        ({"type": "object", "properties": {}}, "an object with properties"),
        ({"type": "array", "items": {"type": "string"}}, "an object with properties"),
        ({"type": "array"}, "must be an object"),
        (column({"type": "array"}), "a is of type array"),
        (column({"type": ["string", "number"]}), "a is of type"),
        (column({}), "a is of type None"),
        (column({"type": "string", "format": "date"}), "format"),
        (column({"$ref": "#/$defs/b"}), "not in its \\$defs"),
        (column({"type": "string", "pattern": "("}), "a has pattern: .*unclosed group"),
        (column({"type": "string", "pattern": 3}), "a has pattern: .*valid string"),
        (column({"type": "string", "minLength": "x"}), "a has minLength: .*valid integer"),
        (column({"type": "string", "maxLength": -1}), "a has maxLength: .*greater than"),
        (column({"type": "number", "minimum": "0"}), "a has minimum: .*valid number"),
        (column({"type": "number", "maximum": float("nan")}), "a has maximum: .*finite"),
        (column({"enum": 5}), "a has enum: .*valid list"),
        (column({"enum": [{}]}), "a has enum: "),
        ({"$defs": [], **column({"$ref": "#/$defs/b"})}, "not in its \\$defs"),
    ],
)
def test_what_no_table_can_be_made_of_is_rejected(schema, why):
    with pytest.raises(ConfigError, match=why):
        read_schema(schema)


FRAME, CAPTION = (Evidence(Segment(0, 1), source) for source in ("frame", "caption"))


@pytest.mark.parametrize(
    ("about", "evidence", "cited"),
    [
        ("What does she close?", [CAPTION, FRAME], FRAME),
        ("What does she close?", [CAPTION], None),
        ("What does she close after lunch?", [FRAME], None),
        ("How many doors are closed?", [FRAME], None),
    ],
)
def test_a_picture_tells_what_one_moment_can(extracted, monkeypatch, about, evidence, cited):
    answer = Answer(text="3 doors", evidence=tuple(evidence))
    monkeypatch.setattr(Lookup, "answer", lambda *_: answer)
    schema = column({"type": "string", "description": about})
    (cell,) = extracted(schema, told, verify=False).rows[0].values()
    assert cell.evidence == cited
