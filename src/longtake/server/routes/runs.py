"""Runs: start, compare, list, cancel, export, and watch their events.

The events are streamed. After a restart, many tabs reconnect within milliseconds, and one event
loop answers all of them: each gets its first event before any gets its second.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, closing
from itertools import islice
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Header, HTTPException, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import FileResponse, Response, StreamingResponse

from longtake import registry
from longtake.algorithms.intervals import union
from longtake.runner.rendering import RenderedAnswer, as_html, as_markdown, as_srt, shown_stretch
from longtake.server import events
from longtake.server.films import NoSuchFilm, frame_at, jpeg
from longtake.server.journal import Ask, RunRecord, new_id
from longtake.server.runs import ServerRun
from longtake.server.state import ServerState, StateParam
from longtake.tracing import trace
from longtake.types import Segment
from longtake.video.clip import LONGEST_CLIP
from longtake.video.video import Video

_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class EventStream(StreamingResponse):
    """A run's events, from the trace while it grows, until the run ends or the viewer leaves."""

    media_type = "text/event-stream"

    def __init__(
        self, state: ServerState, record: RunRecord, *, brief: bool = False, after: int = 0
    ) -> None:
        super().__init__(self._pieces(), headers=_HEADERS)
        self._state, self._record, self._brief, self._after = state, record, brief, after
        self._live = state.pool.get(record.id)

    async def _pieces(self) -> AsyncGenerator[bytes, None]:
        last = self._status()
        # only the first state has the question, which does not change and may carry a long text
        ask = self._record.ask.model_dump(mode="json")
        yield events.sse("state", _json({**last, "ask": ask}))
        # other viewers get their first event before this one gets the second
        await asyncio.sleep(0)
        async with aclosing(self._batches()) as batches:
            async for batch in batches:
                pieces = []
                for line in batch:
                    data = events.brief(line) if self._brief else line.data
                    pieces.append(events.sse(line.kind, data, line.id))
                now = self._status()
                if now != last:
                    pieces.append(events.sse("state", _json(now)))
                # otherwise a comment, which keeps the connection alive
                yield b"".join(pieces) or b": \n\n"
                last = now
        final = self._state.journal.read(self._record.id) or self._record
        yield events.sse("end", final.model_dump_json(exclude={"ask"}).encode())

    def _batches(self) -> AsyncGenerator[list[events.TraceLine], None]:
        if self._live is not None:
            return self._live.events(self._after)
        return events.follow(self._state.journal.trace(self._record.id), after=self._after)

    def _status(self) -> dict[str, Any]:
        live = self._live
        if live is None:
            return self._record.model_dump(mode="json", exclude={"ask"})
        status = live.record.model_dump(mode="json", exclude={"ask"})
        return {**status, "position": live.position, "progress": dict(live.progress)}


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def resumed(after: int, last_event_id: str) -> int:
    """The id after which a stream begins: ``after``, or ``Last-Event-ID`` if that is later."""
    number = read_number(last_event_id)
    return after if number is None else max(after, number)


def read_number(text: str) -> int | None:
    """A number in decimal digits, short enough to be one of ours; else ``None``."""
    return int(text) if re.fullmatch(r"[0-9]{1,18}", text) else None


router = APIRouter(tags=["runs"])

FOREVER = "private, max-age=31536000, immutable"
"""Cache-Control of files that are named by a hash of their content."""


class Comparison(BaseModel):
    """One question for several methods."""

    model_config = ConfigDict(extra="forbid")

    ask: Ask
    methods: tuple[str, ...] = Field(default=(), max_length=32)
    """Empty: every method."""


class RunHandle(BaseModel):
    """A run, and where it stands."""

    run: RunRecord
    position: int = 0
    """Place in the queue; 0 once it has begun."""
    progress: dict[str, float] = {}
    """Share done of each part of indexing."""


class RunHandles(BaseModel):
    """Several runs."""

    runs: list[RunHandle]
    group: str = ""


