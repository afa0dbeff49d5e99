"""Any server that speaks the OpenAI chat-completions protocol.

Servers differ in what they accept. A feature that a server refuses (a schema, a temperature, a
seed) is left out from then on, with an event: it is tried once and remembered.
"""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from longtake import events
from longtake.entries import OpenAIEntry
from longtake.errors import ConfigError, ModelError
from longtake.models.backend import Backend, Opening
from longtake.models.budget import another_try
from longtake.models.chat import (
    Card,
    Chat,
    Image,
    Message,
    Options,
    Reply,
    Text,
    ToolSpec,
    Unavailable,
    Unsupported,
)
from longtake.models.http import Endpoint, Response, check_url
from longtake.models.keys import bound_key
from longtake.models.prices import price_of
from longtake.models.wire import estimated_usage, read_reply

REFUSABLE: Mapping[str, tuple[str, ...]] = {
    "schema": ("response_format", "json_schema", "schema", "grammar", "structured"),
    "max_tokens": ("max_completion_tokens",),
    "temperature": ("temperature",),
    "seed": ("seed",),
    "stop": ("'stop'", '"stop"', "stop sequences"),
    "tools": ("tool",),
}
"""Features that can be left out or sent differently, and the words that name them in complaints."""
REFUSALS = (400, 404, 422, 501)
"""Statuses with which servers refuse a feature."""
CONTEXT_KEYS = ("max_model_len", "context_length", "context_window", "max_context_length")
"""What servers call the context length in their list of models."""


class OpenAIBackend(Backend[OpenAIEntry]):
    """Models on OpenAI-compatible servers."""

    name = "openai"
    settings = OpenAIEntry

    def host(self, model: Opening[OpenAIEntry]) -> str:
        """The server's host."""
        return check_url(model.name, _base_url(model), keyed=False).host

    def open(self, model: Opening[OpenAIEntry]) -> Chat:
        """The model, with the key that is bound to its server."""
        entry = model.entry
        self.check(model)
        base_url = _base_url(model)
        key_env = entry.api_key_env or bound_key(base_url, model.models.entries.values())
        endpoint = Endpoint(
            model.name,
            base_url,
            key_env=key_env,
            timeout=entry.timeout,
            connections=entry.concurrency or self.at_once,
        )
        card = Card(
            model.name,
            model=entry.model or model.name,
            host=endpoint.host,
            context=entry.context or None,
            max_pixels=entry.max_pixels,
            price=price_of(model.name, entry),
            options=model.options,
        )
        return OpenAIChat(card, endpoint)

    def check(self, model: Opening[OpenAIEntry]) -> None:
        """Reject an entry whose key is not there."""
        key_env = model.entry.api_key_env
        # a key that is merely bound may be missing: many local servers want none
        if key_env and not os.environ.get(key_env):
            raise ConfigError(
                f"{model.name}: the environment variable {key_env} holds no key", key=key_env
            )

    def endpoint(self, model: Opening[OpenAIEntry]) -> str:
        """Models of one server share its limit."""
        return model.entry.base_url

    def state(self, model: Opening[OpenAIEntry]) -> str:
        """Where the key comes from."""
        return f"key from ${model.entry.api_key_env}" if model.entry.api_key_env else ""


def _base_url(model: Opening[OpenAIEntry]) -> str:
    key = f"models.{model.name}.base_url"
    if not model.entry.base_url:
        raise ConfigError(f"{key} is not set", key=key)
    return model.entry.base_url


