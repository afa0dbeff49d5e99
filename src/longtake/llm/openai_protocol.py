"""The OpenAI chat-completions protocol: requests, replies, and what servers complain about.

Servers differ in what they accept, so a request leaves out what a server refused before, and a
reply is checked before it is believed.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any

from longtake._util.timecode import clock
from longtake.llm.capabilities import Capabilities
from longtake.llm.chat import (
    LABEL,
    Card,
    Finish,
    Image,
    Message,
    Options,
    Part,
    Reply,
    Text,
    ToolCall,
    Unavailable,
    at_least,
    estimate,
    estimate_messages,
    images,
)
from longtake.llm.http import Endpoint, is_loopback
from longtake.llm.media import PER_SHEET, contact_sheet, encode_jpeg, encode_video
from longtake.llm.structured.reader import split_thinking
from longtake.llm.structured.schema import bounded_schema, strict_schema
from longtake.prompts import phrase
from longtake.tracing import events
from longtake.types import Segment, Usage

PARAMETERS: Mapping[str, str] = {
    "schema": "response_format",
    "max_tokens": "max_tokens",
    "temperature": "temperature",
    "seed": "seed",
    "stop": "stop",
    "logprobs": "logprobs",
    "tools": "tools",
    "stream": "stream",
    "all frames of a video": "media_io_kwargs",
}
"""Features that can be left out or sent differently, and the parameters that ask for them."""
REFUSALS = (400, 404, 415, 422, 500, 501)
"""Statuses with which servers refuse a feature; llama-cpp-python answers a schema with 500."""


def is_loading(status: int, text: str) -> bool:
    """Whether the server has yet to load the model, in the words of llama.cpp."""
    return status == 503 and "loading model" in text.lower()


def refused_feature(status: int, text: str, body: Mapping[str, Any]) -> str | None:
    """The feature whose parameter was sent and is named by a refusal."""
    if status not in REFUSALS:
        return None
    for feature, parameter in PARAMETERS.items():
        # stream_options goes with stream
        if parameter in body and re.search(rf"\b{parameter}(?:_options)?\b", text):
            return feature
    return None


KEYS = ("max_model_len", "context_length", "context_window", "max_context_length")
"""What servers call the context length in their list of models."""


def reported(endpoint: Endpoint, model: str) -> dict[str, Any]:
    """What a server reports of a model: its ``context``, and ``vision`` if it has none."""
    listed = endpoint.get("models")
    entries = listed.get("data") if isinstance(listed, dict) else None
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and entry.get("id") == model:
            for key in KEYS:
                if size := _positive(entry.get(key)):
                    return {"context": size}
    # llama.cpp reports it elsewhere
    props = endpoint.get("../props")
    if not isinstance(props, dict):
        return {}
    found: dict[str, Any] = {}
    defaults, modalities = props.get("default_generation_settings"), props.get("modalities")
    if isinstance(defaults, dict) and (size := _positive(defaults.get("n_ctx"))):
        found["context"] = size
    if isinstance(modalities, dict) and modalities.get("vision") is False:
        found["vision"] = False
    return found


def _positive(value: Any) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool) and value > 0
    return int(value) if is_count else None


def wire_body(
    card: Card, messages: Sequence[Message], options: Options, capabilities: Capabilities
) -> dict[str, Any]:
    """The body of a request, without anything that the server refused before."""
    refused = capabilities.has_refused
    # newer OpenAI models refuse max_tokens and take the same number under another name
    limit_field = "max_completion_tokens" if refused("max_tokens") else "max_tokens"
    body: dict[str, Any] = {
        "model": card.model or card.name,
        "messages": [wire_message(message, show_as(card, capabilities)) for message in messages],
        limit_field: options.max_tokens,
    }
    if not refused("temperature"):
        body["temperature"] = options.temperature
    if options.seed is not None and not refused("seed"):
        body["seed"] = options.seed
    if options.stop and not refused("stop"):
        body["stop"] = list(options.stop)
    if options.letters and not refused("logprobs"):
        # OpenAI and vLLM report at most 20 tokens
        body |= {"logprobs": True, "top_logprobs": 20}
    if options.tools:
        body["tools"] = [{"type": "function", "function": asdict(tool)} for tool in options.tools]
    if options.schema is not None and not refused("schema"):
        # texts are bounded, so that a model that repeats itself still reaches the fields that
        # follow; vendors refuse bounds, and their models do not repeat themselves
        bounds = not card.host or is_loopback(card.host)
        schema = bounded_schema(options.schema, options.max_tokens) if bounds else options.schema
        named = {"name": "reply", "schema": strict_schema(schema, bounds=bounds), "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": named}
    # a call of a tool is not text that could be shown
    if options.on_text is not None and "tools" not in body and not refused("stream"):
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    shows = [part["type"] for message in body["messages"] for part in _parts_of(message)]
    if "video_url" in shows and not refused("all frames of a video"):
        # vLLM's VideoMediaIO reads 32 frames of a video unless it is told how many
        body["media_io_kwargs"] = {"video": {"num_frames": -1}}
    return body


def _parts_of(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = message["content"]
    return content if isinstance(content, list) else []


def show_as(card: Card, capabilities: Capabilities) -> str:
    """What frames are sent as: ``pictures``, ``sheets``, or the part that holds a video."""
    if card.show == "video":
        return capabilities.video_part or "pictures"
    return card.show


def wire_message(message: Message, show: str = "pictures") -> dict[str, Any]:
    """A message as the protocol writes it, with frames as :func:`show_as` says."""
    wire: dict[str, Any] = {"role": message.role}
    # text alone is sent as a string, because text-only servers may accept no list of parts
    if any(isinstance(part, Image) for part in message.parts):
        wire["content"] = _wire_parts(message.parts, show)
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


def _wire_parts(parts: Sequence[Part], show: str) -> list[dict[str, Any]]:
    if show == "pictures" or sum(isinstance(part, Image) for part in parts) < 2:
        return [
            _text(part.text) if isinstance(part, Text) else _picture(part.jpeg) for part in parts
        ]
    content: list[dict[str, Any]] = []
    # the label of a picture is its time, which is written into the frame instead
    kept = [part for part in parts if isinstance(part, Image) or not LABEL.fullmatch(part.text)]
    for together, group in groupby(kept, key=lambda part: isinstance(part, Image)):
        if not together:
            content += [_text(part.text) for part in group if isinstance(part, Text)]
            continue
        shown = [part for part in group if isinstance(part, Image)]
        size = PER_SHEET if show == "sheets" else len(shown)
        for start in range(0, len(shown), size):
            content += _together(shown[start : start + size], show)
    return content


def _together(shown: Sequence[Image], show: str) -> list[dict[str, Any]]:
    """Frames as one sheet or one video, after a description of it."""
    frames, pixels = [image.frame for image in shown], shown[0].max_pixels
    times = [image.time for image in shown]
    if len(shown) == 1:
        return [_text(f"[{clock(times[0])}]"), _picture(shown[0].jpeg)]
    stretch = Segment(min(times), max(times))  # a step may show them in another order
    if show == "sheets":
        sheet = contact_sheet(frames, pixels * len(shown))
        words = phrase("shared", "contact_sheet", number=len(shown), stretch=stretch)
        return [_text(words), _picture(encode_jpeg(sheet, sheet.shape[0] * sheet.shape[1]))]
    clip = any(image.between for image in shown)
    kind = "clip" if clip else "video"
    words = phrase("shared", kind, number=len(shown), stretch=stretch)
    data = base64.b64encode(encode_video(frames, pixels, at_own_rate=clip)).decode()
    url = f"data:video/mp4;base64,{data}"
    fields = {"video_url": {"url": url}, "input_video": {"data": data}, "file": {"file_data": url}}
    return [_text(words), {"type": show, show: fields[show]}]


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _picture(jpeg: bytes) -> dict[str, Any]:
    data = base64.b64encode(jpeg).decode()
    return {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{data}"}}


FINISHES: Mapping[str, Finish] = {
    "stop": "stop",
    "eos": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
}
"""Finish reasons of servers; any other is ``other``."""


LIKELY = 0.2
"""Probability of all letters together, below which a model was about to say something else.

