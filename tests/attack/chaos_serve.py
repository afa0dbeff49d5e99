"""The server's part of the chaos: questions go on being asked while it is killed and started again.

What it reported as done must stay done, with the same answer, and the answers must equal those of a
server that nobody disturbs.
"""

from __future__ import annotations

import json
import signal
import subprocess
import threading
import time
from contextlib import contextmanager, suppress
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
        headers = {"Authorization": f"Bearer {token}"}
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


@contextmanager
def served(chaos: Chaos, line: list[str], cache: Path, *, disturbed: bool) -> Iterator[Client]:
    """A server that goes wrong after a while if it is to be disturbed."""
    kind, more = chaos.trouble() if disturbed else ("nothing", {})
    # commands print nothing that matters here, but a server prints its address
    process = chaos.start(line, cache, stdout=subprocess.PIPE, **more)
    fuse = threading.Thread(target=chaos.strike, args=(process, kind), daemon=True)
    fuse.start()
    try:
        yield Client(process, cache)
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
