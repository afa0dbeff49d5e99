"""An OpenAI-compatible server on this machine, with simulated models behind it.

It supports what real servers support (pictures as data URLs, JSON schemas, tool calls, usage) and
can misbehave as they do: delays, "too many requests", failures.
"""

from __future__ import annotations

import base64
import binascii
import io
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
from PIL import Image as Picture
from PIL import UnidentifiedImageError

from longtake.errors import ConfigError
from longtake.lab.acuity import LabChat, LabModel, parse
from longtake.lab.chance import digest, share
from longtake.models.chat import Image, Message, Options, Part, Reply, Text, ToolCall, ToolSpec
from longtake.types import Frame

MAX_BODY = 256 * 2**20
"""Maximum size of a request in bytes."""
MAX_PIXELS = 16_000_000
"""Maximum size of a picture in pixels, checked before it is decoded."""
PATHS = "not found; available: /v1/models and /v1/chat/completions"


class BadRequest(ValueError):
    """The request is invalid; the message is returned with status 400."""


@dataclass(frozen=True)
class Service:
    """What to serve, and how unreliably."""

    model: LabModel
    latency: float = 0.0
    """Seconds of delay before every reply."""
    fail_rate: float = 0.0
    """Share of requests that fail, half with status 429 and half with 503."""
    seed: int = 0

    def fails(self, number: int) -> int | None:
        """The status with which a numbered request fails; ``None`` if it succeeds."""
        if share("fails", self.seed, number) >= self.fail_rate:
            return None
        odd = int.from_bytes(digest("status", self.seed, number), "big") % 2
        return 429 if odd else 503

    def complete(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The chat completion for a request body."""
        name = str(body.get("model") or self.model.name)
        try:
            model = parse(name) if name.startswith("lab/") else self.model
        except ConfigError as error:
            raise BadRequest(str(error)) from error
        # a server for one world keeps to it, whichever model a client names
        chat = LabChat(replace(model, world=self.model.world) if self.model.world else model)
        messages, options = read_request(body)
        return completion(chat.complete(messages, options), name)


def read_request(body: Mapping[str, Any]) -> tuple[list[Message], Options]:
    """The messages and options of a request."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise BadRequest("messages: must be a list with at least one message")
    schema = None
    response_format = body.get("response_format")
    if isinstance(response_format, dict) and response_format.get("type") == "json_schema":
        inner = response_format.get("json_schema")
        schema = inner.get("schema") if isinstance(inner, dict) else None
    tools = tuple(_tool(tool) for tool in body.get("tools") or ())
    try:
        return [_message(message) for message in messages], Options(schema=schema, tools=tools)
    except (KeyError, TypeError, AttributeError) as error:
        raise BadRequest(f"malformed message: {type(error).__name__}: {error}") from error


def _tool(tool: Any) -> ToolSpec:
    try:
        function = tool["function"]
        description = function.get("description", "")
        return ToolSpec(function["name"], description, function.get("parameters") or {})
    except (KeyError, TypeError, AttributeError) as error:
        raise BadRequest("tools: each tool needs a function with a name") from error


def _message(data: Mapping[str, Any]) -> Message:
    content = data.get("content")
    parts: list[Part] = []
    if isinstance(content, str):
        parts = [Text(content)]
    elif isinstance(content, list):
        parts = [_part(part) for part in content]
    calls = tuple(_call(call) for call in data.get("tool_calls") or ())
    role = data["role"]
    if role not in ("system", "user", "assistant", "tool"):
        raise BadRequest(f"role: {role!r} is not one of system, user, assistant, tool")
    return Message(role, tuple(parts), calls, str(data.get("tool_call_id") or ""))


def _call(call: Mapping[str, Any]) -> ToolCall:
    function = call["function"]
    return ToolCall(str(call.get("id", "")), function["name"], function.get("arguments") or "{}")


def _part(part: Mapping[str, Any]) -> Part:
    if part.get("type") == "text":
        return Text(str(part["text"]))
    if part.get("type") != "image_url":
        raise BadRequest(f"content: type must be text or image_url, not {part.get('type')!r}")
    image = part["image_url"]
    url = image["url"] if isinstance(image, dict) else image
    head, comma, data = str(url).partition(",")
    if not head.startswith("data:image/") or not comma or not head.endswith(";base64"):
        raise BadRequest("image_url: only base64 data URLs are supported; nothing is fetched")
    try:
        with Picture.open(io.BytesIO(base64.b64decode(data, validate=True))) as picture:
            if picture.width * picture.height > MAX_PIXELS:
                raise BadRequest(f"image_url: {picture.width}×{picture.height} is too large")
            pixels = np.asarray(picture.convert("RGB"))
    except (binascii.Error, UnidentifiedImageError, OSError) as error:
        raise BadRequest("image_url: not a picture") from error
    return Image(Frame(0.0, pixels))


def completion(reply: Reply, model: str) -> dict[str, Any]:
    """A reply as a chat completion object."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if reply.tool_calls:
        calls = []
        for call in reply.tool_calls:
            function = {"name": call.name, "arguments": call.arguments}
            calls.append({"id": call.id, "type": "function", "function": function})
        message["tool_calls"] = calls
    usage = reply.usage
    identity = digest(reply.text, *(call.arguments for call in reply.tool_calls)).hex()
    return {
        "id": f"lab-{identity}",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": reply.finish}],
        "usage": {
            "prompt_tokens": usage.tokens_in,
            "completion_tokens": usage.tokens_out,
            "total_tokens": usage.tokens_in + usage.tokens_out,
        },
    }


class _Server(ThreadingHTTPServer):
    """A threading server with room for many callers at once.

    Methods call in parallel; the standard queue of five would refuse some of them.
    """

    request_queue_size = 128


@contextmanager
def serving(service: Service, port: int = 0) -> Iterator[str]:
    """Serve on 127.0.0.1 until the block ends; yields the base URL."""
    try:
        server = _Server(("127.0.0.1", port), _handler(service))
    except OSError as error:
        reason = error.strerror or error
        raise ConfigError(f"cannot listen on port {port}: {reason}", key="port") from error
    # a reply that still waits must not keep the process, or the end of the block, waiting
    server.daemon_threads = True
    server.block_on_close = False
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
    )
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()


def _handler(service: Service) -> type[BaseHTTPRequestHandler]:
    counter, lock = iter(range(2**62)), threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # it would delay small replies by 40 ms

        def do_GET(self) -> None:
            if self.path.rstrip("/") == "/v1/models":
                model = {"id": service.model.name, "object": "model"}
                self._send(200, {"object": "list", "data": [model]})
            else:
                self._send(404, _error(PATHS))

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            if length > MAX_BODY:
                self.close_connection = True  # the unread body would be taken for a request
                self._send(413, _error("the request is too large"))
                return
            # read in any case, so that the connection can be used again
            raw = self.rfile.read(length)
            if self.path.rstrip("/") != "/v1/chat/completions":
                self._send(404, _error(PATHS))
                return
            with lock:
                number = next(counter)
            if service.latency:
                time.sleep(service.latency)
            status = service.fails(number)
            if status is not None:
                reason = "too many requests" if status == 429 else "unavailable"
                self._send(status, _error(reason), {"Retry-After": "0"})
                return
            self._answer(raw)

        def _answer(self, raw: bytes) -> None:
            try:
                body = json.loads(raw)
                if not isinstance(body, dict):
                    raise BadRequest("the body must be a JSON object")
                if body.get("stream"):
                    raise BadRequest("stream: not supported")
                self._send(200, service.complete(body))
            except (BadRequest, json.JSONDecodeError, UnicodeDecodeError) as error:
                self._send(400, _error(str(error)))

        def _send(
            self, status: int, body: Mapping[str, Any], headers: Mapping[str, str] | None = None
        ) -> None:
            data = json.dumps(body, ensure_ascii=False).encode()
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass  # the base class would write a line per request to stderr

        def handle(self) -> None:
            with suppress(ConnectionError):  # the client has gone away
                super().handle()

    return Handler


def _error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "lab"}}