Models that think first give letters next to nothing; tiny ones that might also begin with "The"
give them 0.4.
"""


_THINKING = ("reasoning_content", "reasoning")
"""What servers call the thinking, if they do not leave it in the text."""


def read_reply(
    card: Card, data: Any, messages: Sequence[Message], seconds: float, letters: Sequence[str] = ()
) -> Reply:
    """The reply in a response body; a body without a message is a failure that may pass."""
    if isinstance(data, dict) and data.get("error"):  # some gateways report errors with status 200
        raise Unavailable(card.name, f"the server reports {json.dumps(data['error'])[:300]}")
    try:
        choice = data["choices"][0]
        message = choice["message"]
        content = _content(message.get("content"))
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise Unavailable(card.name, "the server's reply holds no message") from error
    # some servers leave the thinking in the text, others give it a field of its own
    thinking, text = split_thinking(content)
    field = next((message[name] for name in _THINKING if message.get(name)), None)
    if isinstance(field, str) and field.strip():
        thinking = f"{field.strip()}\n{thinking}".strip()
    refusal = message.get("refusal")
    if isinstance(refusal, str) and not text:
        text = refusal  # declining is a reply too
    calls = _tool_calls(message.get("tool_calls"))
    written = text + thinking + "".join(call.name + call.arguments for call in calls)
    usage = _usage(card, data.get("usage"), messages, written, seconds)
    finish = FINISHES.get(str(choice.get("finish_reason")), "other")
    served = data.get("model")
    model = served if isinstance(served, str) else card.model
    odds = _odds(choice.get("logprobs"), letters) if letters else {}
    return Reply(text, thinking, calls, usage, finish, model, odds=odds)


class StreamedReply:
    """A reply that arrives in pieces, as server-sent events."""

    def __init__(self, on_text: Callable[[str], None]) -> None:
        self._on_text = on_text
        self._rest = b""
        self._body: dict[str, Any] = {}
        self._parts: dict[str, list[str]] = {}
        self._length = 0
        self._finish: Any = None
        self._problem = ""

    @property
    def text(self) -> str:
        """Everything that the model wrote so far."""
        return "".join(map(self._joined, self._parts))

    def feed(self, chunk: bytes) -> None:
        """Read more of the response; a chunk may end anywhere, even inside a character."""
        before = self._length
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            name, _, value = line.partition(b":")
            if name == b"data":
                self._read(value.strip())
        if before < self._length <= MAX_DRAFT:
            written = split_thinking(self._joined("content"))[1]
            # the end may become the tag that begins or ends thinking
            self._on_text(_TAG_BEGUN.sub("", written))

    def _read(self, data: bytes) -> None:
        if data == b"[DONE]":
            self._finish = self._finish or "other"
            return
        try:
            piece = json.loads(data)
            self._body |= {name: piece[name] for name in _KEPT if piece.get(name)}
            for choice in (piece.get("choices") or [])[:1]:
                self._finish = choice.get("finish_reason") or self._finish
                delta = choice.get("delta") or {}
                for name in (*_THINKING, "refusal", "content"):
                    if added := _content(delta.get(name)):
                        self._parts.setdefault(name, []).append(added)
                        self._length += len(added)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            self._problem = "a piece of the server's reply cannot be read"

    def _joined(self, name: str) -> str:
        joined = "".join(self._parts.get(name, ()))
        # the halves of a character may come in two pieces
        return joined.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    def whole(self, model: str) -> dict[str, Any] | None:
        """The body of the same reply in one piece; ``None`` if the server sent no pieces."""
        if not (self._body or self._parts or self._finish or self._problem):
            return None
        if not (self._finish or self._body.get("error")):
            self._problem = self._problem or "the server's reply was cut off"
        if self._problem:
            raise Unavailable(model, self._problem)
        message = {name: self._joined(name) for name in self._parts}
        return {**self._body, "choices": [{"message": message, "finish_reason": self._finish}]}


MAX_DRAFT = 20_000
"""Characters beyond which a reply is no longer passed on while it is written."""
_KEPT = ("error", "model", "usage")
_TAG_BEGUN = re.compile(r"</?[a-z]*$", re.IGNORECASE)


def _odds(logprobs: Any, letters: Sequence[str]) -> dict[str, float]:
    """The probability of each letter as the first token; empty if the server reports none."""
    odds: dict[str, float] = {}
    for token, logprob in _first_token(logprobs):
        # tokens come with a space or a bracket before the letter; "a" is a word, not a letter
        letter = token.strip(" \t\n\u2581\u0120(\"'*")
        if letter in letters:
            odds[letter] = odds.get(letter, 0.0) + math.exp(logprob)
    return odds


def _first_token(logprobs: Any) -> list[tuple[str, float]]:
    """The likeliest first tokens."""
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(content, list) or not content or not isinstance(content[0], dict):
        return []
    known = []
    for each in content[0].get("top_logprobs") or []:
        if not isinstance(each, dict):
            continue
        token, logprob = each.get("token"), each.get("logprob")
        if not isinstance(token, str) or not isinstance(logprob, int | float):
            continue
        # rounding can leave it above 0; an integer can be too large for a float; NaN stays NaN
        bounded = float(max(min(logprob, 0), -1000))
        if not math.isnan(bounded):
            known.append((token, bounded))
    return known


def _content(content: Any) -> str:
    """A content, which is a string or a list of parts, as text."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    return "".join(part["text"] for part in content if part.get("type", "text") == "text")


