"""The stream of a run's events, as viewers get it.

Viewers come in crowds: the tabs that reconnect after a restart do so within milliseconds. All of
them are answered by one loop, so what counts is the work until the first event of the last one:

- :class:`EventStreams` answers ordinary requests for events ahead of routing, validation and the
  layers around them, which cost more than the first event itself;
- :class:`EventStream` sends the first event at once, and goes on only when everybody else who is
  waiting has had theirs.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any
from urllib.parse import parse_qsl

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from longtake.server import events
from longtake.server.journal import RunRecord
from longtake.server.run import Run
from longtake.server.state import State

_ADDRESS = re.compile(r"/api/v1/runs/([^/]+)/events")
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class EventStream(Response):
    """A run's events, from the trace while it grows, until the run ends or the viewer leaves."""

    media_type = "text/event-stream"

    def __init__(
        self, state: State, record: RunRecord, *, brief: bool = False, after: int = 0
    ) -> None:
        self.status_code, self.background = 200, None
        self.init_headers(_HEADERS)
        self._state, self._record, self._brief, self._after = state, record, brief, after
        self._live = state.pool.get(record.id)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """Send the first event, then the others in turn with other viewers."""
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(start)
        status = self._status()
        # what was asked does not change, and what it carries may be long: only the first has it
        ask = self._record.ask.model_dump(mode="json")
        await _send_piece(send, events.sse("state", _json({**status, "ask": ask})))
        sending = asyncio.ensure_future(self._send_rest(send, status))
        leaving = asyncio.ensure_future(_left(receive))
        try:
            await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            leaving.cancel()
            # done unless the viewer left; waited for, so that the trace is closed
            sending.cancel()
            await asyncio.wait((sending, leaving))
        if not sending.cancelled():
            sending.result()

    async def _send_rest(self, send: Send, status: dict[str, Any]) -> None:
        async with aclosing(self._pieces(status)) as pieces:
            async for piece in pieces:
                await _send_piece(send, piece)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _pieces(self, last: dict[str, Any]) -> AsyncGenerator[bytes, None]:
        async with aclosing(self._batches()) as batches:
            async for batch in batches:
                pieces = []
                for line in batch:
                    data = events.brief(line) if self._brief else line.data
                    pieces.append(events.sse(line.kind, data, line.id))
                now = self._status()
                if now != last:
                    pieces.append(events.sse("state", _json(now)))
                # a comment, so that neither end takes the connection for dead
                yield b"".join(pieces) or b": \n\n"
                last = now
        final = self._state.journal.read(self._record.id) or self._record
        yield events.sse("end", final.model_dump_json(exclude={"ask"}).encode())

    def _batches(self) -> AsyncGenerator[list[events.Line], None]:
        if self._live is not None:
            return self._live.events(self._after)
        return events.follow(self._state.journal.trace(self._record.id), after=self._after)

    def _status(self) -> dict[str, Any]:
        live = self._live
        if live is None:
            return self._record.model_dump(mode="json", exclude={"ask"})
        status = live.record.model_dump(mode="json", exclude={"ask"})
        return {**status, "position": live.position, "progress": dict(live.progress)}


async def _send_piece(send: Send, piece: bytes) -> None:
    await send({"type": "http.response.body", "body": piece, "more_body": True})


async def _left(receive: Receive) -> None:
    """Return when the viewer has disconnected."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def resumed(after: int, last_event_id: str) -> int:
    """The id after which a stream begins: ``after``, or ``Last-Event-ID`` if that is later."""
    return max(after, int(last_event_id)) if last_event_id.isdigit() else after


class EventStreams:
    """ASGI middleware that answers requests for events; all others go on to the application.

    So do those for runs that do not exist or with parameters that make no sense: the route of the
    same address refuses them, and describes them in the OpenAPI document.
    """

    def __init__(self, app: ASGIApp, state: State) -> None:
        self._app, self._state = app, state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request for events, or pass it on."""
        stream = self._stream(scope) if scope["type"] == "http" else None
        await (stream or self._app)(scope, receive, send)

    def _stream(self, scope: Scope) -> EventStream | None:
        address = _ADDRESS.fullmatch(scope["path"])
        if address is None or scope["method"] != "GET":
            return None
        run: Run | None = self._state.pool.get(address[1])
        record = run.record if run is not None else self._state.journal.read(address[1])
        wishes = _wishes(dict(parse_qsl(scope["query_string"].decode("latin-1"))))
        if record is None or wishes is None:
            return None
        brief, after = wishes
        after = resumed(after, Headers(scope=scope).get("last-event-id", ""))
        return EventStream(self._state, record, brief=brief, after=after)


def _wishes(query: Mapping[str, str]) -> tuple[bool, int] | None:
    """``brief`` and ``after`` as the page sends them; ``None`` if they need to be validated."""
    brief, after = query.get("brief", "0"), query.get("after", "0")
    if not query.keys() <= {"brief", "after"} or brief not in ("0", "1"):
        return None
    return (brief == "1", int(after)) if after.isdecimal() and after.isascii() else None