class OpenAIChat:
    """A model behind an OpenAI-compatible endpoint."""

    def __init__(self, card: Card, endpoint: Endpoint) -> None:
        self._card = card
        self._endpoint = endpoint
        self._refused: set[str] = set()
        self._counts = True

    @property
    def card(self) -> Card:
        """What is known about it."""
        return self._card

    def complete(self, messages: Sequence[Message], options: Options) -> Reply:
        """Ask; a feature that the server refuses is left out from then on."""
        # tools cannot be left out: the caller has to describe them in words instead
        if options.tools and "tools" in self._refused:
            raise Unsupported(self._card.name, "tools")
        began = time.monotonic()
        while True:
            left = None
            if options.deadline is not None:
                left = options.deadline - (time.monotonic() - began)
            body = self._body(messages, options)
            response = self._endpoint.post("chat/completions", body, left)
            if response.status < 300:
                return self._reply(response, messages, time.monotonic() - began)
            feature = self._complaint(response.status, response.text, body)
            if feature is None:
                raise self._endpoint.failure(response)
            self._refused.add(feature)
            events.note("left_out", model=self._card.name, feature=feature, why=response.text[:200])
            if feature == "tools":
                raise Unsupported(self._card.name, "tools")
            another_try(f"the server refuses {feature}")

    def _reply(self, response: Response, messages: Sequence[Message], seconds: float) -> Reply:
        try:
            reply = read_reply(self._card, response.json(), messages, seconds)
        except Unavailable as error:
            # the model replied, so the try was not free, whatever became of the reply
            error.used = estimated_usage(self._card, messages, response.text, seconds)
            raise
        return self._without_key(reply)

    def count(self, text: str) -> int | None:
        """Count tokens with the server's own tokenizer; llama.cpp and vLLM offer one."""
        if not self._counts:
            return None
        # llama.cpp reads "content", vLLM reads "prompt" and "model"
        body = {"content": text, "prompt": text, **self._name()}
        try:
            response = self._endpoint.post("../tokenize", body, 10.0)
        except ModelError:
            # no tokenizer here: asking again before every prompt would cost a request each time
            self._counts = False
            return None
        answer = response.json() if response.status == 200 else None
        tokens = answer.get("tokens") if isinstance(answer, dict) else None
        if not isinstance(tokens, list):
            self._counts = False
            return None
        return len(tokens)

    def offers(self, feature: str) -> bool:
        """Whether the server has not refused a feature such as ``schema`` or ``tools`` so far."""
        return feature not in self._refused

    def context(self) -> int | None:
        """The context length that the server reports, if it does."""
        listed = self._endpoint.get("models")
        entries = listed.get("data") if isinstance(listed, dict) else None
        for entry in entries or []:
            if isinstance(entry, dict) and entry.get("id") == self._card.model:
                for key in CONTEXT_KEYS:
                    if isinstance(entry.get(key), int):
                        return int(entry[key])
        # llama.cpp reports it elsewhere
        props = self._endpoint.get("../props")
        defaults = props.get("default_generation_settings") if isinstance(props, dict) else None
        size = defaults.get("n_ctx") if isinstance(defaults, dict) else None
        return int(size) if isinstance(size, int) else None

    def close(self) -> None:
        """Close the connections."""
        self._endpoint.close()

    def _name(self) -> dict[str, str]:
        return {"model": self._card.model or self._card.name}

    def _body(self, messages: Sequence[Message], options: Options) -> dict[str, Any]:
        refused = self._refused
        # newer OpenAI models refuse max_tokens and take the same number under another name
        most = "max_completion_tokens" if "max_tokens" in refused else "max_tokens"
        body: dict[str, Any] = {
            **self._name(),
            "messages": [wire_message(message) for message in messages],
            most: options.max_tokens,
        }
        if "temperature" not in refused:
            body["temperature"] = options.temperature
        if options.seed is not None and "seed" not in refused:
            body["seed"] = options.seed
        if options.stop and "stop" not in refused:
            body["stop"] = list(options.stop)
        if options.schema is not None and "schema" not in refused:
            named = {"name": "reply", "schema": options.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": named}
        if options.tools:
            body["tools"] = [_wire_tool(tool) for tool in options.tools]
        return body

    def _without_key(self, reply: Reply) -> Reply:
        """The reply without the key, which a server can spread over parts that only join here."""
        hidden = self._endpoint.hidden
        calls = [replace(each, arguments=hidden(each.arguments)) for each in reply.tool_calls]
        text, thinking = hidden(reply.text), hidden(reply.thinking)
        return replace(reply, text=text, thinking=thinking, tool_calls=tuple(calls))

    def _complaint(self, status: int, text: str, body: Mapping[str, Any]) -> str | None:
        """The feature that a refusal is about, if it was sent and can be left out."""
        # a 5xx may pass, and is retried as it is
        if status not in REFUSALS:
            return None
        # every other feature is sent under its own name
        keys = {"schema": "response_format"}
        complaint = text.lower()
        for feature, words in REFUSABLE.items():
            was_sent = keys.get(feature, feature) in body
            if was_sent and any(word in complaint for word in words):
                return feature
        return None


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
