"""Replies in OpenAI's protocol.

``content`` is the answer alone. The steps of the run are ``reasoning`` (for other clients,
``reasoning_content``), its evidence are citations with a link to the moment, and everything else is
in ``longtake``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from longtake._util.cancellation import Cancelled
from longtake._util.timecode import clock
from longtake.errors import (
    BudgetSpent,
    ConfigError,
    LongtakeError,
    MediaError,
    MissingExtra,
    ModelError,
)
from longtake.runner.results import OUTCOME, result_data
from longtake.server.films import NoSuchFilm, public_message
from longtake.server.journal import JournalUnwritable
from longtake.server.openai.requests import FilmRequest, SentFrames
from longtake.server.runs import QueueFull
from longtake.types import GIVEN, Answer, Result, Usage

STATUS: tuple[tuple[type[Exception], int, str], ...] = (
    (NoSuchFilm, 404, "film_not_found"),
    (QueueFull, 503, "queue_full"),
    (JournalUnwritable, 503, "unavailable"),
    (BudgetSpent, 402, "budget_spent"),
    (Cancelled, 499, "cancelled"),
    (ConfigError, 400, "invalid_request"),
    (MediaError, 400, "invalid_film"),
    (MissingExtra, 501, "missing_extra"),
    (ModelError, 502, "model_failed"),
)
"""HTTP status and code of each error; the first that fits counts."""


@dataclass(frozen=True)
class Head:
    """What all parts of a reply have in common."""

    run: str
    model: str
    created: int
    film: str = ""
    base: str = ""
    """Address of the server, for links."""

    def of(self, kind: str) -> dict[str, Any]:
        """The first fields of an object of that kind."""
        identity = f"chatcmpl-{self.run}"
        return {"id": identity, "object": kind, "created": self.created, "model": self.model}


def completion(head: Head, request: FilmRequest, result: Result, steps: str) -> dict[str, Any]:
    """The whole reply."""
    message = {"role": "assistant", **_answer(head, request, result.answer)}
    if steps:
        # clients read one name or the other
        message |= {"reasoning": steps, "reasoning_content": steps}
    return whole(head, message, result.usage, longtake=extras(head, request, result))


def whole(
    head: Head, message: Mapping[str, Any], usage: Usage, finish: str = "stop", **more: Any
) -> dict[str, Any]:
    """A message as a reply in one piece."""
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
    return {**head.of("chat.completion"), "choices": [choice], "usage": usage_of(usage), **more}


def chunk(
    head: Head, delta: Mapping[str, Any], finish: str | None = None, **more: Any
) -> dict[str, Any]:
    """One piece of a stream."""
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return {**head.of("chat.completion.chunk"), "choices": [choice], **more}


def thought(head: Head, text: str) -> dict[str, Any]:
    """A step of the run as a piece of a stream."""
    return chunk(head, {"reasoning": text, "reasoning_content": text})


def last_chunks(head: Head, request: FilmRequest, result: Result) -> list[dict[str, Any]]:
    """The answer, the end, and the usage if it was asked for."""
    answer = _answer(head, request, result.answer)
    pieces = [chunk(head, answer), chunk(head, {}, "stop", longtake=extras(head, request, result))]
    if request.usage_chunk:
        pieces.append(usage_chunk(head, result.usage))
    return pieces


def usage_chunk(head: Head, usage: Usage) -> dict[str, Any]:
    """The last piece of a stream, if its usage was asked for."""
    return {**head.of("chat.completion.chunk"), "choices": [], "usage": usage_of(usage)}


def sse(piece: Mapping[str, Any]) -> bytes:
    """A piece of a stream as a Server-Sent Event."""
    return f"data: {json.dumps(piece, ensure_ascii=False)}\n\n".encode()


def describe_model(name: str, created: int) -> dict[str, Any]:
    """A model as ``/v1/models`` lists it."""
    return {"id": name, "object": "model", "created": created, "owned_by": "longtake"}


def _answer(head: Head, request: FilmRequest, answer: Answer) -> dict[str, Any]:
    content = request.asked.reply_text(answer.choice, answer.text)
    fields: dict[str, Any] = {"content": content, "annotations": citations(head, answer, content)}
    # the field in which clients look for the reason of an empty answer
    if not content or answer.status not in (*GIVEN, "budget_spent"):
        fields["refusal"] = answer.reason or f"no answer ({answer.status})"
    return fields


def citations(head: Head, answer: Answer, content: str) -> list[dict[str, Any]]:
    """The evidence as links to its moments."""
    cited = []
    for evidence in answer.evidence:
        start = evidence.segment.start
        citation = {
            "url": f"{head.base}film/{head.film}#t={start:g}",
            "title": f"{clock(start)} {evidence.source}",
            # the protocol cites a part of the text; our evidence supports all of it
            "start_index": 0,
            "end_index": len(content),
        }
        cited.append({"type": "url_citation", "url_citation": citation})
    return cited


def usage_of(usage: Usage) -> dict[str, Any]:
    """The tokens of all calls of the method."""
    return {
        "prompt_tokens": usage.tokens_in,
        "completion_tokens": usage.tokens_out,
        "total_tokens": usage.tokens_in + usage.tokens_out,
        "prompt_tokens_details": {"cached_tokens": usage.tokens_cached},
    }


def extras(head: Head, request: FilmRequest, result: Result) -> dict[str, Any]:
    """What the protocol has no fields for."""
    data = result_data(result)
    understood = {"form": request.asked.form, "question": request.asked.text}
    return {
        "run": head.run,
        "film": head.film,
        "footage": _footage(request),
        "asked": {**understood, "options": list(request.asked.options)},
        **{name: data[name] for name in ("method", "models", *OUTCOME, "usage")},
        "evidence": [asdict(evidence) for evidence in result.answer.evidence],
        "cost": result.usage.cost,
    }


def _footage(request: FilmRequest) -> str:
    """What the answer is based on: a film, or pictures with or without times."""
    if not isinstance(request.footage, SentFrames):
        return "film"
    count = len(request.footage.urls)
    if request.footage.times is None:
        return f"{count} pictures without times; times are their numbers, from 0"
    return f"{count} pictures with times"


def status_of(error: Exception) -> tuple[int, str]:
    """HTTP status and code of an error."""
    for kind, status, code in STATUS:
        if isinstance(error, kind):
            return status, code
    return (400, "failed") if isinstance(error, LongtakeError) else (500, "internal")


def error_of(error: Exception) -> tuple[int, dict[str, Any]]:
    """Status and body of an error in OpenAI's shape."""
    status, code = status_of(error)
    # the text of a bug may hold paths or data, and is in the log
    message = public_message(error) if isinstance(error, LongtakeError) else "internal error"
    # the status with which OpenAI's server responds
    if isinstance(error, ConfigError) and message.startswith("unknown model"):
        status, code = 404, "model_not_found"
    return status, error_body(message, status, code, getattr(error, "key", None))


