"""The routes of OpenAI's protocol: every method is a model that answers questions about films.

A question names a film of the catalog, or contains a film or pictures. Those are stored in
``<data>/sent`` under the hash of their bytes, so that all questions about them use one index. The
oldest are removed when they take too much space.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import io
import json
import re
import shutil
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from fastapi import APIRouter, Request
from PIL import Image
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response, StreamingResponse

from longtake import registry
from longtake._util import write_atomically
from longtake._util.cancellation import Cancelled
from longtake.errors import LongtakeError, MediaError
from longtake.index.store import folder_bytes, private_folder
from longtake.runner.session import CARRIED
from longtake.server.events import disconnected, read_trace
from longtake.server.films import SENT
from longtake.server.journal import Ask
from longtake.server.openai import replies
from longtake.server.openai.replies import Head
from longtake.server.openai.requests import (
    PREFIX,
    BadRequest,
    FilmRequest,
    Footage,
    NamedFilm,
    SentFrames,
    SentVideo,
    read_json,
    read_model,
    read_request,
)
from longtake.server.runs import ServerRun
from longtake.server.state import ServerState, StateParam
from longtake.types import Result
from longtake.video.pictures import open_picture
from longtake.video.video import probe

MAX_KEPT = 8_000_000_000
"""Bytes of sent films that are kept."""
MAX_PIXELS = 16_000_000
"""Pixels of a sent picture."""
_BASE64 = re.compile(r"data:(\w+/[\w.+-]+);base64,", re.ASCII)
_storing = threading.Lock()
"""Held while a film or pictures are stored: clients may send the same ones at the same time."""
SUFFIXES = {"video/webm": ".webm", "video/x-matroska": ".mkv", "video/quicktime": ".mov"}


def place(state: ServerState, footage: Footage) -> str:
    """The id of what a question is about; raises if it is missing or not a film."""
    if isinstance(footage, NamedFilm):
        return state.catalog.find(footage.name)
    if isinstance(footage, SentFrames):
        return _frames(state, footage)
    return _video(state, footage)


def _video(state: ServerState, video: SentVideo) -> str:
    scheme = video.url[:64].partition(":")[0].lower()
    if scheme == "file":
        try:
            parts = urlsplit(video.url)
        except ValueError as error:
            raise BadRequest(f"video_url: not a URL ({error})") from error
        if parts.netloc not in ("", "localhost"):
            raise BadRequest("video_url: a file of another machine")
        return state.catalog.add(Path(unquote(parts.path)))
    if scheme in ("http", "https"):
        return state.catalog.add(state.arrivals.download(video.url))
    if scheme != "data":
        raise BadRequest("video_url: must be file:, http(s): or data:video/…;base64,…")
    kind, data = read_data_url(video.url, "video")
    folder = _folder(state)
    # the same bytes are the same film, whoever sends them
    film = f"{SENT}{hashlib.blake2b(data, digest_size=16).hexdigest()}"
    path = folder / f"{film}{SUFFIXES.get(kind, '.mp4')}"
    with _storing:
        if not path.exists():
            draft = path.with_name(f".{path.name}")
            try:
                draft.write_bytes(data)
                probe(draft, state.options.settings.media)
                draft.rename(path)
            except MediaError as error:
                # without the name of our file, which the client does not know
                raise BadRequest(f"video_url: {error.detail}") from error
            finally:
                draft.unlink(missing_ok=True)
            _evict(folder, keep=path)
    return film


def _frames(state: ServerState, sent: SentFrames) -> str:
    pictures = []
    for url in sent.urls:
        _, data = read_data_url(url, "image")
        with opened_picture(data) as picture:
            picture.verify()
        pictures.append(data)
    # without times, pictures are one second apart; ``footage`` in the reply says so
    times = sent.times or tuple(float(number) for number in range(len(pictures)))
    digest = hashlib.blake2b(json.dumps(times).encode(), digest_size=16)
    for data in pictures:
        digest.update(hashlib.blake2b(data).digest())
    film = f"{SENT}{digest.hexdigest()}"
    folder = _folder(state) / film
    with _storing:
        if not (folder / "times.json").exists():
            private_folder(folder)
            for number, data in enumerate(pictures):
                (folder / f"{number:05d}").write_bytes(data)
            # written last: a folder with this file is complete
            write_atomically(folder / "times.json", json.dumps(times).encode())
            _evict(folder.parent, keep=folder)
    return film


def _folder(state: ServerState) -> Path:
    return private_folder(state.options.data / "sent")


def read_data_url(url: str, kind: str) -> tuple[str, bytes]:
    """The media type and the bytes of a data URL of an ``image`` or a ``video``."""
    head = _BASE64.match(url)
    if head is None or not head[1].startswith(f"{kind}/"):
        raise BadRequest(f"{kind}_url: only data:{kind}/…;base64,… is supported")
    try:
        return head[1], base64.b64decode(url[head.end() :], validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadRequest(f"{kind}_url: not base64") from error


@contextmanager
def opened_picture(data: bytes) -> Iterator[Image.Image]:
    """A sent picture, whose size is checked before it is decoded."""
    try:
        with open_picture(io.BytesIO(data)) as picture:
            if picture.width * picture.height > MAX_PIXELS:
                raise BadRequest(f"image_url: {picture.width}×{picture.height} is too large")
            yield picture
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise BadRequest("image_url: not a picture") from error


def _evict(folder: Path, keep: Path) -> None:
    """Remove the oldest of what was sent until the rest is below the limit."""
    # newest first: whatever exceeds the limit is old
    entries = sorted(folder.iterdir(), key=lambda entry: entry.stat().st_mtime, reverse=True)
    total = 0
    for entry in entries:
        total += folder_bytes(entry) if entry.is_dir() else entry.stat().st_size
        if total > MAX_KEPT and entry != keep:
            if entry.is_dir():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)


router = APIRouter(tags=["openai"])

GRACE = 20.0
"""Seconds for which a run goes on after its client has gone: SDKs retry after their timeout, and
the retry joins the run instead of paying twice."""
# a retry would fail again, except where the queue was full
FINAL = {"x-should-retry": "false"}
STARTED = int(time.time())
_LEFT: dict[tuple[int, Ask], ServerRun] = {}
"""Runs whose clients have gone and may come back, by pool and question."""


@dataclass(frozen=True)
class AskedRequest:
    """A request whose run is under way."""

    request: FilmRequest
    run: ServerRun
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
async def complete(request: Request, state: StateParam) -> Response:
    """Answer a question about a film."""
    body = await request.body()
    try:
        # decoding base64, hashing and opening a film would block the event loop
        question = await run_in_threadpool(_start, state, body, str(request.base_url))
    except (LongtakeError, ValidationError) as error:
        return _refused(error)
    if question.request.stream:
        return StreamingResponse(
            _stream(question),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )
    return await _whole(question, request, state)


def _start(state: ServerState, body: bytes, base: str) -> AskedRequest:
    wanted = read_request(read_json(body), registry.methods.names())
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
    # the client may be retrying, and its run may have ended meanwhile
    run = _LEFT.get((id(state.pool), ask))
    # the pool joins runs under way, and counts who waits for them
    if run is None or not run.ended:
        run = state.pool.start(ask)
    head = Head(run.id, wanted.model, int(run.record.created), film, base)
    return AskedRequest(wanted, run, head)


async def _whole(question: AskedRequest, request: Request, state: ServerState) -> Response:
    run = question.run
    ended = asyncio.ensure_future(run.finished())
    gone = asyncio.ensure_future(disconnected(request.receive))
    await asyncio.wait([ended, gone], return_when=asyncio.FIRST_COMPLETED)
    gone.cancel()
    # the client has disconnected, but may retry
    if not ended.done():
        ended.cancel()
        key = (id(state.pool), run.record.ask)
        _LEFT[key] = run
        asyncio.get_running_loop().call_later(GRACE, _leave, key, run)
        return Response(status_code=499)
    try:
        result = await _result(run)
    except Exception as error:  # noqa: BLE001 - any error of the run is reported in the reply
        return _refused(error)
    # reading a long trace would block the event loop
    steps = await run_in_threadpool(_steps, state, run)
    return JSONResponse(replies.completion(question.head, question.request, result, steps))


def _leave(key: tuple[int, Ask], run: ServerRun) -> None:
    """Give up a run whose client has not retried."""
    _LEFT.pop(key, None)
    run.leave()


def _steps(state: ServerState, run: ServerRun) -> str:
    """The steps of a run that has ended."""
    lines = read_trace(state.journal.trace(run.id))
    return "".join(replies.describe(line.data) for line in lines if line.kind != "drafted")


async def _stream(question: AskedRequest) -> AsyncIterator[bytes]:
    """The reply in pieces; a client that leaves ends the run, unless others wait for it."""
    run, head = question.run, question.head
    over = drafting = False
    try:
        yield replies.sse(replies.chunk(head, {"role": "assistant", "content": ""}))
        last_sent = time.monotonic()
        async for batch in run.events():
            sent = []
            for line in batch:
                text = replies.describe(line.data)
                if text:
                    # a draft is one line, however many pieces it comes in
                    ended = "\n" if drafting and line.kind != "drafted" else ""
                    sent.append(replies.sse(replies.thought(head, ended + text)))
                    drafting = line.kind == "drafted"
            if sent:
                yield b"".join(sent)
            # proxies close a connection that stays silent
            elif time.monotonic() - last_sent >= 5.0:
                yield b": ping\n\n"
            else:
                continue
            last_sent = time.monotonic()
        await run.finished()
        over = True
        try:
            pieces = replies.last_chunks(head, question.request, await _result(run))
        except Exception as error:  # noqa: BLE001 - the stream has begun, so the error is its last piece
            pieces = [replies.error_of(error)[1]]
        for piece in pieces:
            yield replies.sse(piece)
        yield b"data: [DONE]\n\n"
    finally:
        # the client left in the middle of the stream
        if not over:
            run.leave()


async def _result(run: ServerRun) -> Result:
    # the run has ended, but its thread may not have released the result yet
    result = await run_in_threadpool(run.result, 5.0)
    if result.answer.status == "cancelled":
        raise Cancelled("the run was cancelled")
    return result


def _refused(error: Exception) -> JSONResponse:
    if isinstance(error, ValidationError):
        # only the first problem, as in OpenAI's errors
        first = error.errors()[0]
        error = BadRequest(f"{first['loc'][0]}: {first['msg']}", key="messages")
    status, body = replies.error_of(error)
    headers = {"Retry-After": "2"} if status == 503 else FINAL
    return JSONResponse(body, status, headers=headers)
