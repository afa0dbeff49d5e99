"""Sends runs to an OpenTelemetry collector: OTLP over HTTP, as JSON.

A run is a trace; steps, model calls and tool calls are its spans. What is asked, shown and answered
is left out unless ``content`` is set. Spans are sent by a thread in batches: a slow or missing
collector never delays a run, and what cannot be sent is dropped.
"""

from __future__ import annotations

import queue
import secrets
import threading
import time
from collections.abc import Callable
from typing import Any

import httpx

from longtake import __version__
from longtake.events import (
    Answered,
    ChatCalled,
    Event,
    Failed,
    RunStarted,
    StepBegan,
    StepEnded,
    ToolCalled,
)
from longtake.sinks import genai

BATCH = 256
"""Spans sent at once."""
PATIENCE = 1.0
"""Seconds for which spans wait for others."""
MOST_WAITING = 10_000
"""Spans that wait; more are dropped."""


class OtlpSink:
    """Turns the events of one run into spans."""

    def __init__(self, sender: Sender, *, content: bool = False) -> None:
        self._sender, self._content = sender, content
        self._trace = secrets.token_hex(16)
        self._began = time.time()
        self._spans: dict[int | None, str] = {None: secrets.token_hex(8)}
        self._open: dict[int, StepBegan] = {}
        self._run: dict[str, Any] = {}
        self._name = "run"
        self._failed = ""

    def handle(self, event: Event) -> None:
        """Send a span for what has ended."""
        match event:
            case RunStarted():
                self._name = f"invoke_agent {event.method}"
                self._run = {genai.OPERATION: "invoke_agent", genai.AGENT: event.method}
                if self._content:
                    self._run[genai.QUESTION] = event.question
            case StepBegan():
                self._spans[event.id] = secrets.token_hex(8)
                self._open[event.id] = event
            case StepEnded():
                began = self._open.pop(event.step, None)
                if began is not None:
                    self._send(began.name, began, began.time, event.time, {}, event.error)
            case ChatCalled():
                took = event.usage.seconds
                name, facts = f"chat {event.model}", self._call(event)
                self._send(name, event, event.time - took, event.time, facts, event.error)
            case ToolCalled():
                facts = {genai.OPERATION: "execute_tool", genai.TOOL: event.name}
                name = f"execute_tool {event.name}"
                self._send(name, event, event.time, event.time, facts, event.error)
            case Answered():
                answer = event.answer
                self._run |= {
                    genai.STATUS: answer.status,
                    genai.CONFIDENCE: answer.confidence,
                    genai.CITATIONS: len(answer.evidence),
                    genai.COST: event.usage.cost,
                }
            case Failed():
                self._failed = event.error

    def picture(self, digest: str, jpeg: Callable[[], bytes]) -> None:
        """Ignore the picture."""

    def close(self) -> None:
        """Send the span of the whole run."""
        self._sender.send(
            self._span(self._name, self._spans[None], "", 0.0, time.time() - self._began)
            | _details(self._run, self._failed)
        )

    def _call(self, event: ChatCalled) -> dict[str, Any]:
        facts: dict[str, Any] = {
            genai.OPERATION: "chat",
            genai.MODEL: event.model,
            genai.TOKENS_IN: event.usage.tokens_in,
            genai.TOKENS_OUT: event.usage.tokens_out,
            genai.TOKENS_CACHED: event.usage.tokens_cached,
            genai.FINISH: event.finish,
            genai.FRAMES: event.usage.frames,
            genai.PROMPT: event.prompt,
            genai.CACHED: event.cached,
            genai.COST: event.usage.cost,
        }
        if self._content:
            facts[genai.REPLY] = event.reply
        return facts

    def _send(
        self,
        name: str,
        event: StepBegan | ChatCalled | ToolCalled,
        start: float,
        end: float,
        facts: dict[str, Any],
        error: str | None,
    ) -> None:
        own = self._spans.get(event.id) or secrets.token_hex(8)
        parent = self._spans.get(event.parent, self._spans[None])
        span = self._span(name, own, parent, start, end)
        # an error's text may quote what was asked
        self._sender.send(span | _details(facts, "error" if error else ""))

    def _span(self, name: str, own: str, parent: str, start: float, end: float) -> dict[str, Any]:
        return {
            "traceId": self._trace,
            "spanId": own,
            "parentSpanId": parent,
            "name": name,
            "kind": 1,
            "startTimeUnixNano": str(round((self._began + start) * 1e9)),
            "endTimeUnixNano": str(round((self._began + end) * 1e9)),
        }


def _details(facts: dict[str, Any], error: str) -> dict[str, Any]:
    if error:
        facts = {**facts, genai.ERROR: error}
    attributes = []
    for name, value in facts.items():
        if value is not None:
            attributes.append({"key": name, "value": _value(value)})
    # 2 is an error in OTLP, 0 is unset
    return {"attributes": attributes, "status": {"code": 2 if error else 0}}


def _value(value: object) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}  # 64 bits do not fit into a number of JSON
    if isinstance(value, float):
        return {"doubleValue": value}
    return {"stringValue": str(value)}


class Sender:
    """Sends spans to a collector, from a thread of its own."""

    def __init__(self, endpoint: str) -> None:
        self._url = endpoint.rstrip("/") + "/v1/traces"
        self._waiting: queue.Queue[dict[str, Any]] = queue.Queue(MOST_WAITING)
        self.dropped = 0
        """Spans that could not be sent."""
        threading.Thread(target=self._work, name="otlp", daemon=True).start()

    def send(self, span: dict[str, Any]) -> None:
        """Queue a span; never waits."""
        try:
            self._waiting.put_nowait(span)
        except queue.Full:
            self.dropped += 1

    def _work(self) -> None:
        with httpx.Client(timeout=10.0) as client:
            while True:
                batch = self._batch()
                try:
                    client.post(self._url, json=_request(batch)).raise_for_status()
                except httpx.HTTPError:
                    self.dropped += len(batch)

    def _batch(self) -> list[dict[str, Any]]:
        batch = [self._waiting.get()]
        deadline = time.monotonic() + PATIENCE
        while len(batch) < BATCH:
            try:
                left = max(0.0, deadline - time.monotonic())
                batch.append(self._waiting.get(timeout=left))
            except queue.Empty:
                break
        return batch


def _request(spans: list[dict[str, Any]]) -> dict[str, Any]:
    service = [{"key": "service.name", "value": {"stringValue": "longtake"}}]
    scope = {"name": "longtake", "version": __version__}
    scoped = [{"scope": scope, "spans": spans}]
    return {"resourceSpans": [{"resource": {"attributes": service}, "scopeSpans": scoped}]}
