"""Models as the rest of longtake sees them: messages, options, replies, cards and prices.

:class:`Chat` is the protocol that every model and every layer around one follows. The file also has
the hash of a request, which names it in caches and traces, and the estimate of its tokens.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Protocol, TypeAlias
from weakref import WeakKeyDictionary

from longtake.config.entries import ModelEntry, Show
from longtake.errors import ConfigError, ModelError
from longtake.llm.media import encode_jpeg, scaled
from longtake.llm.structured.reader import clean_text
from longtake.types import Frame, Usage


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens."""

    prompt: float
    reply: float
    cached: float
    source: str

    def of(self, tokens_in: int, tokens_cached: int, tokens_out: int) -> float:
        """The price of a call; ``tokens_cached`` of ``tokens_in`` came from a prefix cache."""
        # a server may report more cached tokens than prompt tokens
        fresh = max(0, tokens_in - tokens_cached)
        total = fresh * self.prompt + tokens_cached * self.cached + tokens_out * self.reply
        return total / 1_000_000


HERE = Price(0.0, 0.0, 0.0, source="runs on this machine")
"""The price of a model that runs in this process."""


def price_of(name: str, entry: ModelEntry) -> Price | None:
    """The price in an entry, or ``None`` if unknown; half a price is an error."""
    if entry.price_in is None and entry.price_out is None:
        return None
    if entry.price_in is None or entry.price_out is None:
        raise ConfigError(
            f"models.{name}: price_in and price_out go together; "
            "one alone would count the other as zero",
            key=f"models.{name}",
        )
    # without a price for cached tokens, the full one is the safe assumption
    cached = entry.price_in if entry.price_cached is None else entry.price_cached
    source = entry.price_source or "set in the configuration, undated"
    return Price(entry.price_in, entry.price_out, cached, source)


Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
Finish: TypeAlias = Literal["stop", "length", "tool_calls", "other"]

MAX_PIXELS = 768 * 768
"""Maximum pixels of a picture, unless an entry says otherwise."""


@dataclass(frozen=True, slots=True)
class Text:
    """Text in a message."""

    text: str


_JPEGS: WeakKeyDictionary[Frame, dict[int, bytes]] = WeakKeyDictionary()
"""By frame and size: agents are often shown the same frames, which are encoded once."""


@dataclass(frozen=True, eq=False)
class Image:
    """A frame in a message, encoded within ``max_pixels`` when it is first needed."""

    frame: Frame
    max_pixels: int = MAX_PIXELS
    tokens: int | None = None
    """Its tokens in the model it is meant for; ``None``: estimated from its size."""
    between: bool = False
    """Whether it only fills a clip, and is left out where frames are sent as pictures."""

    @property
    def jpeg(self) -> bytes:
        """The picture as it is sent."""
        # weak keys: the pictures go with the last user of the frame
        sizes = _JPEGS.setdefault(self.frame, {})
        # two threads may encode the same frame; the results are equal
        if self.max_pixels not in sizes:
            sizes[self.max_pixels] = encode_jpeg(self.frame.pixels, self.max_pixels)
        return sizes[self.max_pixels]

    @property
    def digest(self) -> str:
        """Hash of the encoded bytes; names the picture in traces and cache keys."""
        return hashlib.blake2b(self.jpeg, digest_size=16).hexdigest()

    @property
    def time(self) -> float:
        """The frame's time in the film."""
        return self.frame.time