def error_body(message: str, status: int, code: str, param: str | None = None) -> dict[str, Any]:
    """An error in OpenAI's shape."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def describe(data: bytes) -> str:
    """An event of the trace in one line; empty for events that are not shown."""
    event = json.loads(data)
    kind = event["kind"]
    if kind == "step_began":
        details = ", ".join(f"{name} {value}" for name, value in event["data"].items())
        return f"{event['name']}{f' ({details})' if details else ''}\n"
    if kind == "frames_seen":
        times = ", ".join(clock(frame["time"]) for frame in event["frames"][:8])
        more = ", …" if len(event["frames"]) > 8 else ""
        return f"looked at {len(event['frames'])} frames: {times}{more}\n"
    if kind == "tool_called":
        return f"{event['name']}: {_short(event['result'] or event['error'])}\n"
    if kind == "chat_called":
        text = event["reply"] or event["error"]
        return f"{event['prompt'] or event['model']}: {_short(text)}\n" if text else ""
    # drafts are steps, because ``content`` holds only answers that were checked
    if kind == "drafted":
        return f"\ndraft: {event['text']}" if event["anew"] and event["text"] else event["text"]
    if kind == "noted":
        return f"note: {event['label']}\n"
    return ""


def _short(text: Any) -> str:
    plain = " ".join(str(text or "").split())
    # a step is one line in the log of a client
    return plain if len(plain) <= 300 else plain[:300] + "…"
