"""Any server that speaks the OpenAI chat-completions protocol.

Servers differ in what they take. What one refuses (a schema, a temperature, a seed) is left out from then
on, with an event: it is tried once and remembered.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Mapping, Sequence
from typing import Any

from longtake import events
from longtake.errors import ModelError
from longtake.models.chat import Card, Image, Message, Options, Reply, Text, Unsupported
from longtake.models.http import Endpoint
from longtake.models.wire import read_reply

REFUSABLE: Mapping[str, tuple[str, ...]] = {
    "schema": ("response_format", "json_schema", "schema", "grammar", "structured"),
    "max_tokens": ("max_completion_tokens",),
    "temperature": ("temperature",),
    "seed": ("seed",),
    "stop": ("'stop'", '"stop"', "stop sequences"),
    "tools": ("tool",),
}
"""What can be left out or said another way, and the words by which a server's complaint is known."""


class OpenAIChat:
    """A model behind an OpenAI-compatible endpoint."""

    def __init__(self, card: Card, endpoint: Endpoint) -> None:
        self._card = card
        self._endpoint = endpoint
        self._refused: set[str] = set()
        self._counts = True

    @property
    def card(self) -> Card:
        """What is known of it."""
        return self._card

    def complete(self, messages: Sequence[Message], options: Options) -> Reply:
        """Ask; what the server turns out not to take is left out, once and for all."""
        if options.tools and "tools" in self._refused:
            raise Unsupported(self._card.name, "tools")
        began = time.monotonic()
        while True:
            left = (
                None if options.deadline is None else options.deadline - (time.monotonic() - began)
            )
            body = self._body(messages, options)
            response = self._endpoint.post("chat/completions", body, left)
            if response.status < 300:
                return read_reply(self._card, response.json(), messages, time.monotonic() - began)
            feature = self._complaint(response.status, response.text, body)
            if feature is None:
                raise self._endpoint.failure(response)
            self._refused.add(feature)
            events.note("left_out", model=self._card.name, feature=feature, why=response.text[:200])
            if feature == "tools":
                raise Unsupported(self._card.name, "tools")

    def count(self, text: str) -> int | None:
        """Tokens by the server's own tokenizer; llama.cpp and vLLM offer one."""
        if not self._counts:
            return None
        try:
            response = self._endpoint.post(
                "../tokenize", {"content": text, "prompt": text, **self._name()}, 10.0
            )
        except ModelError:
            self._counts = False
            return None
        found = response.json() if response.status == 200 else None
        tokens = found.get("tokens") if isinstance(found, dict) else None
        if not isinstance(tokens, list):
            self._counts = False
            return None
        return len(tokens)

    def offers(self, feature: str) -> bool:
        """Whether the server was not yet seen to refuse ``schema``, ``tools`` or another feature."""
        return feature not in self._refused

    def context(self) -> int | None:
        """The context length the server reports, where it does."""
        listed = self._endpoint.get("models")
        for entry in listed.get("data") or [] if isinstance(listed, dict) else []:
            if isinstance(entry, dict) and entry.get("id") == self._card.model:
                for key in (
                    "max_model_len",
                    "context_length",
                    "context_window",
                    "max_context_length",
                ):
                    if isinstance(entry.get(key), int):
                        return int(entry[key])
        props = self._endpoint.get("../props")
        defaults = props.get("default_generation_settings") if isinstance(props, dict) else None
        found = defaults.get("n_ctx") if isinstance(defaults, dict) else None
        return int(found) if isinstance(found, int) else None

    def close(self) -> None:
        """Close the connections."""
        self._endpoint.close()

    def _name(self) -> dict[str, str]:
        return {"model": self._card.model or self._card.name}

    def _body(self, messages: Sequence[Message], options: Options) -> dict[str, Any]:
        refused = self._refused
        body: dict[str, Any] = {
            **self._name(),
            "messages": [wire_message(message) for message in messages],
        }
        body["max_completion_tokens" if "max_tokens" in refused else "max_tokens"] = (
            options.max_tokens
        )
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
            body["tools"] = [
                {
                    "type": "function",
                    "function": {
                        "name": t.name,
                        "description": t.description,
                        "parameters": t.parameters,
                    },
                }
                for t in options.tools
            ]
        return body

    def _complaint(self, status: int, text: str, body: Mapping[str, Any]) -> str | None:
        """The feature a refusal is about, if it is one that was sent and can be left out."""
        if status not in (400, 404, 422, 501):
            return None
        sent = {"schema": "response_format"}
        lower = text.lower()
        for feature, words in REFUSABLE.items():
            if sent.get(feature, feature) in body and any(word in lower for word in words):
                return feature
        return None


def wire_message(message: Message) -> dict[str, Any]:
    """A message as the protocol writes it."""
    wire: dict[str, Any] = {"role": message.role}
    if any(isinstance(part, Image) for part in message.parts):
        wire["content"] = [_wire_part(part) for part in message.parts]
    else:
        wire["content"] = message.text
    if message.tool_calls:
        wire["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in message.tool_calls
        ]
    if message.role == "tool":
        wire["tool_call_id"] = message.answers
    return wire


def _wire_part(part: Text | Image) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    data = base64.b64encode(part.jpeg).decode()
    return {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{data}"}}
