"""Writes a request as servers that speak the OpenAI chat-completions protocol take it."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from longtake.algorithms import sampling
from longtake.models.chat import Image, Message, Options, Part, Text, ToolSpec, images
from longtake.models.manners import Manner, Rung
from longtake.models.replies.forms import closing
from longtake.models.replies.keeping import strict

REPLY_TOOL = "reply"
"""The tool whose arguments are the reply, where a form is asked for by a tool call."""
_LABEL = re.compile(r"\s*\[[\d:.]+\]\s*")
TOP_LOGPROBS = 20
"""Most tokens whose probability OpenAI and vLLM tell."""


def wire_body(
    model: str, messages: Sequence[Message], options: Options, manner: Manner, rung: Rung
) -> dict[str, Any]:
    """The body of a request, without anything that the server refused before."""
    refused = manner.has_refused
    # newer OpenAI models refuse max_tokens and take the same number under another name
    most = "max_completion_tokens" if refused("max_tokens") else "max_tokens"
    body: dict[str, Any] = {
        "model": model,
        "messages": [wire_message(message) for message in messages],
        most: options.max_tokens,
    }
    if not refused("temperature"):
        body["temperature"] = options.temperature
    if options.seed is not None and not refused("seed"):
        body["seed"] = options.seed
    if options.stop and not refused("stop"):
        body["stop"] = list(options.stop)
    if options.letters and not refused("logprobs"):
        body |= {"logprobs": True, "top_logprobs": TOP_LOGPROBS}
    if options.tools:
        body["tools"] = [_wire_tool(tool) for tool in options.tools]
    if options.schema is not None:
        bounds = not refused("bounds")
        body |= _form(rung, options.schema, options.max_tokens, bounds)
    return body


def form_rung(options: Options, manner: Manner) -> Rung:
    """The way in which a request asks for its form."""
    # a forced call would rule out the tools that the request itself offers
    return "plain" if options.tools and manner.rung == "tool" else manner.rung


def _form(rung: Rung, schema: Mapping[str, Any], max_tokens: int, bounds: bool) -> dict[str, Any]:
    """The fields of a request that ask for a form."""
    if rung == "plain":
        return {}
    if rung == "json_object":
        return {"response_format": {"type": "json_object"}}
    # texts are bounded, so that a model that repeats itself still reaches the fields that follow
    held = strict(closing(schema, max_tokens) if bounds else schema, bounds=bounds)
    if rung == "schema_object":
        return {"response_format": {"type": "json_object", "schema": held}}
    if rung == "json_schema":
        named = {"name": REPLY_TOOL, "schema": held, "strict": True}
        return {"response_format": {"type": "json_schema", "json_schema": named}}
    function = {
        "name": REPLY_TOOL,
        "description": "Gives the reply.",
        "parameters": held,
        "strict": True,
    }
    chosen = {"type": "function", "function": {"name": REPLY_TOOL}}
    return {"tools": [{"type": "function", "function": function}], "tool_choice": chosen}


def thin(messages: Sequence[Message], most: int) -> list[Message]:
    """The messages with at most ``most`` pictures, evenly chosen, without the labels of the others.

    A label is the text right before a picture, such as ``[00:01:10]``.
    """
    shown = list(images(messages))
    kept = {id(shown[index]) for index in sampling.uniform(len(shown), most)}
    thinned = []
    for message in messages:
        parts: list[Part] = []
        for part in message.parts:
            if isinstance(part, Text) or id(part) in kept:
                parts.append(part)
            elif parts and isinstance(parts[-1], Text) and _LABEL.fullmatch(parts[-1].text):
                parts.pop()
        thinned.append(replace(message, parts=tuple(parts)))
    return thinned


def wire_message(message: Message) -> dict[str, Any]:
    """A message as the protocol writes it."""
    wire: dict[str, Any] = {"role": message.role}
    # text alone is sent as a string, because text-only servers may accept no list of parts
    if any(isinstance(part, Image) for part in message.parts):
        wire["content"] = [_wire_part(part) for part in message.parts]
    else:
        wire["content"] = message.text
    calls = []
    for call in message.tool_calls:
        function = {"name": call.name, "arguments": call.arguments}
        calls.append({"id": call.id, "type": "function", "function": function})
    if calls:
        wire["tool_calls"] = calls
    if message.role == "tool":
        wire["tool_call_id"] = message.answers
    return wire


def _wire_part(part: Text | Image) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    data = base64.b64encode(part.jpeg).decode()
    return {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{data}"}}


def _wire_tool(tool: ToolSpec) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}
