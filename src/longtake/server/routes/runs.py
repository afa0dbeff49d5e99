"""Asking, and watching what is asked: runs, their events, comparisons, estimates."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Header, HTTPException, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import FileResponse, Response, StreamingResponse

from longtake import registry, trace
from longtake.server import events
from longtake.server.films import NoSuchFilm
from longtake.server.frames import jpeg_at
from longtake.server.journal import Ask, RunRecord, new_id
from longtake.server.run import Run
from longtake.server.state import Shared, State
from longtake.server.streams import EventStream, resumed
from longtake.server.work import question_of
from longtake.session.estimate import Estimate, estimate_all
from longtake.session.sharing import Told, as_html, as_markdown

router = APIRouter(tags=["runs"])

FOREVER = "private, max-age=31536000, immutable"
"""Cache-Control of what is named by its content."""


class Comparison(BaseModel):
    """One question for several methods."""

    model_config = ConfigDict(extra="forbid")

    ask: Ask
    methods: tuple[str, ...] = Field(default=(), max_length=32)
    """Empty: every method."""


class Handle(BaseModel):
    """A run, and where it stands."""

    run: RunRecord
    position: int = 0
    """Place in the queue; 0 once it has begun."""
    progress: dict[str, float] = {}
    """Share done of each part of indexing."""


class Handles(BaseModel):
    """Several runs."""

    runs: list[Handle]
    group: str = ""


def handle(run: Run) -> Handle:
    """What is known about a run that is under way."""
    return Handle(run=run.record, position=run.position, progress=dict(run.progress))


@router.post("/runs", status_code=202)
def start(ask: Ask, state: Shared) -> Handle:
    """Ask a question; the run goes on whether or not anybody watches."""
    return handle(state.pool.start(ask))


@router.post("/compare", status_code=202)
def compare(comparison: Comparison, state: Shared) -> Handles:
    """Ask several methods the same question; earlier replies are not reused."""
    group = new_id()
    names = comparison.methods or tuple(registry.methods.names())
    asks = [comparison.ask.model_copy(update={"method": name, "fresh": True}) for name in names]
    # all or none: an unknown method must not leave half a comparison
    for ask in asks:
        state.pool.check(ask)
    return Handles(runs=[handle(state.pool.start(ask, group=group)) for ask in asks], group=group)


@router.post("/estimate")
def estimate(comparison: Comparison, state: Shared) -> list[Estimate]:
    """The most that a question can cost with each method; nothing is sent."""
    ask = comparison.ask
    names = comparison.methods or (ask.method,)
    for name in names:
        state.pool.check(ask.model_copy(update={"method": name}))
    film = state.catalog.open(ask.film)
    return estimate_all(state.pool.session(ask), film, question_of(ask), names)


@router.get("/runs")
def newest(
    state: Shared,
    film: str = "",
    group: str = "",
    kind: str = "",
    before: str = "",
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> Handles:
    """Runs, newest first."""
    chosen = state.journal.newest(film=film, group=group, kind=kind, before=before)
    records = islice(chosen, limit)
    return Handles(runs=[_handle(state, record) for record in records], group=group)


def _handle(state: State, record: RunRecord) -> Handle:
    live = state.pool.get(record.id)
    return Handle(run=record) if live is None else handle(live)


@router.get("/runs/{run}")
def one(run: str, state: Shared) -> Handle:
    """One run."""
    return _handle(state, state.record(run))


@router.post("/runs/{run}/cancel")
def cancel(run: str, state: Shared) -> Handle:
    """End a run for everyone."""
    live = state.live(run)
    if live is not None:
        live.cancel()
    return _handle(state, state.record(run))


@router.delete("/runs/{run}", status_code=204)
def delete(run: str, state: Shared) -> None:
    """Forget a run that has ended."""
    if state.live(run) is not None:
        raise HTTPException(409, "the run is under way; cancel it first")
    state.journal.delete(run)


@router.get("/runs/{run}/events", response_class=EventStream, status_code=200)
async def watch(
    run: str,
    state: Shared,
    brief: bool = False,
    after: int = 0,
    last_event_id: Annotated[str, Header()] = "",
) -> EventStream:
    """The events as Server-Sent Events, from the beginning or after ``Last-Event-ID``."""
    after = resumed(after, last_event_id)
    return EventStream(state, state.record(run), brief=brief, after=after)


@router.get("/runs/{run}/events/{event}")
def one_event(run: str, event: int, state: Shared) -> Response:
    """One event in full: the messages that a model was sent, and its whole reply."""
    state.record(run)
    reader = events.TraceReader(state.journal.trace(run), after=event - 1)
    try:
        while True:
            line = next(reader.lines(), None)
            if line is not None:
                break
            if not reader.more:
                raise HTTPException(404, "no such event")
    finally:
        reader.close()
    if line.id != event:
        raise HTTPException(404, "no such event")
    return Response(line.data, media_type="application/json")


@router.get("/runs/{run}/trace")
def whole_trace(run: str, state: Shared) -> StreamingResponse:
    """The trace with its pictures, as ``longtake ask --trace`` writes it."""
    record = state.record(run)
    name = f"{record.id}.jsonl"
    return StreamingResponse(
        _with_pictures(state, record.id),
        media_type="application/x-ndjson",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


def _with_pictures(state: State, run: str) -> Iterator[bytes]:
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
        picture = state.journal.picture(digest)
        if picture is not None:
            yield trace.encode_picture(digest, picture.read_bytes())


@router.get("/runs/{run}/export.{ending}")
def export_answer(run: str, ending: str, state: Shared, request: Request) -> Response:
    """An answer as a self-contained HTML file, or as Markdown with links to times."""
    record = state.record(run)
    if record.kind == "index":
        raise HTTPException(404, "only answers are exported")
    told, home = _told(record), str(request.base_url).rstrip("/")

    def link(place: int, time: float) -> str:
        return f"{home}/film/{quote(_film_of(record, place))}?t={time:.2f}"

    def picture(place: int, time: float) -> bytes:
        try:
            film = state.catalog.open(_film_of(record, place))
        except NoSuchFilm:
            return b""  # the answer outlives its films
        return jpeg_at(film, time, 480)

    if ending == "md":
        text, kind = as_markdown(told, link), "text/markdown"
    elif ending == "html":
        text, kind = as_html(told, picture, link), "text/html"
    else:
        raise HTTPException(404, "only .html and .md")
    name = f"answer-{record.id}.{ending}"
    # never shown at our own address, where it would be a page of ours
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(text, media_type=f"{kind}; charset=utf-8", headers=headers)


def _film_of(record: RunRecord, place: int) -> str:
    """The film that a citation is in."""
    return record.sources[place].film if record.sources else record.ask.film


def _told(record: RunRecord) -> Told:
    ask, scope, about = record.ask, record.scope, record.film_name
    if scope is not None:
        about = f"{scope.looked_at} of {scope.searched} films looked at"
    return Told(
        ask.question,
        about,
        ask.method,
        record.answer,
        record.usage,
        ask.options,
        sources=[source.name for source in record.sources],
    )


@router.get("/pictures/{digest}")
def picture(digest: str, state: Shared) -> FileResponse:
    """A frame that a model was shown."""
    path = state.journal.picture(digest)
    if path is None:
        raise HTTPException(404, "no such picture")
    headers = {"Cache-Control": FOREVER, "ETag": f'"{digest}"'}
    return FileResponse(path, media_type="image/jpeg", headers=headers)
