"""A model hub on loopback: large files carry their SHA-256, small ones the hash that git gives."""

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

SMALL = 100
"""Bytes of a file that the hub keeps in git itself."""


class Hub(BaseHTTPRequestHandler):
    """Answers as ``huggingface_hub`` asks: HEAD for what a file is, GET for the file."""

    files: ClassVar[dict[str, bytes]]
    lies: ClassVar[set[str]]
    """Files of which another hash is stated."""
    tokens: ClassVar[list[str | None]]
    asked: ClassVar[list[tuple[str, str]]]
    """Methods and paths."""

    def respond(self, body: bool) -> None:
        self.tokens.append(self.headers.get("Authorization"))
        self.asked.append((self.command, self.path))
        file = self.path.partition("/resolve/")[2].partition("/")[2]
        content = self.files.get(file)
        if content is None:
            self.send_response(404)
            self.send_header("X-Error-Code", "EntryNotFound")
            self.end_headers()
            return
        told = content + b"!" * (file in self.lies)
        stated = hashlib.sha256(told)
        if len(content) < SMALL:
            stated = hashlib.sha1(b"blob %d\0" % len(told) + told)
        self.send_response(200)
        self.send_header("ETag", f'"{stated.hexdigest()}"')
        self.send_header("X-Repo-Commit", "c" * 40)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if body:
            self.wfile.write(content)

    def do_HEAD(self) -> None:
        self.respond(body=False)

    def do_GET(self) -> None:
        self.respond(body=True)

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@contextmanager
def serve_hub(files: dict[str, bytes]) -> Iterator[tuple[Any, str]]:
    """Serve the files of one repository; yields the handler class and the address."""
    state = {"files": files, "lies": set(), "tokens": [], "asked": []}
    handler = type("OwnHub", (Hub,), state)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield handler, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
