"""Reads a chat completion, as servers send it, into a :class:`Reply`."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from longtake import events
from longtake.models.chat import Card, Finish, Message, Reply, ToolCall, Unavailable, images
from longtake.models.replies.thinking import split_thinking
from longtake.models.tokens import estimate, estimate_messages
from longtake.types import Usage

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
MOST_TOKENS = 10**9
"""A count above this is an error of the server, not a count."""


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
    field = message.get("reasoning_content") or message.get("reasoning")
    if isinstance(field, str) and field.strip():
        thinking = f"{field.strip()}\n{thinking}".strip()
    refusal = message.get("refusal")
    if isinstance(refusal, str) and not text:
        text = refusal  # that the model declines is its reply
    calls = _tool_calls(message.get("tool_calls"))
    usage = _usage(card, data.get("usage"), messages, content + thinking, seconds)
    finish = FINISHES.get(str(choice.get("finish_reason")), "other")
    served = data.get("model")
    model = served if isinstance(served, str) else card.model
    odds = _odds(choice.get("logprobs"), letters) if letters else {}
    return Reply(text, thinking, calls, usage, finish, model, odds=odds)


def declined(data: Any) -> bool:
    """Whether the model declined to answer: such a reply says nothing about forms."""
    return isinstance(data["choices"][0]["message"].get("refusal"), str)


def _odds(logprobs: Any, letters: Sequence[str]) -> dict[str, float]:
    """The probability of each letter as the first token; empty if the server does not tell."""
    odds: dict[str, float] = {}
    for token, logprob in _first_token(logprobs):
        # tokens come with a space or a bracket before the letter; "a" is a word, not a letter
        letter = token.strip(" \t\n\u2581\u0120(\"'*")
        if letter in letters:
            odds[letter] = odds.get(letter, 0.0) + math.exp(min(0.0, logprob))
    return odds


def _first_token(logprobs: Any) -> list[tuple[str, float]]:
    """The likeliest first tokens, in either of the two shapes that servers use."""
    told = logprobs if isinstance(logprobs, dict) else {}
    content, older = told.get("content"), told.get("top_logprobs")
    pairs: list[tuple[Any, Any]] = []
    if isinstance(content, list) and content and isinstance(content[0], dict):
        for each in content[0].get("top_logprobs") or []:
            if isinstance(each, dict):
                pairs.append((each.get("token"), each.get("logprob")))
    elif isinstance(older, list) and older and isinstance(older[0], dict):
        pairs = list(older[0].items())
    return [
        (token, float(logprob))
        for token, logprob in pairs
        if isinstance(token, str) and isinstance(logprob, int | float)
    ]


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
    if not is_number or not 0 <= value <= MOST_TOKENS:  # false for NaN too
        return None
    return int(value)


def _usage(card: Card, usage: Any, messages: Sequence[Message], said: str, seconds: float) -> Usage:
    """What the call used; estimated if the server does not say, because it was not free."""
    frames = sum(1 for _ in images(messages))
    told = usage if isinstance(usage, dict) else {}
    tokens_in, tokens_out = _count(told.get("prompt_tokens")), _count(told.get("completion_tokens"))
    cached = 0
    if tokens_in is not None:
        details = told.get("prompt_tokens_details")
        if isinstance(details, dict):
            cached = min(tokens_in, _count(details.get("cached_tokens")) or 0)
        # a reply that says something was not written in no tokens
        tokens_out = tokens_out or (estimate(said) if said else 0)
    else:
        guess = estimated_usage(card, messages, said, seconds)
        tokens_in, tokens_out = guess.tokens_in, guess.tokens_out
        events.note("usage_estimated", model=card.name, tokens_in=tokens_in, tokens_out=tokens_out)
        return guess
    cost = None if card.price is None else card.price.of(tokens_in, cached, tokens_out)
    return Usage(1, tokens_in, cached, tokens_out, frames, round(seconds, 4), cost)


def estimated_usage(card: Card, messages: Sequence[Message], said: str, seconds: float) -> Usage:
    """What a call used, by our own count of its words and pictures."""
    frames = sum(1 for _ in images(messages))
    tokens_in, tokens_out = estimate_messages(messages), estimate(said)
    cost = None if card.price is None else card.price.of(tokens_in, 0, tokens_out)
    return Usage(1, tokens_in, 0, tokens_out, frames, round(seconds, 4), cost)
