"""``longtake lab serve``: simulated models behind the protocol, as unreliable as configured.

It supports pictures and lists of frames as data URLs, JSON schemas, tool calls, streams and usage,
and can misbehave like real servers: delays, "too many requests", failures.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from longtake.errors import ConfigError
from longtake.llm.chat import (
    Image,
    Message,
    Options,
    Part,
    Reply,
    Text,
    ToolCall,
    ToolSpec,
    Unsupported,
)
from longtake.server.openai import replies
from longtake.server.openai.replies import Head, error_body
from longtake.server.openai.requests import (
    BadRequest,
    listed_frames,
    read_messages,
    read_parts,
    refuse,
)
from longtake.server.openai.routes import opened_picture, read_data_url
from longtake.types import Frame
from longtake_bench.lab.model import LabChat
from longtake_bench.lab.profile import PROFILE, LabModel, digest, parse, share

ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
# not ignored, because they would change the reply
_REFUSED = ("functions", "logprobs", "logit_bias", "audio", "prediction", "web_search_options")
_TOKEN = re.compile(r"\s*\S+|\s+$")


@dataclass(frozen=True)
class SimulatedService:
    """What to serve, and how unreliably."""

    model: LabModel
    latency: float = 0.0
    """Seconds of delay before every reply."""
    fail_rate: float = 0.0
    """Share of requests that fail, half with status 429 and half with 503."""
    seed: int = 0
    created: int = field(default_factory=lambda: int(time.time()))
    """Unix time that clients see as the creation of the models."""

    def fails(self, number: int) -> int | None:
        """The status with which a numbered request fails; ``None`` if it succeeds."""
        if share("fails", self.seed, number) >= self.fail_rate:
            return None
        # by hash, so that a run can be repeated
        odd = int.from_bytes(digest("status", self.seed, number), "big") % 2
        return 429 if odd else 503

    def named(self, name: str) -> LabModel:
        """The model that a request names: a model of the laboratory, or else the served one."""
        model = parse(name) if name.startswith("lab/") else self.model
        # a server for one world uses it for every model
        return replace(model, world=self.model.world) if self.model.world else model

    def app(self) -> Starlette:
        """The ASGI application."""
        numbers = itertools.count()

        def models(_: Request) -> Response:
            listed = [replies.describe_model(self.model.name, self.created)]
            return JSONResponse({"object": "list", "data": listed})

        def model(request: Request) -> Response:
            name = request.path_params["name"]
            try:
                self.named(name)
            except ConfigError as error:
                return _refused(str(error), 404)
            # other names are answered in chats, but not listed: clients check this address first
            if name != self.model.name and not name.startswith("lab/"):
                return _refused(f"no model is called {name}", 404)
            return JSONResponse(replies.describe_model(name, self.created))

        async def complete(request: Request) -> Response:
            # numbered on arrival, so that the order of threads does not matter
            body = await request.body()
            number = next(numbers)
            # here rather than in a thread: a hundred slow replies need no hundred threads
            await asyncio.sleep(self.latency)
            status = await run_in_threadpool(self.fails, number)
            if status is None:
                return await run_in_threadpool(self.respond, body)
            reason = "too many requests" if status == 429 else "unavailable"
            return _refused(reason, status, {"Retry-After": "0"})

        def unknown_path(_request: Request, _error: Exception) -> Response:
            return _refused("not found; use /v1/models or /v1/chat/completions", 404)

        return Starlette(
            exception_handlers={404: unknown_path},
            routes=[
                Route("/v1/models", models),
                Route("/v1/models/{name:path}", model),
                Route("/v1/chat/completions", complete, methods=["POST"]),
            ],
        )

    def respond(self, data: bytes) -> Response:
        """The response to a request: one object, or a stream."""
        try:
            body = json.loads(data)
            if not isinstance(body, dict):
                raise BadRequest("the body must be a JSON object")
            name = str(body.get("model") or self.model.name)
            chat = LabChat(self.named(name))
            messages, options = read_chat(body)
            reply = _cut(chat.complete(messages, options), options, body)
        except (ConfigError, Unsupported, ValueError) as error:
            return _refused(str(error), 400)
        # equal replies have equal ids, so that recorded runs can be compared
        identity = digest(reply.text, *(call.arguments for call in reply.tool_calls)).hex()
        head = Head(identity, name, self.created)
        if not body.get("stream"):
            message = {"role": "assistant", "content": reply.text or None, **_tool_calls(reply)}
            return JSONResponse(replies.whole(head, message, reply.usage, reply.finish))
        pieces = list(_chunks(head, reply))
        if (body.get("stream_options") or {}).get("include_usage"):
            # like real servers: all chunks before the one with the usage have a null usage
            pieces = [{**piece, "usage": None} for piece in pieces]
            pieces.append(replies.usage_chunk(head, reply.usage))
        stream = b"".join(map(replies.sse, pieces)) + b"data: [DONE]\n\n"
        return Response(stream, media_type="text/event-stream")


def read_chat(body: Mapping[str, Any]) -> tuple[list[Message], Options]:
    """The messages and options of a request; unsupported parameters are refused."""
    refuse(body, _REFUSED)
    if body.get("tool_choice") not in (None, "auto", "none"):
        raise BadRequest("tool_choice: only auto and none are supported")
    tools = tuple(_tool(tool) for tool in body.get("tools") or ())
    try:
        messages = [_message(message) for message in read_messages(body.get("messages"))]
    except (KeyError, TypeError, AttributeError) as error:
        raise BadRequest(f"malformed message: {type(error).__name__}: {error}") from error
    stop = body.get("stop") or ()
    return messages, Options(
        schema=_schema(body.get("response_format")),
        tools=() if body.get("tool_choice") == "none" else tools,
        stop=(stop,) if isinstance(stop, str) else tuple(map(str, stop)),
    )


def _message(data: Mapping[str, Any]) -> Message:
    parts: list[Part] = []
    for part in read_parts(data.get("content")):
        if part.kind == "text":
            parts.append(Text(part.text))
        elif part.kind == "image":
            parts.append(_picture(part.text))
        else:
            frames = listed_frames(part.text)
            if not frames:
                only = "only lists of frames, data:video/jpeg;base64,…, are supported"
                raise BadRequest(f"video_url: {only}")
            parts += [_picture(url, number) for number, url in enumerate(frames)]
    calls = tuple(
        ToolCall(
            str(call.get("id", "")),
            call["function"]["name"],
            call["function"].get("arguments") or "{}",
        )
        for call in data.get("tool_calls") or ()
    )
    role = data["role"]
    if role == "tool":
        return Message("tool", tuple(parts), calls, str(data.get("tool_call_id") or ""))
    if role not in ROLES:
        raise BadRequest(f"role: {role!r} is not one of {', '.join(ROLES)}, tool")
    return Message(ROLES[role], tuple(parts), calls)  # type: ignore[arg-type]


def _picture(url: str, time: float = 0.0) -> Image:
    _, data = read_data_url(url, "image")
    with opened_picture(data) as picture:
        return Image(Frame(float(time), np.asarray(picture.convert("RGB"))))


def _tool(tool: Any) -> ToolSpec:
    try:
        function = tool["function"]
        description = function.get("description", "")
        return ToolSpec(function["name"], description, function.get("parameters") or {})
    except (KeyError, TypeError, AttributeError) as error:
        raise BadRequest("tools: each tool needs a function with a name") from error


def _schema(response_format: Any) -> Mapping[str, Any] | None:
    if response_format is None:
        return None
    kind = response_format.get("type") if isinstance(response_format, dict) else None
    if kind == "text":
        return None
    if kind != "json_schema":
        raise BadRequest("response_format: type must be text or json_schema")
    inner = response_format.get("json_schema")
    schema = inner.get("schema") if isinstance(inner, dict) else None
    if not isinstance(schema, dict):
        raise BadRequest("response_format: json_schema needs a schema")
    return schema


def _cut(reply: Reply, options: Options, body: Mapping[str, Any]) -> Reply:
    """The reply up to a stop word, and within its limit of tokens."""
    limit = body.get("max_completion_tokens", body.get("max_tokens"))
    if limit is not None and (not isinstance(limit, int) or limit < 1):
        raise BadRequest("max_completion_tokens: must be 1 or more")
    text, finish = reply.text, reply.finish
    for word in options.stop:
        text = text.split(word, 1)[0] if word else text
    per_token = PROFILE.model.characters_per_token
    if limit is not None and len(text) > limit * per_token:
        text, finish = text[: limit * per_token], "length"
    if text == reply.text:
        return reply
    written = max(1, math.ceil(len(text) / per_token))
    return replace(reply, text=text, finish=finish, usage=replace(reply.usage, tokens_out=written))


def _chunks(head: Head, reply: Reply) -> Iterator[dict[str, Any]]:
    """The pieces of a stream, one token each."""
    yield replies.chunk(head, {"role": "assistant", "content": ""})
    for token in _TOKEN.findall(reply.text):
        yield replies.chunk(head, {"content": token})
    calls = _tool_calls(reply).get("tool_calls", [])
    if calls:
        numbered = [{"index": number, **call} for number, call in enumerate(calls)]
        yield replies.chunk(head, {"tool_calls": numbered})
    yield replies.chunk(head, {}, reply.finish)


def _tool_calls(reply: Reply) -> dict[str, list[dict[str, Any]]]:
    """The field of a message that holds its tool calls, if there are any."""
    calls = []
    for call in reply.tool_calls:
        function = {"name": call.name, "arguments": call.arguments}
        calls.append({"id": call.id, "type": "function", "function": function})
    return {"tool_calls": calls} if calls else {}


def _refused(message: str, status: int, headers: Mapping[str, str] | None = None) -> JSONResponse:
    return JSONResponse(error_body(message, status, "refused"), status, headers=headers)