Part: TypeAlias = Text | Image
LABEL = re.compile(r"\s*\[[\d:.]+\]\s*")
"""The text right before a picture, such as ``[00:01:10]``."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call requested by the model; ``arguments`` is JSON as the model wrote it."""

    id: str
    name: str
    arguments: str

    def __post_init__(self) -> None:
        # tool calls are repeated to the model and written to traces, which need valid text
        for name in ("id", "name", "arguments"):
            object.__setattr__(self, name, clean_text(getattr(self, name)))


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as described to the model; ``parameters`` is a JSON schema."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Role
    parts: tuple[Part, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    """In an assistant's turn: the tool calls it requested."""
    answers: str = ""
    """In a tool's turn: the id of the call it answers."""

    @property
    def text(self) -> str:
        """The text, without pictures."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))


def say(role: Role, *parts: str | Part) -> Message:
    """A message made of text and pictures."""
    # prompts are mostly strings, so callers need not wrap them
    typed = [Text(part) if isinstance(part, str) else part for part in parts]
    return Message(role, tuple(typed))


@dataclass(frozen=True, slots=True)
class Options:
    """How the model is to answer."""

    temperature: float = 0.0
    max_tokens: int = 1024
    schema: Mapping[str, Any] | None = None
    """JSON schema of the reply, enforced if the endpoint supports that."""
    tools: tuple[ToolSpec, ...] = ()
    seed: int | None = None
    stop: tuple[str, ...] = ()
    letters: tuple[str, ...] = ()
    """Asks for one token and the probability of each of these letters, where that is offered."""
    prompt: str = ""
    """Name of the prompt, for the trace; not part of the request."""
    deadline: float | None = None
    """Seconds that this call may take, including retries; not part of the request."""
    on_text: Callable[[str], None] | None = None
    """Receives the text so far while the reply is written, where the endpoint streams; another try
    begins anew. Not part of the request."""


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
    """Whether it came from the reply cache, at no cost."""
    odds: Mapping[str, float] = field(default_factory=dict)
    """Probability of each letter as the first token, if letters were asked for and offered."""

    def __post_init__(self) -> None:
        # every backend's text enters here, so this is the one place to clean it
        object.__setattr__(self, "text", clean_text(self.text))
        object.__setattr__(self, "thinking", clean_text(self.thinking))


@dataclass(frozen=True, slots=True)
class Card:
    """What is known about a model before it is asked."""

    name: str
    """Its name in the catalogue."""
    model: str = ""
    """Its name on the server."""
    host: str = ""
    """Where messages go, as ``host:port``; empty: they stay in this process."""
    context: int | None = None
    """Tokens of prompt and reply together; ``None``: unknown."""
    max_pixels: int = MAX_PIXELS
    picture_tokens: int | None = None
    """Maximum tokens of one picture; ``None``: unknown, estimated from its size."""
    show: Show = "pictures"
    """What several frames of one step are sent as."""
    clip_frames: int = 0
    """Maximum frames of a clip at the film's frame rate, for ``show="video"``; 0: no clips."""
    vision: bool | None = None
    """Whether it accepts pictures; ``None``: unknown."""
    price: Price | None = None
    """``None``: unknown, which is never treated as zero."""
    options: Options = Options()
    """How it answers unless a step says otherwise."""
    revision: str = ""
    """Anything else that distinguishes two models of the same name, for the reply cache."""
    letters: bool = False
    """Whether letters may be asked for by log-probability."""
    small: str = ""
    """Why the model counts as small (:mod:`longtake.llm.capabilities`); empty: it does not."""


class Chat(Protocol):
    """A model that answers messages."""

    @property
    def card(self) -> Card:
        """What is known about it."""

    def complete(self, messages: Sequence[Message], options: Options) -> Reply:
        """Answer, or raise :class:`~longtake.errors.ModelError`."""


class Unavailable(ModelError):
    """The model could not be reached or was overloaded; another try may succeed."""

    def __init__(
        self,
        model: str,
        detail: str,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        out_of_time: bool = False,
        used: Usage | None = None,
    ) -> None:
        super().__init__(model, "unavailable", detail)
        self.status = status
        self.retry_after = retry_after
        self.out_of_time = out_of_time
        """Whether the call's deadline passed, as opposed to a failure of the model."""
        self.used = used
        """What the try used, if the model replied and the reply is useless."""


class Unsupported(ModelError):
    """The endpoint does not support a feature such as ``tools``; ask in another way."""

    def __init__(self, model: str, feature: str) -> None:
        super().__init__(model, "refused", f"the endpoint does not offer {feature}")
        self.feature = feature


def images(messages: Sequence[Message]) -> list[Image]:
    """Every picture in a conversation."""
    return [part for message in messages for part in message.parts if isinstance(part, Image)]


def describe(message: Message) -> dict[str, Any]:
    """A message as plain data, with pictures by digest; this is what traces hold."""
    parts: list[dict[str, Any]] = []
    for part in message.parts:
        if isinstance(part, Text):
            parts.append({"text": part.text})
        else:
            parts.append({"image": part.digest, "time": part.time})
    plain: dict[str, Any] = {"role": message.role, "parts": parts}
    # left out when empty, so that traces and hashes of plain turns stay short
    if message.tool_calls:
        plain["tool_calls"] = [asdict(call) for call in message.tool_calls]
    if message.answers:
        plain["answers"] = message.answers
    return plain


def request_hash(card: Card, messages: Sequence[Message], options: Options) -> str:
    """Hash of a whole request: model, text, pictures, and every option that shapes the reply."""
    request: dict[str, Any] = {
        # the name on the server if there is one, so that a renamed entry keeps its cached replies
        "model": [card.host, card.model or card.name, card.revision],
        "messages": [describe(message) for message in messages],
        "temperature": options.temperature,
        "max_tokens": options.max_tokens,
        "schema": options.schema,
        "tools": [[tool.name, tool.description, tool.parameters] for tool in options.tools],
        "seed": options.seed,
        "stop": options.stop,
    }
    # only where they are used, so that requests recorded without them keep their hashes
    if options.letters:
        request["letters"] = options.letters
    if card.show != "pictures":
        request["show"] = card.show
    text = json.dumps(request, sort_keys=True, ensure_ascii=False)
    # what models write can hold lone surrogates, which UTF-8 refuses
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=20).hexdigest()


