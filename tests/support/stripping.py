"""A proxy in front of a chat-completions server that takes away what holds a model to a form.

Many servers, gateways and vendors accept ``response_format`` and ignore it. Behind this proxy every
server does: whether a reply can be read then depends on the model and on how it was asked.
"""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx

ENFORCEMENT = (
    "response_format", "grammar", "json_schema", "guided_json", "guided_choice", "guided_grammar",
    "structured_outputs", "tool_choice",
)  # fmt: skip
"""Fields of a request that force a form on the reply."""


def stripped(body: Mapping[str, Any]) -> dict[str, Any]:
    """A request without anything that enforces the form of its reply."""
    kept = {name: value for name, value in body.items() if name not in ENFORCEMENT}
    if "tools" in kept:
        kept["tools"] = [_without_strict(tool) for tool in kept["tools"]]
    return kept


def _without_strict(tool: Mapping[str, Any]) -> dict[str, Any]:
    function = {name: value for name, value in tool["function"].items() if name != "strict"}
    return {**tool, "function": function}


class _Server(ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True
    block_on_close = False


@contextmanager
def stripping(
    url: str, *, key: str = "", timeout: float = 900.0, strip: bool = True
) -> Iterator[str]:
    """Serve what ``url`` (ending in ``/v1``) serves, without enforcement; gives the new address."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    # a proxy from the environment has no business between two servers of one machine
    limits = httpx.Limits(max_connections=None)
    client = httpx.Client(headers=headers, timeout=timeout, trust_env=False, limits=limits)
    root = url.rstrip("/").removesuffix("/v1")
    with client:
        server = _Server(("127.0.0.1", 0), _handler(client, root, strip))
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        finally:
            server.shutdown()
            server.server_close()


def _handler(client: httpx.Client, root: str, strip: bool) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            body = json.loads(raw or b"{}")
            if strip and self.path.endswith("/chat/completions"):
                body = stripped(body)
            self._answer(lambda: client.post(root + self.path, json=body))

        def do_GET(self) -> None:
            self._answer(lambda: client.get(root + self.path))

        def _answer(self, ask: Any) -> None:
            try:
                response = ask()
                status, content = response.status_code, response.content
            except httpx.HTTPError as error:
                status, content = 502, json.dumps({"error": type(error).__name__}).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

        def handle(self) -> None:
            # a client that gives up closes the connection
            with suppress(OSError):
                super().handle()

    return Handler
