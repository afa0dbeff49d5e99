"""The server's part of the chaos: questions go on being asked while it is killed and started again.

What it reported as done must stay done, with the same answer, and the answers must equal those of a
server that nobody disturbs.
"""

from __future__ import annotations

import base64
import json
import math
import signal
import socket
import subprocess
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chaos import Chaos

QUESTIONS = tuple(f"What happens at minute {minute}?" for minute in range(6))
OPTIONS = ("a whale", "a train", "a storm", "nothing")
ENDED = ("done", "failed", "cancelled", "broken")
PATIENCE = 120.0
"""Seconds that an undisturbed run may take."""


HOSTILE = (
    {"budget": {"seconds": math.nan}},
    {"budget": {"cost": -1000}},
    {"budget": {"tokens": math.inf}},
    {"question": "\ud800"},
    {"question": ""},
    {"film": "a\0b"},
    {"film": "../" * 200},
    {"model": "~nouser"},
)
"""What is wrong with an ask, one thing at a time."""
EPS = base64.b64encode(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\nshowpage\n").decode()
CROWD = 300
"""Connections at once: more than a server with 256 descriptors can have open."""


class NotServed(Exception):
    """The server went away, or did not come up."""


class Client:
    """Asks one server."""

    def __init__(self, process: subprocess.Popen[bytes], cache: Path) -> None:
        said = b""
        assert process.stdout is not None
        while not said.rstrip().endswith(b"}"):
            line = process.stdout.readline()
            if not line:
                raise NotServed
            said += line
        home = json.loads(said)["url"].partition("/enter")[0]
        token = (cache / "serve" / "token").read_text()
        self.authorization = f"Bearer {token}"
        headers = {"Authorization": self.authorization}
        self._http = httpx.Client(base_url=home, headers=headers, timeout=30, trust_env=False)

    def call(self, method: str, path: str, **more: Any) -> Any:
        """The JSON of a response; a server that is gone or out of disk raises."""
        try:
            response = self._http.request(method, f"/api/v1/{path}", **more)
        except httpx.TransportError as error:
            raise NotServed from error
        if response.status_code >= 500:
            raise NotServed(response.text)
        return response.raise_for_status().json()

    def status(self, path: str, body: Any) -> int:
        """The status of a reply to a body that only JSON as Python writes it can express."""
        content, headers = json.dumps(body).encode(), {"Content-Type": "application/json"}
        try:
            return self._http.post(path, content=content, headers=headers).status_code
        except httpx.TransportError as error:
            raise NotServed from error

    def connect(self) -> socket.socket:
        """A connection without a token."""
        url = self._http.base_url
        return socket.create_connection((url.host, url.port), timeout=30)

    def film(self) -> str:
        """The id of the only film."""
        films = self.call("GET", "films")
        if len(films) != 1:
            raise NotServed(f"{len(films)} films")
        return str(films[0]["id"])

    def ask(self, question: str) -> dict[str, Any]:
        """Ask, and wait until the run has ended."""
        ask = {"film": self.film(), "question": question, "options": list(OPTIONS)}
        run = self.call("POST", "runs", json={**ask, "method": "videoagent"})["run"]
        began = time.monotonic()
        while run["state"] not in ENDED:
            if time.monotonic() - began > PATIENCE:
                raise AssertionError(f"run {run['id']} is still {run['state']}")
            time.sleep(0.05)
            run = self.call("GET", f"runs/{run['id']}")["run"]
        return dict(run)

    def judged(self, run: str) -> bool:
        """Whether a model checked the answer, which one that fails does not."""
        try:
            trace = self._http.get(f"/api/v1/runs/{run}/trace").text
        except httpx.TransportError as error:
            raise NotServed from error
        return "not_judged" not in trace and "not_verified" not in trace


def crowd(chaos: Chaos, client: Client, line: list[str], cache: Path) -> None:
    """Connections that send half a request; the server must serve again once they are gone."""
    with ExitStack() as stack:
        for _ in range(CROWD):
            connection = stack.enter_context(client.connect())
            with suppress(OSError):  # refused
                connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n")
    began = time.monotonic()
    while client.status("/api/v1/runs", {}) == 503:
        if time.monotonic() - began > PATIENCE:
            chaos.tally.differences.append("crowd: the server refuses after everybody has left")
            return
        time.sleep(0.1)


def second_server(chaos: Chaos, client: Client, line: list[str], cache: Path) -> None:
    """Another server on the same cache must refuse to start."""
    process = chaos.start(line, cache)
    try:
        process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        chaos.tally.differences.append("second server: it started")
        return
    if process.returncode == 0:
        chaos.tally.differences.append("second server: it ended without an error")


def hostile_asks(chaos: Chaos, client: Client, line: list[str], cache: Path) -> None:
    """Each must be refused in words: no error of the server, and no run."""
    film = client.film()
    for wrong in HOSTILE:
        status = client.status("/api/v1/runs", {"film": film, "question": "Why?", **wrong})
        if not 400 <= status < 500:
            chaos.tally.differences.append(f"hostile ask {wrong!r}: {status}")
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{EPS}"}}
    message = {"role": "user", "content": [{"type": "text", "text": "Why?"}, picture]}
    status = client.status(
        "/v1/chat/completions", {"model": "longtake/videoagent", "messages": [message]}
    )
    if not 400 <= status < 500:
        chaos.tally.differences.append(f"hostile ask, EPS picture: {status}")
    with client.connect() as connection:
        host, port = connection.getpeername()
        head = f"POST /api/v1/runs HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Length: 5\r\n"
        head += f"Authorization: {client.authorization}\r\nTransfer-Encoding: chunked\r\n"
        connection.sendall(f"{head}\r\n0\r\n\r\n".encode())
        told = connection.recv(100)
    if not told.startswith(b"HTTP/1.1 400"):
        chaos.tally.differences.append(f"hostile ask, two lengths: {told!r}")


MOVES = {"crowd": crowd, "second server": second_server, "hostile asks": hostile_asks}


@contextmanager
def served(chaos: Chaos, line: list[str], cache: Path, *, disturbed: bool) -> Iterator[Client]:
    """A server that goes wrong after a while if it is to be disturbed."""
    kind, more = chaos.trouble(*MOVES) if disturbed else ("nothing", {})
    # commands print nothing that matters here, but a server prints its address
    process = chaos.start(line, cache, stdout=subprocess.PIPE, **more)
    fuse = threading.Thread(target=chaos.strike, args=(process, kind), daemon=True)
    fuse.start()
    try:
        client = Client(process, cache)
        if kind in MOVES:
            MOVES[kind](chaos, client, line, cache)
        yield client
    finally:
        fuse.join()
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL if disturbed else signal.SIGTERM)
        _, told = process.communicate(timeout=PATIENCE)
        chaos.listen(kind, told)


