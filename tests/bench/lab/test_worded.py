"""Forms and tools in words, read back."""

from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from longtake.agents.answer import ReasonedChoice
from longtake.agents.team import Groups
from longtake.llm.structured.ask import ReplyForm
from longtake.llm.structured.schema import Letter, follow, schema_for
from longtake.methods.symphony.grounding import ScoreReply, ToolReply
from longtake.methods.symphony.method import PlanReply, VerdictReply
from longtake.methods.symphony.perception import SubtitlesReply
from longtake.methods.videoagent.method import ConfidenceReply, WishesReply
from longtake.methods.videodetective.plan import OptionDecomposition, TimelineReply
from longtake.methods.videodetective.scenes import ReportReply
from longtake.types import Question
from longtake_bench.lab.prompt import form_in, is_form, tools_in

QUESTION = Question("Who?", ("the man", "the dog"))


class Mixed(BaseModel):
    mood: Literal["good", "bad"]
    parts: list[str] = Field(max_length=3)
    share: float = Field(ge=0, le=1)
    choice: Letter = None


KINDS = [
    ConfidenceReply,
    Groups,
    Mixed,
    OptionDecomposition,
    PlanReply,
    ReasonedChoice,
    ReportReply,
    ScoreReply,
    SubtitlesReply,
    TimelineReply,
    ToolReply,
    VerdictReply,
    WishesReply,
]


def shape(schema: Any, node: Any) -> Any:
    """What a reply needs to know of a schema."""
    node = follow(schema, node)
    if "anyOf" in node:
        node = next(branch for branch in node["anyOf"] if branch.get("type") != "null")
    if "properties" in node:
        return {name: shape(schema, inner) for name, inner in node["properties"].items()}
    if node.get("type") == "array":
        return [shape(schema, node["items"]), node.get("maxItems")]
    return [node.get(key) for key in ("type", "enum", "minimum", "maximum")]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_form_in_words_holds_the_whole_form(kind: type[BaseModel]) -> None:
    schema = schema_for(kind, QUESTION)
    form = ReplyForm.of(kind, {"question": QUESTION})
    read = form_in(f"Look at this.\n\n{form.instruction}")
    assert read is not None
    assert shape(read, read) == shape(schema, schema)


def test_tools_in_words() -> None:
    text = (
        'You may use:\n\nlook: Look closely. Arguments: "at": a number (seconds), '
        '"spans": a list of objects, each with "start": text and "end": text\n'
        "survey: Look over 10 to 60 seconds. Arguments: none\n\nTo use one, reply."
    )
    look, survey = tools_in(text)
    assert (look.name, look.description) == ("look", "Look closely.")
    assert shape(look.parameters, look.parameters) == {
        "at": ["number", None, None, None],
        "spans": [{"start": ["string", *[None] * 3], "end": ["string", *[None] * 3]}, None],
    }
    assert survey.parameters["properties"] == {}


def test_lines_that_describe_a_form_are_no_material() -> None:
    assert is_form('"reason": text, at most 25 words')
    assert is_form("survey: Look over 10 to 60 seconds. Arguments: none")
    assert not is_form("[00:00:10] a dog barks")
