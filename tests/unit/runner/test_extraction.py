"""Tables from films: every cell a value with its citation, or null."""

from __future__ import annotations

import json
from dataclasses import replace

import jsonschema
import pytest
from pydantic import BaseModel, Field, RootModel
from support.footages import TestFootage

from longtake.config import BudgetSettings, Settings
from longtake.errors import ConfigError
from longtake.llm import catalog
from longtake.llm.backends.scripted import ScriptedChat
from longtake.runner.extraction import _supporting, extract, read_schema
from longtake.runner.session import Session
from longtake.types import Evidence, Line, Segment

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

    def act(schema, reply, lines=SAID, *, small=False, **budget):
        def script(messages, options):
            return reply(messages[-1].text)

        model = ScriptedChat(script)
        model.card = replace(model.card, small="told" if small else "")
        monkeypatch.setattr(catalog.ModelCatalog, "open", lambda self, name, **rest: model)
        monkeypatch.setattr(Session, "has_small_models", lambda self, *roles, **rest: small)
        session = Session(Settings(budget=BudgetSettings(**budget)))
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


def test_a_price_in_two_numbers_has_a_point_between_them(extracted):
    said = [Line(Segment(0, 5), "The remote control is sold for twelve fifty euros.")]
    assert extracted(PRODUCT, lambda text: "twelve fifty euros", said).data["price"] == 12.5


def test_a_number_is_in_the_unit_that_is_asked_for(extracted):
    aim = {"type": "number", "description": "How many million euros is the profit aim?"}
    said = [Line(Segment(0, 5), "The profit aim is fifty million euros.")]
    schema = {"type": "object", "properties": {"aim": aim}}
    assert extracted(schema, lambda text: "fifty million euros", said).data["aim"] == 50


def test_of_a_long_turn_the_sentence_with_the_number_counts(extracted):
    start = {"type": "integer", "description": "In how many minutes is the next meeting?"}
    turn = "We have five minutes left. The next meeting will be in thirty minutes."
    schema = {"type": "object", "properties": {"start": start}}
    said = [Line(Segment(0, 5), turn)]
    assert extracted(schema, lambda text: "five minutes", said).data["start"] is None
    assert extracted(schema, lambda text: "thirty minutes", said).data["start"] == 30


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


def test_a_cell_has_the_sentence_that_says_most(extracted):
    line = Line(Segment(0, 5), "We were late again. The case is made of titanium.")
    table = extracted(PRODUCT, lambda text: line.text, lines=[line])
    assert table.data["material"] == "The case is made of titanium."
    assert table.rows[0]["material"].evidence.text == line.text


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


def test_a_small_model_fills_no_list(extracted):
    with pytest.raises(ConfigError, match="a small model and does not fill lists"):
        extracted(ITEMS, lambda text: '{"rows": []}', small=True)


def test_a_small_model_fills_only_numbers(extracted):
    schema = {
        "type": "object",
        "properties": {
            "price": {"type": "number", "description": "What is the remote control sold for?"},
            "each": {"type": "number", "description": "What is each remote control sold for?"},
            "case": {"enum": ["wood", "plastic"], "description": "What is the case made of?"},
        },
    }
    said = [*SAID, Line(Segment(90, 95), "The case of the remote control is made of wood.")]

    def reply(text):
        return "A" if "A. wood" in text else "It is sold for 25 euros."

    numbers = {"price": 25, "each": 25}
    assert extracted(schema, reply, said).data == {**numbers, "case": "wood"}
    small = extracted(schema, reply, said, small=True)
    assert small.data == {"price": 25, "each": None, "case": None}  # a rate is more than a number
    del schema["properties"]["price"]
    with pytest.raises(ConfigError, match="is a small model and fills only numbers"):
        extracted(schema, reply, said, small=True)