def _tool_calls(calls: Any) -> tuple[ToolCall, ...]:
    read: list[ToolCall] = []
    for number, call in enumerate(calls if isinstance(calls, list) else []):
        function = call.get("function") if isinstance(call, dict) else None
        # a call without a name cannot be carried out, and must not be guessed
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            events.note("tool_call_dropped", call=str(call)[:200])
            continue
        arguments = function.get("arguments")
        if not isinstance(arguments, str):  # some servers send an object instead of JSON text
            arguments = json.dumps({} if arguments is None else arguments)
        identity = str(call.get("id") or f"call-{number}")
        read.append(ToolCall(identity, function["name"], arguments))
    return tuple(read)


def _count(value: Any) -> int | None:
    """A number of tokens as a server reports it; ``None`` if it cannot be one."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    # more than 10**9 tokens is an error of the server, not a count; false for NaN too
    if not is_number or not 0 <= value <= 10**9:
        return None
    return int(value)


def _usage(card: Card, usage: Any, messages: Sequence[Message], text: str, seconds: float) -> Usage:
    """What the call used; estimated if the server does not say, because it was not free."""
    reported = usage if isinstance(usage, dict) else {}
    tokens_in = _count(reported.get("prompt_tokens"))
    if tokens_in is None:
        guess = estimated_usage(card, messages, text, seconds)
        counts = {"tokens_in": guess.tokens_in, "tokens_out": guess.tokens_out}
        events.note("usage_estimated", model=card.name, **counts)
        return guess
    # a server may report less than it read and wrote; pictures cost some models next to nothing
    tokens_in = max(tokens_in, sum(at_least(message.text) for message in messages))
    tokens_out = _count(reported.get("completion_tokens")) or estimate(text)
    tokens_out = max(tokens_out, at_least(text))
    details = reported.get("prompt_tokens_details")
    cached = 0
    if isinstance(details, dict):
        cached = min(tokens_in, _count(details.get("cached_tokens")) or 0)
    return _priced(card, messages, (tokens_in, cached, tokens_out), seconds)


def estimated_usage(card: Card, messages: Sequence[Message], text: str, seconds: float) -> Usage:
    """What a call used, estimated from its text and pictures."""
    tokens = (estimate_messages(messages), 0, estimate(text))
    return _priced(card, messages, tokens, seconds)


def _priced(
    card: Card, messages: Sequence[Message], tokens: tuple[int, int, int], seconds: float
) -> Usage:
    """The usage of a call, from its tokens of prompt, prefix cache and reply."""
    cost = None if card.price is None else card.price.of(*tokens)
    return Usage(1, *tokens, len(images(messages)), round(seconds, 4), cost)