CHARACTERS_PER_TOKEN = 3.0
"""For ASCII; English prose has about four, code about three."""
SINGLE = "0123456789:[]"
"""Characters of times, which Qwen's tokenizer keeps apart: ``[00:01:10]`` has ten tokens."""
PER_MESSAGE = 8
"""Tokens that a chat template adds to each turn."""


def estimate(text: str) -> int:
    """Estimate the tokens of a text, rather too many than too few."""
    # tokenizers take two to four bytes of UTF-8 for Chinese or Russian
    return _tokens(text, CHARACTERS_PER_TOKEN, 2.0)


def at_most(text: str) -> int:
    """Tokens that a text has at most: names and code have two characters a token."""
    return _tokens(text, 2.0, 1.0)


def _tokens(text: str, ascii_per_token: float, bytes_per_token: float) -> int:
    ascii_count = len(text.encode("ascii", "ignore"))
    single = sum(map(text.count, SINGLE))
    wide = len(text.encode("utf-8", "surrogatepass")) - ascii_count
    others = ascii_count - single
    return math.ceil(single + others / ascii_per_token + wide / bytes_per_token)


def at_least(text: str) -> int:
    """Tokens that a text has in any tokenizer, about: rather too few than too many."""
    ascii_count = len(text.encode("ascii", "ignore"))
    others = len(text.encode("utf-8", "surrogatepass")) - ascii_count
    # English words have five letters and a space; Russian has up to seven bytes a token
    return math.ceil(ascii_count / 6.0 + others / 8.0)


def estimate_image(image: Image) -> int:
    """Tokens of a picture: as its model declares, else one per patch after scaling."""
    if image.tokens is not None:
        return image.tokens
    # from the frame's own size: encoding the picture would be slow
    height, width = image.frame.pixels.shape[:2]
    # the most expensive vision models take one token for a square of 28 pixels
    across, down = (math.ceil(side / 28) for side in scaled(width, height, image.max_pixels))
    return across * down + 2


def estimate_messages(
    messages: Sequence[Message],
    tools: Sequence[ToolSpec] = (),
    *,
    count: Callable[[str], int] = estimate,
) -> int:
    """Estimate the tokens of a conversation, and of the tools that are offered in it.

    ``count`` gives those of a text.
    """
    total = 0
    for tool in tools:
        described = json.dumps([tool.name, tool.description, tool.parameters])
        total += PER_MESSAGE + count(described)
    for message in messages:
        total += PER_MESSAGE
        total += sum(count(call.name + call.arguments) for call in message.tool_calls)
        for part in message.parts:
            total += count(part.text) if isinstance(part, Text) else estimate_image(part)
    return total


def counted(chat: Chat, text: str) -> int | None:
    """Tokens of a text by the model's own tokenizer (``count``), if it offers one."""
    counter: Callable[[str], int | None] | None = getattr(chat, "count", None)
    return counter(text) if counter is not None else None


def count(chat: Chat, text: str) -> int:
    """Count with the model's own tokenizer if it offers one, else estimate."""
    tokens = counted(chat, text)
    return estimate(text) if tokens is None else tokens
