"""What the stand-ins for model servers share: JSON over HTTP."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class JsonHandler(BaseHTTPRequestHandler):
    """Reads and sends JSON, and logs nothing."""

    protocol_version = "HTTP/1.1"
    model = ""
    context = 4096

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def do_GET(self) -> None:
        """Send what :meth:`get` gives."""
        self.send(200, self.get())

    def do_POST(self) -> None:
        """Read the request."""
        self.post(json.loads(self.rfile.read(int(self.headers["content-length"]))))

    def get(self) -> Any:
        """The list of models, which is one."""
        card = {"id": self.model, "object": "model", "max_model_len": self.context}
        return {"object": "list", "data": [card]}

    def post(self, body: Any) -> None:
        """Reply to a request."""
        raise NotImplementedError

    def send(self, code: int, value: Any) -> None:
        """Send a response."""
        body = json.dumps(value).encode()
        self.send_response(code)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def serve_in_thread(handler: type[JsonHandler]) -> str:
    """Start a server on a free port; returns the address of its API."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/v1"
