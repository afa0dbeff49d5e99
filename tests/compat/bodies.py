"""The bodies of requests as longtake sends them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from pydantic import BaseModel, Field

from longtake.agents.answer import ReasonedChoice
from longtake.llm.capabilities import Capabilities
from longtake.llm.chat import Card, Image, Message, Options, Text, ToolCall, ToolSpec, say
from longtake.llm.openai_protocol import wire_body
from longtake.llm.structured.schema import schema_for
from longtake.methods.symphony.method import PlanReply
from longtake.methods.videoagent.method import WishesReply
from longtake.types import Frame, Question

QUESTION = Question("Who barks?", ("the man", "the dog"))
LOOK = ToolSpec("look", "Looks.", {"type": "object", "properties": {"at": {"type": "string"}}})


class Nested(BaseModel):
    """A form with nested lists and bounds."""

    groups: list[list[int]]
    score: int = Field(ge=1, le=10)


def conversations() -> dict[str, list[Message]]:
    """Text alone, a picture, a video, and a conversation with a tool."""
    asked = [say("system", "Be brief."), say("user", "Who barks? Reply in JSON.")]
    picture = Image(Frame(1.0, np.zeros((16, 16, 3), np.uint8)))
    call = ToolCall("call-1", "look", '{"at": "00:00:01"}')
    used = [
        *asked,
        Message("assistant", (), (call,)),
        Message("tool", (Text("a dog"),), answers="call-1"),
    ]
    return {
        "text": asked,
        "picture": [say("user", "[00:00:01]", picture, "Look.")],
        "video": [say("user", picture, picture, "Look.")],
        "tool": used,
    }


def bodies(model: str = "m") -> Iterator[tuple[str, dict[str, Any]]]:
    """Each body with a name."""
    card, capabilities = Card(model, show="video"), Capabilities()
    kinds = (ReasonedChoice, WishesReply, PlanReply, Nested)
    for name, messages in conversations().items():
        yield name, wire_body(card, messages, Options(seed=1, stop=("END",)), capabilities)
        letters = Options(max_tokens=1, letters=("A", "B"))
        yield f"{name}, letters", wire_body(card, messages, letters, capabilities)
        tools = Options(tools=(LOOK,))
        yield f"{name}, tools", wire_body(card, messages, tools, capabilities)
        for kind in kinds:
            typed = Options(schema=schema_for(kind, QUESTION))
            body = wire_body(card, messages, typed, capabilities)
            yield f"{name}, {kind.__name__}, json_schema", body