def test_a_small_model_is_asked_only_what_is_said(extracted):
    asked = []

    def reply(text):
        asked.append(text)
        return "It is sold for 25 euros."

    columns = {
        "price": {"type": "number", "description": "What is the remote control sold for?"},
        "weight": {"type": "number", "description": "What does the remote control weigh?"},
    }
    table = extracted({"type": "object", "properties": columns}, reply, small=True)
    assert table.data == {"price": 25, "weight": None}
    assert {"sold for?" in text for text in asked} == {True}


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
SIGN, NAMED = (Evidence(Segment(0, 1), "onscreen", text) for text in ("ROOM 4", "The sign: ROOM 4"))


@pytest.mark.parametrize(
    ("about", "evidence", "supporting"),
    [
        ("What does she close?", [FRAME], [FRAME]),
        ("What does she close?", [CAPTION, FRAME], [FRAME]),
        ("What does she close?", [CAPTION], []),
        ("What does she close after lunch?", [FRAME, FRAME], []),
        ("What does the man who sings close?", [FRAME], []),
        ("How many doors are closed?", [FRAME, FRAME], []),
        ("What is the film mostly about?", [FRAME, FRAME], []),
        ("How many doors are closed?", [FRAME, SIGN], []),
        # which sign it is, only its own words tell
        ("What does the sign say?", [SIGN, NAMED], [NAMED]),
    ],
)
def test_what_is_seen_tells_what_one_moment_can(about, evidence, supporting):
    (cell,) = read_schema(column({"type": "string", "description": about})).columns
    assert _supporting(cell, "the door", evidence, small=False) == supporting


FANCY = "pay more money for a fancy design"
TWICE = f"75 percent of the users find it ugly, and 80 percent of the users {FANCY}."


@pytest.mark.parametrize(
    ("value", "line", "is_told"),
    [
        ("80", TWICE, True),
        ("75", TWICE, False),
        ("80", f"Maybe 80 percent of the users {FANCY}.", False),
        ("80", f"Would 80 percent of the users {FANCY}?", False),
        ("1000000", f"A million percent of the users {FANCY}.", True),
        ("1000000", f"Users who, like a million percent, {FANCY}.", False),
        ("80", f"80 users {FANCY}.", False),
        ("80", "80 percent of the users pay money for a design.", False),
    ],
)
def test_the_number_of_a_small_model_is_the_one_about_the_question(value, line, is_told):
    about = f"How many percent of users {FANCY}?"
    (cell,) = read_schema(column({"type": "number", "description": about})).columns
    cited = [Evidence(Segment(0, 5), "speech", line)]
    assert bool(_supporting(cell, value, cited, small=True)) == is_told
    assert _supporting(cell, value, cited, small=False) == cited


BUTTONS = "How many buttons does the new remote control have?"
USED = "What share of the buttons of a remote control do people use?"
VOICES = "What share of users pays more money for voice recognition?"


@pytest.mark.parametrize(
    ("question", "value", "line", "is_told"),
    [
        (BUTTONS, "3", "The new remote control has 3 buttons.", True),
        (BUTTONS, "3", "The new remote control has buttons, 3 lines of them.", False),
        (BUTTONS, "3", "I guess the new remote control has 3 buttons.", False),
        (USED, "10", "People use 10 percent of the buttons of a remote control.", True),
        (USED, "34", "34 percent say: people use buttons of a remote control.", False),
        (VOICES, "10", "10 percent of the buttons: users pay money for voice recognition.", False),
        (VOICES, "75", "75 percent of users pay money for voice recognition.", True),
        (VOICES, "75", "75 percent of the people: users pay money for voice recognition.", True),
    ],
)
def test_the_number_of_a_small_model_counts_what_the_question_asks_for(
    question, value, line, is_told
):
    (cell,) = read_schema(column({"type": "number", "description": question})).columns
    cited = [Evidence(Segment(0, 5), "speech", line)]
    assert bool(_supporting(cell, value, cited, small=True)) == is_told
