"""An OpenAI-compatible server on this machine, with simulated models behind it.

It supports what real servers support (pictures and videos as data URLs, JSON schemas, tool calls,
streams, usage) and can misbehave as they do: delays, "too many requests", failures.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

from longtake.errors import ConfigError
from longtake.lab.acuity import LabChat, LabModel, parse
from longtake.lab.chance import digest, share
from longtake.lab.completions import chunks, completion, cut
from longtake.lab.requests import BadRequest, Request, read_request
from longtake.models.chat import Reply, Unsupported

MAX_BODY = 256 * 2**20
"""Maximum size of a request in bytes."""
PATHS = "not found; available: /v1/models and /v1/chat/completions"


@dataclass(frozen=True)
class Service:
    """What to serve, and how unreliably."""

    model: LabModel
    latency: float = 0.0
    """Seconds of delay before every reply."""
    fail_rate: float = 0.0
    """Share of requests that fail, half with status 429 and half with 503."""
    seed: int = 0
    created: int = field(default_factory=lambda: int(time.time()))
    """When the models were made, as clients see it."""

    def fails(self, number: int) -> int | None:
        """The status with which a numbered request fails; ``None`` if it succeeds."""
        if share("fails", self.seed, number) >= self.fail_rate:
            return None
        odd = int.from_bytes(digest("status", self.seed, number), "big") % 2
        return 429 if odd else 503

    def describe(self, name: str) -> dict[str, Any]:
        """A model as ``/v1/models`` lists it."""
        return {"id": name, "object": "model", "created": self.created, "owned_by": "longtake"}

    def named(self, name: str) -> LabModel:
        """The model that a request names: any model of the laboratory, or else the served one."""
        try:
            model = parse(name) if name.startswith("lab/") else self.model
        except ConfigError as error:
            raise BadRequest(str(error)) from error
        # a server for one world keeps to it, whichever model a client names
        return replace(model, world=self.model.world) if self.model.world else model

    def complete(self, body: Mapping[str, Any]) -> dict[str, Any] | Iterator[dict[str, Any]]:
        """The completion for a request body, or its chunks if it asks for a stream."""
        name = str(body.get("model") or self.model.name)
        chat = LabChat(self.named(name))
        request = read_request(body)
        reply = self._reply(chat, request)
        make = chunks if request.stream else completion
        return make(reply, request, name, self.created)

    def _reply(self, chat: LabChat, request: Request) -> Reply:
        try:
            return cut(chat.complete(request.messages, request.options), request)
        except Unsupported as error:
            raise BadRequest(str(error)) from error


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
            path = unquote(self.path).rstrip("/")
            if path == "/v1/models":
                listed = [service.describe(service.model.name)]
                self._send(200, {"object": "list", "data": listed})
            elif path.startswith("/v1/models/"):
                self._send_model(path.removeprefix("/v1/models/"))
            else:
                self._send(404, _error(PATHS))

        def _send_model(self, name: str) -> None:
            known = name == service.model.name or name.startswith("lab/")
            try:
                service.named(name)
            except BadRequest as error:
                self._send(404, _error(str(error)))
                return
            if known:
                self._send(200, service.describe(name))
            else:
                self._send(404, _error(f"no model is called {name}"))

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
                answer = service.complete(body)
                if isinstance(answer, dict):
                    self._send(200, answer)
                else:
                    self._stream(answer)
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

        def _stream(self, pieces: Iterable[Mapping[str, Any]]) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            # its length is unknown, so the end of the connection is its end
            self.send_header("Connection", "close")
            self.close_connection = True
            self.end_headers()
            for piece in pieces:
                self.wfile.write(f"data: {json.dumps(piece, ensure_ascii=False)}\n\n".encode())
            self.wfile.write(b"data: [DONE]\n\n")

        def log_message(self, *_: Any) -> None:
            pass  # the base class would write a line per request to stderr

        def handle(self) -> None:
            with suppress(ConnectionError):  # the client has gone away
                super().handle()

    return Handler


def _error(message: str) -> dict[str, Any]:
    # the fields that clients of OpenAI read
    return {"error": {"message": message, "type": "lab", "param": None, "code": None}}
