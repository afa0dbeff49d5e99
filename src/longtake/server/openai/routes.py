"""``/v1/models`` and ``/v1/chat/completions``."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

from fastapi import APIRouter, Request
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response, StreamingResponse

from longtake import registry
from longtake.errors import LongtakeError
from longtake.server.events import TraceReader
from longtake.server.journal import Ask
from longtake.server.openai import replies
from longtake.server.openai.replies import Head
from longtake.server.openai.requests import (
    PREFIX,
    BadRequest,
    FilmRequest,
    read_model,
    read_request,
)
from longtake.server.openai.sent import place
from longtake.server.run import Run
from longtake.server.state import Shared, State
from longtake.session.conversation import CARRIED
from longtake.stopping import Cancelled
from longtake.types import Result

router = APIRouter(tags=["openai"])

BUDGET = "x-longtake-budget"
"""Header with limits, as in ``calls=20, cost=0.5``."""
GRACE = 20.0
"""Seconds for which a run goes on after its client has gone: SDKs retry after their timeout, and
the retry joins the run instead of paying twice."""
PING = 5.0
"""Seconds of silence after which a stream sends a comment."""
# errors would only be repeated; a full queue is worth another try
FINAL = {"x-should-retry": "false"}
STARTED = int(time.time())
_LEFT: dict[tuple[int, Ask], Run] = {}
"""Runs whose clients have gone and may come back, by pool and question."""


@dataclass(frozen=True)
class AskedRequest:
    """A request whose run is under way."""

    request: FilmRequest
    run: Run
    head: Head


@router.get("/models")
def models() -> dict[str, object]:
    """Every method as a model."""
    names = [PREFIX + name for name in registry.methods.names()]
    return {"object": "list", "data": [replies.describe_model(name, STARTED) for name in names]}


@router.get("/models/{name:path}")
def model(name: str) -> Response:
    """One model."""
    try:
        read_model(name, registry.methods.names())
    except LongtakeError as error:
        return _refused(error)
    return JSONResponse(replies.describe_model(name, STARTED))


@router.post("/chat/completions")
async def complete(request: Request, state: Shared) -> Response:
    """Answer a question about a film."""
    body = await request.body()
    header, base = request.headers.get(BUDGET, ""), str(request.base_url)
    try:
        # decoding base64, hashing and opening a film take time that the loop does not have
        question = await run_in_threadpool(_start, state, body, header, base)
    except (LongtakeError, ValidationError) as error:
        return _refused(error)
    if question.request.stream:
        return StreamingResponse(
            _stream(question),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )
    return await _whole(question, request, state)


def _start(state: State, body: bytes, header: str, base: str) -> AskedRequest:
    try:
        data = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"the body is not JSON ({error})") from error
    wanted = read_request(data, registry.methods.names(), header)
    film = place(state, wanted.footage)
    ask = Ask(
        film=film,
        question=wanted.asked.text,
        options=wanted.asked.options,
        method=wanted.method,
        models=wanted.models,
        budget=wanted.budget,
        seed=wanted.seed,
        fresh=wanted.fresh,
        carried=wanted.carried[-CARRIED:],
        # a method that never searches needs no index
        index_first=False,
    )
    run = _LEFT.get((id(state.pool), ask))
    # one under way is joined by the pool, which counts who waits for it
    if run is None or not run.ended:
        run = state.pool.start(ask)
    head = Head(run.id, wanted.model, int(run.record.created), film, base)
    return AskedRequest(wanted, run, head)


async def _whole(question: AskedRequest, request: Request, state: State) -> Response:
    run = question.run
    ended = asyncio.ensure_future(run.finished())
    gone = asyncio.ensure_future(_disconnected(request))
    await asyncio.wait([ended, gone], return_when=asyncio.FIRST_COMPLETED)
    gone.cancel()
    if not ended.done():
        ended.cancel()
        key = (id(state.pool), run.record.ask)
        _LEFT[key] = run
        asyncio.get_running_loop().call_later(GRACE, _leave, key, run)
        return Response(status_code=499)
    try:
        result = await _result(run)
    except Exception as error:  # noqa: BLE001 - whatever ended the run is told in the reply
        return _refused(error)
    steps = await run_in_threadpool(_steps, state, run)
    return JSONResponse(replies.completion(question.head, question.request, result, steps))


def _leave(key: tuple[int, Ask], run: Run) -> None:
    """Give up a run whose client has not come back."""
    _LEFT.pop(key, None)
    run.leave()


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _steps(state: State, run: Run) -> str:
    """The steps of a run that has ended."""
    reader, lines = TraceReader(state.journal.trace(run.id)), []
    try:
        while True:
            lines += [replies.describe(line.data) for line in reader.lines()]
            if not reader.more:
                return "".join(lines)
    finally:
        reader.close()


async def _stream(question: AskedRequest) -> AsyncIterator[bytes]:
    """The reply in pieces; a client that leaves ends the run, unless others wait for it."""
    run, head = question.run, question.head
    over = False
    try:
        yield replies.sse(replies.chunk(head, {"role": "assistant", "content": ""}))
        said = time.monotonic()
        async for batch in run.events():
            texts = [replies.describe(line.data) for line in batch]
            pieces = [replies.sse(replies.thought(head, text)) for text in texts if text]
            if pieces:
                yield b"".join(pieces)
            elif time.monotonic() - said >= PING:
                yield b": ping\n\n"
            else:
                continue
            said = time.monotonic()
        await run.finished()
        over = True
        for piece in await _ending(question):
            yield replies.sse(piece)
        yield b"data: [DONE]\n\n"
    finally:
        if not over:
            run.leave()


async def _ending(question: AskedRequest) -> list[dict[str, object]]:
    try:
        result = await _result(question.run)
        return replies.last_chunks(question.head, question.request, result)
    except Exception as error:  # noqa: BLE001 - the stream has begun: its end tells the error
        return [replies.error_of(error)[1]]


async def _result(run: Run) -> Result:
    # the run has ended, but its thread may not have said so yet
    result = await run_in_threadpool(run.result, 5.0)
    if result.answer.status == "cancelled":
        raise Cancelled("the run was cancelled")
    return result


def _refused(error: Exception) -> JSONResponse:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        error = BadRequest(f"{first['loc'][0]}: {first['msg']}", key="messages")
    status, body = replies.error_of(error)
    headers = {"Retry-After": "2"} if status == 503 else FINAL
    return JSONResponse(body, status, headers=headers)
