"""What is said to a model and what comes back.

A :class:`Chat` takes messages and options and gives a :class:`Reply`. Everything else here is a frozen
record of one of those words.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol, TypeAlias

from longtake.errors import ModelError
from longtake.models.images import encode_jpeg
from longtake.models.prices import Price
from longtake.models.replies.clean import clean_text
from longtake.types import Frame, Usage

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
Finish: TypeAlias = Literal["stop", "length", "tool_calls", "other"]

MAX_PIXELS = 768 * 768
"""Pixels of a picture where an entry says nothing else."""


@dataclass(frozen=True, slots=True)
class Text:
    """Words in a message."""

    text: str


@dataclass(frozen=True, eq=False)
class Image:
    """A frame in a message. It is encoded once, when first looked at, within ``max_pixels``."""

    frame: Frame
    max_pixels: int = MAX_PIXELS
    tokens: int | None = None
    """What it costs in the model it is for; ``None``: estimated from its size."""

    @cached_property
    def jpeg(self) -> bytes:
        """The picture as it is sent."""
        return encode_jpeg(self.frame.pixels, self.max_pixels)

    @cached_property
    def digest(self) -> str:
        """Hash of the bytes that are sent; the picture's name in traces and cache keys."""
        return hashlib.blake2b(self.jpeg, digest_size=16).hexdigest()

    @property
    def time(self) -> float:
        """The frame's moment in the film."""
        return self.frame.time

    def __repr__(self) -> str:
        return f"Image({self.frame!r})"


Part: TypeAlias = Text | Image


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool the model wants used. ``arguments`` is JSON text as the model wrote it."""

    id: str
    name: str
    arguments: str

    def __post_init__(self) -> None:
        for name in ("id", "name", "arguments"):
            object.__setattr__(self, name, clean_text(getattr(self, name)))


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model is told of it; ``parameters`` is a JSON schema."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Role
    parts: tuple[Part, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    """In an assistant's turn: the tools it asked for."""
    answers: str = ""
    """In a tool's turn: the id of the call it answers."""

    @property
    def text(self) -> str:
        """The words, pictures left out."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))


def say(role: Role, *parts: str | Part) -> Message:
    """A message from words and pictures."""
    return Message(role, tuple(Text(part) if isinstance(part, str) else part for part in parts))


@dataclass(frozen=True, slots=True)
class Options:
    """How to answer."""

    temperature: float = 0.0
    max_tokens: int = 1024
    schema: Mapping[str, Any] | None = None
    """JSON schema of the reply, kept to where the endpoint can."""
    tools: tuple[ToolSpec, ...] = ()
    seed: int | None = None
    stop: tuple[str, ...] = ()
    prompt: str = ""
    """Name of the prompt, for the trace; no part of the request."""
    deadline: float | None = None
    """Seconds this call may take in all, retries included; no part of the request."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model said. ``thinking`` is kept apart and is never read as the answer."""

    text: str
    thinking: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(default_factory=Usage)
    finish: Finish = "stop"
    model: str = ""
    cached: bool = False
    """Served from the reply cache, at no cost."""

    def __post_init__(self) -> None:
        # every backend's text enters here, so this is the one place to clean it
        object.__setattr__(self, "text", clean_text(self.text))
        object.__setattr__(self, "thinking", clean_text(self.thinking))


@dataclass(frozen=True, slots=True)
class Card:
    """What is known of a model before it is asked."""

    name: str
    """Its name in the catalogue."""
    model: str = ""
    """Its name at the endpoint."""
    host: str = ""
    """Where messages go, ``host:port``; empty: they stay in this process."""
    context: int | None = None
    """Tokens of prompt and reply together; ``None``: unknown."""
    max_pixels: int = MAX_PIXELS
    picture_tokens: int | None = None
    """Most tokens of one picture; ``None``: unknown, estimated from its size."""
    vision: bool | None = None
    """Whether it takes pictures; ``None``: unknown."""
    price: Price | None = None
    """``None``: unknown, which is never zero."""
    options: Options = Options()
    """How it answers where a step says nothing else."""
    revision: str = ""
    """Whatever else tells two models of one name apart, for the reply cache."""


class Chat(Protocol):
    """A model that answers messages."""

    @property
    def card(self) -> Card:
        """What is known of it."""

    def complete(self, messages: Sequence[Message], options: Options) -> Reply:
        """Answer. Raises :class:`~longtake.errors.ModelError` where it cannot."""


class Unavailable(ModelError):
    """The model could not be reached or was too busy; worth another try."""

    def __init__(
        self,
        model: str,
        detail: str,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        out_of_time: bool = False,
    ) -> None:
        super().__init__(model, "unavailable", detail)
        self.status = status
        self.retry_after = retry_after
        self.out_of_time = out_of_time
        """Given up because the call's deadline came, not because the model failed."""


class Unsupported(ModelError):
    """The endpoint does not offer a feature, ``tools`` for example; ask another way."""

    def __init__(self, model: str, feature: str) -> None:
        super().__init__(model, "refused", f"the endpoint does not offer {feature}")
        self.feature = feature


def images(messages: Sequence[Message]) -> Iterator[Image]:
    """Every picture in a conversation."""
    return (part for message in messages for part in message.parts if isinstance(part, Image))


def describe(message: Message) -> dict[str, Any]:
    """A message as plain data, pictures by digest; what traces hold."""
    parts = [
        {"text": part.text} if isinstance(part, Text) else {"image": part.digest, "time": part.time}
        for part in message.parts
    ]
    plain: dict[str, Any] = {"role": message.role, "parts": parts}
    if message.tool_calls:
        plain["tool_calls"] = [
            {"id": call.id, "name": call.name, "arguments": call.arguments}
            for call in message.tool_calls
        ]
    if message.answers:
        plain["answers"] = message.answers
    return plain


def request_hash(card: Card, messages: Sequence[Message], options: Options) -> str:
    """Name of a whole request: model, words, pictures, and every option that shapes the reply."""
    request = {
        "model": [card.host, card.model or card.name, card.revision],
        "messages": [describe(message) for message in messages],
        "temperature": options.temperature,
        "max_tokens": options.max_tokens,
        "schema": options.schema,
        "tools": [[tool.name, tool.description, tool.parameters] for tool in options.tools],
        "seed": options.seed,
        "stop": options.stop,
    }
    text = json.dumps(request, sort_keys=True, ensure_ascii=False)
    # what models write can hold lone surrogates, which UTF-8 refuses
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=20).hexdigest()