def handle(run: ServerRun) -> RunHandle:
    """What is known about a run that is under way."""
    return RunHandle(run=run.record, position=run.position, progress=dict(run.progress))


@router.post("/runs", status_code=202)
def start(ask: Ask, state: StateParam) -> RunHandle:
    """Ask a question; the run goes on whether or not anybody watches."""
    return handle(state.pool.start(ask))


@router.post("/compare", status_code=202)
def compare(comparison: Comparison, state: StateParam) -> RunHandles:
    """Ask several methods the same question; earlier replies are not reused."""
    group = new_id()
    names = comparison.methods or tuple(registry.methods.names())
    # with stored replies, the second method would look faster
    asks = [comparison.ask.model_copy(update={"method": name, "fresh": True}) for name in names]
    runs = state.pool.start_all(asks, group=group)
    return RunHandles(runs=[handle(run) for run in runs], group=group)


@router.post("/warm-up", status_code=204)
def warm_up(ask: Ask, state: StateParam) -> None:
    """Load a local model while a question is typed."""
    state.pool.check(ask)
    state.pool.warm_up(ask)


@router.get("/runs")
def newest(
    state: StateParam,
    film: str = "",
    group: str = "",
    kind: str = "",
    before: str = "",
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> RunHandles:
    """Runs, newest first."""
    chosen = state.journal.newest(film=film, group=group, kind=kind, before=before)
    records = islice(chosen, limit)
    return RunHandles(runs=[_handle(state, record) for record in records], group=group)


def _handle(state: ServerState, record: RunRecord) -> RunHandle:
    live = state.pool.get(record.id)
    return RunHandle(run=record) if live is None else handle(live)


@router.get("/runs/{run}")
def one(run: str, state: StateParam) -> RunHandle:
    """One run."""
    return _handle(state, state.record(run))


@router.post("/runs/{run}/cancel")
def cancel(run: str, state: StateParam) -> RunHandle:
    """End a run for everyone."""
    # cancelling a run that has ended changes nothing
    live = state.live(run)
    if live is not None:
        live.cancel()
    return _handle(state, state.record(run))


@router.delete("/runs/{run}", status_code=204)
def delete(run: str, state: StateParam) -> None:
    """Forget a run that has ended."""
    # its thread would write the record again
    if state.live(run) is not None:
        raise HTTPException(409, "the run is under way; cancel it first")
    state.journal.delete(run)


@router.get("/runs/{run}/events", response_class=EventStream, status_code=200)
async def watch(
    run: str,
    state: StateParam,
    brief: bool = False,
    after: int = 0,
    last_event_id: Annotated[str, Header()] = "",
) -> EventStream:
    """The events as Server-Sent Events, from the beginning or after ``Last-Event-ID``."""
    after = resumed(after, last_event_id)
    return EventStream(state, state.record(run), brief=brief, after=after)


@router.get("/runs/{run}/events/{event}")
def one_event(run: str, event: int, state: StateParam) -> Response:
    """One event in full: the messages that a model was sent, and its whole reply."""
    state.record(run)
    with closing(events.read_trace(state.journal.trace(run))) as lines:
        line = next((line for line in lines if line.id == event), None)
    if line is None:
        raise HTTPException(404, "no such event")
    return Response(line.data, media_type="application/json")


@router.get("/runs/{run}/trace")
def whole_trace(run: str, state: StateParam) -> StreamingResponse:
    """The trace with its pictures, as ``longtake ask --trace`` writes it."""
    record = state.record(run)
    name = f"{record.id}.jsonl"
    return StreamingResponse(
        _with_pictures(state, record.id),
        media_type="application/x-ndjson",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


def _with_pictures(state: ServerState, run: str) -> Iterator[bytes]:
    path = state.journal.trace(run)
    if not path.exists():
        return
    shown: dict[str, None] = {}
    with path.open("rb") as file:
        for data in file:
            yield data
            line = events.read_line(data.rstrip(b"\n"))
            if line is not None and line.kind == "frames_seen":
                shown |= dict.fromkeys(seen["digest"] for seen in json.loads(data)["frames"])
    for digest in shown:
        # pictures come last, as in a trace that the command line writes
        picture = state.journal.picture(digest)
        if picture is not None:
            yield trace.encode_picture(digest, picture.read_bytes())


def _answered(state: ServerState, run: str) -> RunRecord:
    record = state.record(run)
    if record.kind in ("index", "pull"):
        raise HTTPException(404, "only answers are exported")
    return record


@router.get("/runs/{run}/export.mp4")
async def export_reel(run: str, state: StateParam, request: Request) -> Response:
    """The citations of an answer, joined as one film."""
    record = await asyncio.to_thread(_answered, state, run)
    parts = await asyncio.to_thread(_reel, state, record)
    content = await state.encode(parts, request)
    return _attached(content, "video/mp4", f"reel-{record.id}.mp4")


@router.get("/runs/{run}/export.{ending}")
def export_answer(run: str, ending: str, state: StateParam, request: Request) -> Response:
    """An answer as a file.

    As self-contained HTML or Markdown with links to times; or only its citations, as subtitles or
    as an edit list (EDL, OpenTimelineIO).
    """
    record = _answered(state, run)
    rendered, home = _rendered(record), str(request.base_url).rstrip("/")

    def link(place: int, time: float) -> str:
        return f"{home}/film/{quote(_film_of(record, place))}?t={time:.2f}"

    def picture(place: int, time: float) -> bytes:
        try:
            film = state.catalog.open(_film_of(record, place))
        except NoSuchFilm:
            return b""  # the answer outlives its films
        return jpeg(frame_at(film, time, 480))

    if ending == "md":
        text, kind = as_markdown(rendered, link), "text/markdown"
    elif ending == "html":
        text, kind = as_html(rendered, picture, link), "text/html"
    elif ending == "srt":
        text, kind = as_srt(rendered), "text/plain"
    else:
        raise HTTPException(404, "only .html, .md, .mp4, .srt")
    return _attached(text, f"{kind}; charset=utf-8", f"answer-{record.id}.{ending}")


def _attached(content: str | bytes, kind: str, name: str) -> Response:
    # as a download: shown in the browser, it would be a page of this server
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type=kind, headers=headers)


def _reel(state: ServerState, record: RunRecord) -> list[tuple[Video, Segment]]:
    """The cited segments, film by film in the order of time; at most ten minutes."""
    cited: dict[str, list[Segment]] = {}
    for place, evidence in enumerate(record.answer.evidence if record.answer else ()):
        cited.setdefault(_film_of(record, place), []).append(shown_stretch(evidence))
    parts = [
        (state.catalog.open(film).video, stretch)
        for film, stretches in cited.items()
        for stretch in union(stretches)
    ]
    if not parts or sum(stretch.duration for _, stretch in parts) > LONGEST_CLIP:
        raise HTTPException(422, f"a reel has citations, of up to {LONGEST_CLIP:g} s together")
    return parts


def _film_of(record: RunRecord, place: int) -> str:
    """The film that a citation is in."""
    return record.sources[place].film if record.sources else record.ask.film


def _rendered(record: RunRecord) -> RenderedAnswer:
    ask, scope, about = record.ask, record.scope, record.film_name
    # a question to the library is about no single film
    if scope is not None:
        about = f"{scope.looked_at} of {scope.searched} films looked at"
    return RenderedAnswer(
        ask.question,
        about,
        ask.method,
        record.answer,
        record.usage,
        ask.options,
        unseen=record.unseen,
        calibrated=record.calibrated,
        sources=[source.name for source in record.sources],
    )


@router.get("/pictures/{digest}")
def picture(digest: str, state: StateParam) -> FileResponse:
    """A frame that a model was shown."""
    path = state.journal.picture(digest)
    if path is None:
        raise HTTPException(404, "no such picture")
    headers = {"Cache-Control": FOREVER, "ETag": f'"{digest}"'}
    return FileResponse(path, media_type="image/jpeg", headers=headers)
