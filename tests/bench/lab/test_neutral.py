"""Neutral values: what the lab gives a field that it has no skill for, and that it says so."""

import importlib
import json
import pkgutil
from functools import cache

import pytest
from bench.lab.asking import fields, model, shown, spoken_in
from pydantic import BaseModel
from support.listening import listening

import longtake.agents
import longtake.methods
from longtake._util.timecode import clock
from longtake.agents.team import Member
from longtake.llm.chat import Options, ToolSpec, say
from longtake.llm.structured.schema import schema_for
from longtake.types import Segment
from longtake_bench.lab.film import make_world
from longtake_bench.lab.footage import LabFootage


@cache
def world():
    # not when this file is imported, which every process of a test run does
    return make_world(3, 30, 16)


@cache
def footage():
    return LabFootage(world().script)


CHAT = model(acuity=1.0)

NOT_REPLIES = {Member}
"""Pydantic models that no language model ever fills: a member of a team is read from settings."""

ALLOWED: set[tuple[str, str]] = set()
"""Pairs of reply type and field for which a neutral value will do; each needs a reason here.
Today there are none."""


def filled(messages, schema, prompt="test/prompt"):
    """A reply, and the fields of which an event says that their values are neutral."""
    with listening() as heard:
        text = CHAT.complete(messages, Options(schema=schema, prompt=prompt)).text
    notes = [note.data for note in heard.notes("neutral_value")]
    assert all(note["prompt"] == prompt for note in notes)
    return json.loads(text), [note["field"] for note in notes]


# ---- the event


@pytest.mark.parametrize(
    ("node", "value"),
    [
        ({"type": "string"}, "There is nothing to add."),
        ({"type": "boolean"}, False),
        ({"type": "integer"}, 1),
        ({"type": "number", "minimum": 5}, 5.0),
        ({"type": "array", "items": {"type": "string"}}, []),
        ({"type": "object"}, {}),
        ({"enum": ["only"]}, "only"),
    ],
)
def test_an_unknown_field_gets_a_neutral_value_and_an_event_says_so(node, value):
    reply, neutral = filled([say("user", "Hello.")], fields(mood=node))
    assert reply == {"mood": value}
    assert neutral == ["mood"]


def test_a_skill_whose_value_does_not_fit_the_type_is_no_better_than_none():
    nodes = {"reason": {"type": "boolean"}, "caption": {"type": "number"}, "topic": {"enum": ["x"]}}
    assert filled([say("user", "Hello.")], fields(**nodes))[1] == ["reason", "caption", "topic"]
    listed = {"type": "array", "items": {"type": "string"}}
    assert filled([say("user", "Hello.")], fields(summary=listed))[1] == ["summary"]


def test_a_field_is_named_once_a_call():
    asked = world().questions[0]
    item = fields(option={"type": "string"}, mood={"type": "string"})
    schema = fields(facets={"type": "array", "items": item})
    reply, neutral = filled(shown(asked), schema)
    assert len(reply["facets"]) == 4
    assert neutral == ["mood"]


def test_known_fields_and_constants_are_not_neutral():
    schema = fields("reason", confidence={"type": "integer"}, kind={"const": "plan"})
    assert filled(shown(world().questions[0]), schema)[1] == []


def test_arguments_of_tools_are_reported_too():
    tool = ToolSpec("search", "Search.", fields("query", "mood"))
    with listening() as heard:
        reply = CHAT.complete(shown(world().questions[0]), Options(tools=(tool,), prompt="a/b"))
    assert reply.tool_calls
    assert [event.data for event in heard.events] == [{"field": "mood", "prompt": "a/b"}]


def test_a_plan_that_goes_on_has_no_answer_and_nobody_reads_it():
    schema = fields(
        agent={"enum": ["grounding", "finish"]}, choice={"type": "string", "enum": list("ABCD")}
    )
    reply, neutral = filled(shown(world().questions[0]), schema)
    assert reply["agent"] == "grounding"
    assert neutral == []


# ---- every reply type of every method


def reply_types():
    """Every pydantic model of methods and steps that is a whole reply, not a part of one."""
    kinds: set[type[BaseModel]] = set()
    for package in (longtake.methods, longtake.agents):
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            module = importlib.import_module(info.name)
            for value in vars(module).values():
                own = getattr(value, "__module__", "") == module.__name__
                if own and isinstance(value, type) and issubclass(value, BaseModel):
                    kinds.add(value)
    parts: set[tuple[str, str]] = set()  # by module, since several have a type of the same name
    for kind in kinds:
        parts |= {(kind.__module__, name) for name in kind.model_json_schema().get("$defs", {})}
    replies = kinds - NOT_REPLIES
    whole = [kind for kind in replies if (kind.__module__, kind.__name__) not in parts]
    return sorted(whole, key=lambda kind: (kind.__module__, kind.__name__))


def everything_shown(question):
    """A prompt with something for every skill, so that lists of objects have items."""
    segments = question.evidence[:2]
    step = world().script.duration / 3
    numbered = [f"{n + 1}. {clock(n * step)} to {clock((n + 1) * step)}" for n in range(3)]
    peers = ["reader: B. Because it was seen.", "2: the green cup", "3: the red cup"]
    spoken = spoken_in(world().script, [Segment(0.0, 120.0)])
    notes = "\n".join([*numbered, "<material>", *peers, "</material>", spoken])
    frames = footage().at([segment.middle for segment in segments])
    return shown(question, frames, notes)


def lists_of_objects(schema):
    """The names of fields that hold lists of objects."""
    for node in (schema, *schema.get("$defs", {}).values()):
        for name, field in node.get("properties", {}).items():
            items = field.get("items", {})
            if "$ref" in items or "properties" in items:
                yield name


def lists_of(reply):
    """Every list in a reply, by the name of its field."""
    if isinstance(reply, dict):
        for name, value in reply.items():
            if isinstance(value, list):
                yield name, value
            yield from lists_of(value)
    elif isinstance(reply, list):
        for item in reply:
            yield from lists_of(item)


@pytest.mark.parametrize("has_options", [True, False], ids=["choice", "open"])
@pytest.mark.parametrize(
    "kind", reply_types(), ids=lambda kind: f"{kind.__module__.split('.')[-2]}.{kind.__name__}"
)
def test_no_field_of_a_reply_type_is_left_to_a_neutral_value(kind, has_options):
    questions = [q for q in world().questions if bool(q.options) == has_options]
    longest: dict[str, int] = {}
    for question in questions[:20]:
        schema = schema_for(kind, question.question)
        reply, neutral = filled(everything_shown(question), schema, prompt=kind.__name__)
        assert {(kind.__name__, field) for field in neutral} <= ALLOWED
        for name, value in lists_of(reply):
            longest[name] = max(longest.get(name, 0), len(value))
    # a list that is always empty would hide the fields of its items
    assert [name for name in lists_of_objects(schema) if not longest.get(name)] == []
