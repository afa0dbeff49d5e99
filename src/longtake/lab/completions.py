"""Replies as chat-completion objects, whole or as the chunks of a stream."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from longtake.lab.chance import digest
from longtake.lab.profile import PROFILE
from longtake.lab.requests import Request
from longtake.models.chat import Reply

_TOKEN = re.compile(r"\s*\S+|\s+$")


def cut(reply: Reply, request: Request) -> Reply:
    """The reply as far as the request allows: up to a stop word, and to its most tokens."""
    text = reply.text
    for word in request.options.stop:
        text = text.split(word, 1)[0] if word else text
    finish = reply.finish
    per_token = PROFILE.model.characters_per_token
    if request.most is not None and len(text) > request.most * per_token:
        text, finish = text[: int(request.most * per_token)], "length"
    if text == reply.text:
        return reply
    written = max(1, math.ceil(len(text) / per_token))
    return replace(reply, text=text, finish=finish, usage=replace(reply.usage, tokens_out=written))


def completion(reply: Reply, request: Request, model: str, created: int) -> dict[str, Any]:
    """A reply as one object."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    calls = _calls(reply)
    if calls:
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "finish_reason": reply.finish}
    choice["logprobs"] = _logprobs(reply, request)
    return {
        **_head(reply, model, created, "chat.completion"),
        "choices": [choice],
        "usage": _usage(reply),
    }


def chunks(reply: Reply, request: Request, model: str, created: int) -> Iterator[dict[str, Any]]:
    """A reply as the chunks of a stream, one token each."""
    head = _head(reply, model, created, "chat.completion.chunk")
    # as servers do: with a usage chunk to come, all others say that they have none
    if request.usage_chunk:
        head["usage"] = None

    def chunk(delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
        token = delta.get("content")
        given = _logprobs(replace(reply, text=token), request) if token else None
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": given}
        return {**head, "choices": [choice]}

    yield chunk({"role": "assistant", "content": ""})
    for token in _TOKEN.findall(reply.text):
        yield chunk({"content": token})
    calls = [{"index": number, **call} for number, call in enumerate(_calls(reply))]
    if calls:
        yield chunk({"tool_calls": calls})
    yield chunk({}, reply.finish)
    if request.usage_chunk:
        yield {**head, "choices": [], "usage": _usage(reply)}


def _head(reply: Reply, model: str, created: int, kind: str) -> dict[str, Any]:
    identity = digest(reply.text, *(call.arguments for call in reply.tool_calls)).hex()
    return {"id": f"lab-{identity}", "object": kind, "created": created, "model": model}


def _calls(reply: Reply) -> list[dict[str, Any]]:
    calls = []
    for call in reply.tool_calls:
        function = {"name": call.name, "arguments": call.arguments}
        calls.append({"id": call.id, "type": "function", "function": function})
    return calls


def _logprobs(reply: Reply, request: Request) -> dict[str, Any] | None:
    """A deterministic model gives each of its tokens the probability one."""
    if not request.logprobs:
        return None
    content = []
    for token in _TOKEN.findall(reply.text):
        sure = {"token": token, "logprob": 0.0, "bytes": list(token.encode())}
        content.append({**sure, "top_logprobs": [sure] if request.top_logprobs else []})
    return {"content": content, "refusal": None}


def _usage(reply: Reply) -> dict[str, int]:
    usage = reply.usage
    return {
        "prompt_tokens": usage.tokens_in,
        "completion_tokens": usage.tokens_out,
        "total_tokens": usage.tokens_in + usage.tokens_out,
    }
