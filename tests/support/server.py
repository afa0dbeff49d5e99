"""A chat-completions server on loopback whose replies and failures a function decides.

Run as a program, it serves one fixed reply after a delay, for measurements in another process.
"""

import argparse
import json
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from longtake.llm.backends.openai import OpenAIChat
from longtake.llm.budget import REAL, Clock
from longtake.llm.capabilities import Capabilities
from longtake.llm.chat import Card
from longtake.llm.http import Endpoint
from support.patience import PATIENCE


@dataclass
class Request:
    """A request."""

    path: str
    body: dict[str, Any]
    headers: Mapping[str, str]

    @property
    def text(self) -> str:
        """All words of all messages."""
        words = []
        for message in self.body.get("messages", []):
            content = message["content"]
            if isinstance(content, str):
                words.append(content)
            else:
                words += [part["text"] for part in content if "text" in part]
        return "\n".join(words)


@dataclass
class Send:
    """A response, and how it breaks, if at all."""

    status: int = 200
    body: Any = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    breaks: str = ""
    """``hang``: no reply at all; ``reset``: half a body, then a reset; ``drip``: byte by byte.

    After pieces: ``hang`` sends nothing more, ``reset`` ends the connection, ``endless`` repeats
    the last of them.
    """
    pieces: Iterable[bytes] = ()
    """A stream of events, instead of a body."""
    delay: float = 0.0


def completion(
    text: str | None, *, finish: str = "stop", prompt_tokens: int = 10, **message: Any
) -> Send:
    """A well-formed chat completion."""
    return Send(
        body={
            "model": "served",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": finish,
                    "message": {"role": "assistant", "content": text, **message},
                }
            ],
            "usage": {
                "prompt_tokens": prompt_tokens,
                "completion_tokens": 5,
                "total_tokens": prompt_tokens + 5,
            },
        }
    )


def event(data: Any) -> bytes:
    """An event of a stream; text is sent as it is."""
    text = data if isinstance(data, str) else json.dumps(data)
    return f"data: {text}\n\n".encode()


def stream(*texts: str, finish: str | None = "stop", breaks: str = "") -> Send:
    """A chat completion in these pieces; without ``finish`` its end is missing."""
    pieces = [event({"choices": [{"index": 0, "delta": {"content": text}}]}) for text in texts]
    if finish is not None:
        pieces.append(event({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}))
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        pieces += [event({"model": "served", "choices": [], "usage": usage}), event("[DONE]")]
    return Send(pieces=pieces, breaks=breaks)


Act = Callable[[Request], Send]


class Served:
    """A running server: its address and its requests."""

    def __init__(self, server: ThreadingHTTPServer, requests: list[Request]) -> None:
        self.port = server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/v1"
        self.requests = requests


class _Server(ThreadingHTTPServer):
    """Queues many connections: the default of five resets some on a busy machine."""

    request_queue_size = 128


@contextmanager
def serve(act: Act) -> Iterator[Served]:
    """Serve until the block ends."""
    requests: list[Request] = []
    closing = threading.Event()
    server = _Server(("127.0.0.1", 0), _handler(act, requests, closing))
    server.daemon_threads = True
    server.block_on_close = False
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
    )
    thread.start()
    try:
        yield Served(server, requests)
    finally:
        closing.set()
        server.shutdown()
        server.server_close()


def chat_at(
    served: Served,
    capabilities: Capabilities | None = None,
    *,
    timeout: float = PATIENCE,
    key: str = "",
    clock: Clock = REAL,
    **card: Any,
) -> OpenAIChat:
    """The model of a running server."""
    endpoint = Endpoint("there", served.url, timeout=timeout, key=key)
    return OpenAIChat(Card("there", model="m", **card), endpoint, capabilities, clock=clock)


def _handler(
    act: Act, requests: list[Request], closing: threading.Event
) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self._answer(Request(self.path, json.loads(raw or b"{}"), dict(self.headers)))

        def do_GET(self) -> None:
            self._answer(Request(self.path, {}, dict(self.headers)))

        def _answer(self, request: Request) -> None:
            requests.append(request)
            send = act(request)
            if send.delay:
                time.sleep(send.delay)
            if send.pieces:
                self._stream(send)
                return
            if send.breaks == "hang":
                closing.wait()
                self.close_connection = True
                return
            body = send.body if isinstance(send.body, bytes) else json.dumps(send.body).encode()
            lines = [
                f"HTTP/1.1 {send.status} X",
                f"Content-Length: {len(body)}",
                "Content-Type: application/json",
            ]
            lines += [f"{name}: {value}" for name, value in send.headers.items()]
            head = ("\r\n".join(lines) + "\r\n\r\n").encode()
            if send.breaks == "reset":
                self.wfile.write(head + body[: len(body) // 2])
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                self.close_connection = True
                return
            if send.breaks == "drip":
                self.wfile.write(head)
                for byte in body:
                    if closing.wait(0.02):
                        return
                    self.wfile.write(bytes([byte]))
                return
            self.wfile.write(head + body)

        def _stream(self, send: Send) -> None:
            head = f"HTTP/1.1 {send.status} X\r\nTransfer-Encoding: chunked\r\n"
            self.wfile.write(f"{head}Content-Type: text/event-stream\r\n\r\n".encode())
            for piece in send.pieces:
                self._chunk(piece)
            while send.breaks == "endless" and not closing.is_set():
                self._chunk(piece)
            if send.breaks == "hang":
                closing.wait()
            if send.breaks:
                self.close_connection = True
            else:
                self._chunk(b"")

        def _chunk(self, data: bytes) -> None:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

        def log_message(self, *_: Any) -> None:
            pass

        def handle(self) -> None:
            # a client that times out closes the connection, as it should
            with suppress(OSError):
                super().handle()

    return Handler


def main() -> None:
    """Serve one reply after a delay; the port is the first line of output."""
    options = argparse.ArgumentParser()
    options.add_argument("--delay", type=float, default=0.0)
    delay = options.parse_args().delay
    reply = completion('{"number": 7}')
    reply.delay = delay
    with serve(lambda _: reply) as served:
        print(served.port, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
