"""A server that lies, stalls and floods: each mode is what it sends after it has read a request.

Seeded modes (``random_reply``) mutate a sound response, so that a finding can be repeated.
"""

import json
import random
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

DRIP = 0.03
"""Seconds between two bytes; a second would only make the tests slower."""
FLOOD = 300 * 2**20
"""Bytes after which a flood ends, should nobody end it earlier."""

Pieces = Iterator[bytes]


@dataclass(frozen=True)
class Asked:
    """What a mode may use of a request."""

    head: bytes
    key: str


Mode = Callable[[Asked], Pieces]


def reply(**changes: Any) -> dict[str, Any]:
    """A chat completion, with some of its members replaced."""
    message = {"role": "assistant", "content": '{"answer": "A"}'}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    return {"model": "served", "choices": [choice], "usage": usage, **changes}


def said(content: Any, **more: Any) -> dict[str, Any]:
    """A chat completion with this content."""
    return reply(choices=[{"message": {"role": "assistant", "content": content, **more}}])


def http(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    """A whole response; the server closes the connection after it, and says so.

    A client that did not know could send its next request where nobody reads any more.
    """
    length = f"Content-Length: {len(body)}"
    lines = [f"HTTP/1.1 {status}", length, "Connection: close", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def sends(body: Any, *headers: str, status: str = "200 OK") -> Mode:
    """A mode that sends one whole response."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return lambda asked: iter([http(data, *headers, status=status)])


def _raw(data: bytes) -> Mode:
    return lambda asked: iter([data])


def _dripping(start: bytes, drop: bytes) -> Mode:
    """Sends a start, and then drops for ever."""

    def pieces(asked: Asked) -> Pieces:
        yield start
        while True:
            time.sleep(DRIP)
            yield drop

    return pieces


def _flooding(start: bytes, piece: bytes) -> Mode:
    def pieces(asked: Asked) -> Pieces:
        yield start
        block = piece * (65_536 // len(piece))
        for _ in range(FLOOD // len(block)):
            yield block

    return pieces


def _hang(asked: Asked) -> Pieces:
    while True:
        time.sleep(DRIP)
        yield b""


def _cut(asked: Asked) -> Pieces:
    whole = http(json.dumps(reply()).encode())
    yield whole[: len(whole) - 20]


def _escaped(asked: Asked) -> Pieces:
    spelt = "".join(f"\\u{ord(letter):04x}" for letter in asked.key)
    yield http(json.dumps(said("@")).replace("@", spelt).encode())


def _echo(asked: Asked) -> Pieces:
    yield http(json.dumps(said(asked.key, reasoning_content=asked.key)).encode())


def _split_key(asked: Asked) -> Pieces:
    parts = [{"type": "text", "text": asked.key[:9]}, {"type": "text", "text": asked.key[9:]}]
    yield http(json.dumps(said(parts)).encode())


def _echo_error(asked: Asked) -> Pieces:
    body = json.dumps({"error": {"message": f"bad key {asked.key}"}}).encode()
    yield http(body, status="401 Unauthorized")


def _redirect_to_key(asked: Asked) -> Pieces:
    yield http(b"", f"Location: http://{asked.key}.example/v1", status="302 Found")


def _echo_reason(asked: Asked) -> Pieces:
    yield http(b"{}", f"X-Key: {asked.key}", status=f"500 {asked.key}")


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

STALLS: dict[str, Mode] = {
    "no reply": _hang,
    "slow status line": _dripping(b"", b"H"),
    "slow headers": _dripping(b"HTTP/1.1 200 OK\r\nX-Long: ", b"a"),
    "many headers": _dripping(b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n"),
    "100 continue": _dripping(CONTINUE, CONTINUE),
    "102 processing": _dripping(b"", b"HTTP/1.1 102 Processing\r\n\r\n"),
    "chunk extensions": _dripping(CHUNKED + b"5;", b"a=b;"),
    "small chunks": _dripping(CHUNKED, b"1\r\n \r\n"),
    "chunk trailers": _dripping(CHUNKED + b"0\r\n", b"X-A: b\r\n"),
    "dripping body": _dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", b" "),
    "body without a length": _dripping(b"HTTP/1.1 200 OK\r\n\r\n{", b" "),
}
"""Modes without an end, which only a deadline ends."""

FLOODS: dict[str, Mode] = {
    "flood of headers": _flooding(b"HTTP/1.1 200 OK\r\n", b"X-A: bbbbbbbb\r\n"),
    "flood of continues": _flooding(b"", CONTINUE),
    "flood of body": _flooding(b"HTTP/1.1 200 OK\r\n\r\n", b" "),
    "flood of chunks": _flooding(CHUNKED, b"1\r\n \r\n"),
    "flood of extensions": _flooding(CHUNKED + b"5;", b"a=b;"),
    "compressed": sends(b"x" * 100, "Content-Encoding: gzip"),
}
"""Modes that send or become more than anyone can use."""

DEEP = b"[" * 200_000
LIES: dict[str, Mode] = {
    "sound": sends(reply()),
    "echo": _echo,
    "escaped key": _escaped,
    "split key": _split_key,
    "key in an error": _echo_error,
    "key in a redirect": _redirect_to_key,
    "key in a header": _echo_reason,
    "redirect": sends(b"", "Location: http://192.0.2.1/steal", status="307 Temporary Redirect"),
    "redirect to a file": sends(b"", "Location: file:///etc/passwd", status="301 Moved"),
    "bad redirect": sends(b"", "Location: http://[::1", status="302 Found"),
    "negative usage": sends(reply(usage={"prompt_tokens": -7000, "completion_tokens": -1})),
    "usage in words": sends(reply(usage={"prompt_tokens": "many", "completion_tokens": []})),
    "usage without end": sends(reply(usage={"prompt_tokens": 10**400, "completion_tokens": 1})),
    "usage of NaN": sends(reply(usage={"prompt_tokens": float("nan"), "completion_tokens": 1})),
    "infinite usage": sends(reply(usage={"prompt_tokens": float("inf")})),
    "usage as a list": sends(reply(usage=[1, 2])),
    "cached below zero": sends(
        reply(usage={"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": -9}})
    ),
    "deep JSON": sends(DEEP),
    "deep object": sends(b'{"a":' * 100_000),
    "deep content": sends(said(DEEP.decode())),
    "surrogates": sends(said("\ud800 half \udfff")),
    "right to left": sends(said("\u202eevil\u2066")),
    "zero bytes": sends(said("a\0b")),
    "invalid UTF-8": sends(b'{"choices": [{"message": {"content": "\xff\xfe"}}]}'),
    "byte order mark": sends(b"\xef\xbb\xbf" + json.dumps(reply()).encode()),
    "empty": sends(b""),
    "null": sends(None),
    "a number": sends(7),
    "a huge number": sends(b"9" * 100_000),
    "no choices": sends(reply(choices=[])),
    "choices as text": sends(reply(choices="none")),
    "message as a list": sends(reply(choices=[{"message": []}])),
    "content as a number": sends(said(7)),
    "content as parts of parts": sends(said([[["text"]]])),
    "parts without text": sends(said([{"type": "text"}, {"type": "image"}])),
    "tool calls as text": sends(said("x", tool_calls="all of them")),
    "tool call of nothing": sends(said("x", tool_calls=[None, {"function": {"name": 3}}])),
    "model as a list": sends(reply(model=[1])),
    "error with 200": sends({"error": {"message": "no"}}),
    "error as a number": sends({"error": 7}, status="500 Broken"),
    "deep error": sends(DEEP, status="400 Bad Request"),
    "a page": sends(b"<html>" + b"<p>no</p>" * 1000, status="502 Bad Gateway"),
    "forever later": sends({}, "Retry-After: 1e309", status="429 Slow Down"),
    "never later": sends({}, "Retry-After: nan", status="429 Slow Down"),
    "a date later": sends({}, "Retry-After: Fri, 31 Dec 9999 23:59:59 GMT", status="503 No"),
    "cut": _cut,
    "closed": lambda asked: iter(()),
    "not HTTP": _raw(b"hello\r\n\r\n"),
    "status of 999": _raw(b"HTTP/1.1 999 What\r\nContent-Length: 0\r\n\r\n"),
    "status of words": _raw(b"HTTP/1.1 fine\r\n\r\n"),
    "switching": _raw(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"),
    "negative length": _raw(b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n{}"),
    "two lengths": _raw(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 9\r\n\r\n{}"),
    "a length of words": _raw(b"HTTP/1.1 200 OK\r\nContent-Length: two\r\n\r\n{}"),
    "a bad chunk": _raw(CHUNKED + b"zz\r\n{}\r\n0\r\n\r\n"),
    "a negative chunk": _raw(CHUNKED + b"-1\r\n{}\r\n0\r\n\r\n"),
    "stream": sends(b"data: {}\n\ndata: [DONE]\n\n", "Content-Type: text/event-stream"),
}
"""Modes that end by themselves."""


def random_reply(seed: int) -> Mode:
    """A sound response with one to six changes, sent in pieces."""
    chance = random.Random(seed)
    data = bytearray(http(json.dumps(reply()).encode(), "X-Any: thing"))
    words = (b"\r\n", b"\0", b'"', b"{", b"[", b"-", b"9" * 30, b"null", b"\\ud800", b"\xff", b"")
    for _ in range(chance.choice([1, 1, 2, 3, 6])):
        place = chance.randrange(len(data) + 1)
        data[place : place + chance.choice([0, 1, 4, 40])] = chance.choice(words)
    size = chance.choice([1, 7, 100, 10_000])

    def pieces(asked: Asked) -> Pieces:
        for start in range(0, len(data), size):
            yield bytes(data[start : start + size])

    return pieces


class Liar:
    """A running server; ``mode`` is what it does from the next request on."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.mode: Mode = LIES["sound"]
        self.posts = 0
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            head = _request(connection)
            if not head:
                return
            self.posts += head.startswith(b"POST /v1/chat")
            for piece in self.mode(Asked(head, self.key)):
                connection.sendall(piece)
                if not piece and _gone(connection):
                    return


def _gone(connection: socket.socket) -> bool:
    """Whether the client has closed its end; sending nothing would not tell."""
    connection.setblocking(False)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    finally:
        connection.setblocking(True)


def _request(connection: socket.socket) -> bytes:
    """The head of a request, after all of it has been read."""
    data = b""
    while b"\r\n\r\n" not in data:
        received = connection.recv(65_536)
        if not received:
            return b""
        data += received
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
    left = int(lengths[0].split(b":")[1]) - len(body) if lengths else 0
    while left > 0:
        left -= len(connection.recv(min(left, 65_536)))
    return head


@contextmanager
def lying(key: str = "") -> Iterator[Liar]:
    """A server until the block ends."""
    liar = Liar(key)
    try:
        yield liar
    finally:
        liar.close()


@contextmanager
def deaf() -> Iterator[str]:
    """The address of a server that accepts connections and never reads from them."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        linger = struct.pack("ii", 1, 0)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