def answers_of(chaos: Chaos, line: list[str], cache: Path) -> dict[str, Any]:
    """The answers of a server that nobody disturbs."""
    with served(chaos, line, cache, disturbed=False) as client:
        runs = {question: client.ask(question) for question in QUESTIONS}
    return {question: run["answer"] for question, run in runs.items()}


def ask_the_rest(client: Client, done: dict[str, dict[str, Any]]) -> None:
    """Ask what was not answered yet; an answer counts once the server has reported it."""
    for question in QUESTIONS:
        if question not in done:
            run = client.ask(question)
            if run["state"] == "done" and run["answer"]["choice"] and client.judged(run["id"]):
                done[question] = run


def disturbed_answers(
    chaos: Chaos, line: list[str], cache: Path, most: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Answers got in spite of at most so many disturbances, and what the server says afterwards."""
    done: dict[str, dict[str, Any]] = {}
    for _ in range(most):
        with suppress(NotServed), served(chaos, line, cache, disturbed=True) as client:
            ask_the_rest(client, done)
    # nobody disturbs the last one, so that there is an end
    chaos.calm_down()
    with served(chaos, line, cache, disturbed=False) as client:
        ask_the_rest(client, done)
    with served(chaos, line, cache, disturbed=False) as client:
        kept = {run["id"]: client.call("GET", f"runs/{run['id']}")["run"] for run in done.values()}
    reported = {question: run["answer"] for question, run in done.items()}
    afterwards = {question: kept[run["id"]]["answer"] for question, run in done.items()}
    for question, run in done.items():
        if kept[run["id"]]["state"] != "done":
            chaos.tally.differences.append(f"serve: {question} was done and is not any more")
    return reported, afterwards
