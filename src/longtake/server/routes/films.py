"""Films: list, add, state of each layer, index, upload, delete, search.

And the library: search and ask all films that this server may show, and watch its folders.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Body, HTTPException, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from longtake.config import BudgetSettings
from longtake.index.search import SearchResult, search
from longtake.index.tasks import tasks
from longtake.library import FoundMoment
from longtake.server.films import FilmFile
from longtake.server.journal import Ask, QuestionFields
from longtake.server.library import IndexingProgress, LibraryFilm
from longtake.server.routes.runs import RunHandle, handle, read_number
from longtake.server.state import StateParam

router = APIRouter(tags=["films"])


class LayerCard(BaseModel):
    """A part of a film's index."""

    name: str
    what: str
    done: bool


class FilmFacts(FilmFile):
    """A film that was opened."""

    duration: float
    width: int
    height: int
    fps: float
    codec: str
    format: str
    has_sound: bool
    truncated: bool
    fingerprint: str
    layers: list[LayerCard]
    indexing: RunHandle | None = None
    """The run that is indexing it, if one is."""


@router.get("/films")
def films(state: StateParam) -> list[FilmFile]:
    """Every film below the server's folders."""
    return state.catalog.films()


@router.post("/films")
def add(path: Annotated[str, Body(embed=True)], state: StateParam) -> FilmFacts:
    """The film at a path below the server's folders."""
    return facts(state.catalog.add(Path(path)), state)


@router.post("/films/upload")
async def upload(
    request: Request, name: Annotated[str, Query(max_length=400)], state: StateParam
) -> FilmFacts:
    """A film as the body of the request, streamed to disk."""
    # browsers ask before they send these types to another site
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not kind.startswith(("video/", "audio/")) and kind != "application/octet-stream":
        detail = "the body must be video/*, audio/* or application/octet-stream"
        raise HTTPException(415, detail)
    size = read_number(request.headers.get("content-length", ""))
    path = await state.arrivals.upload(name, request.stream(), size)
    return await run_in_threadpool(facts, state.catalog.add(path), state)


@router.post("/films/url")
def download(url: Annotated[str, Body(embed=True)], state: StateParam) -> FilmFacts:
    """A film from a domain that ``--allow-url`` allows."""
    return facts(state.catalog.add(state.arrivals.download(url)), state)


@router.get("/films/{film}")
def facts(film: str, state: StateParam) -> FilmFacts:
    """One film, and how far it is indexed."""
    # opening may fail where listing did not: the file is read only now
    card, opened = state.catalog.file(film), state.catalog.open(film)
    info = opened.video.info
    return FilmFacts(
        **card.model_dump(),
        duration=opened.duration,
        width=info.width,
        height=info.height,
        fps=info.fps,
        codec=info.codec,
        format=info.format,
        has_sound=bool(info.audio),
        truncated=opened.video.truncated,
        fingerprint=opened.fingerprint,
        layers=[
            LayerCard(name=task.name, what=task.describe(), done=task.done())
            for task in tasks(opened)
        ],
        # the page shows progress even if another tab started it
        indexing=next(
            (
                handle(run)
                for run in state.pool.live()
                if run.record.kind == "index" and run.record.ask.film == film
            ),
            None,
        ),
    )


@router.post("/films/{film}/index", status_code=202)
def index(film: str, state: StateParam) -> RunHandle:
    """Index a film; the run's progress says how far each layer is."""
    # an unknown id is 404 before it can be too long for an ask
    ask = Ask(film=state.catalog.file(film).id, question="index")
    return handle(state.pool.start(ask, kind="index"))


class TableFields(BaseModel):
    """A table to extract, and how."""

    model_config = ConfigDict(extra="forbid")

    columns: dict[str, Any] = Field(alias="schema")
    """A JSON Schema of one object, or of a list of objects."""
    method: str | None = None
    models: tuple[str, ...] = ()
    budget: BudgetSettings = BudgetSettings()


@router.post("/films/{film}/extract", status_code=202)
def extract(film: str, wanted: TableFields, state: StateParam) -> RunHandle:
    """Extract a table; the text of the answer is JSON with values and citations."""
    return handle(
        state.start_extract(film, wanted.columns, wanted.method, wanted.models, wanted.budget)
    )


@router.delete("/films/{film}")
def delete(film: str, state: StateParam) -> dict[str, Any]:
    """Remove what was derived from a film, and the film itself if it was uploaded."""
    return {"freed": state.catalog.delete(film)}


@router.get("/films/{film}/search")
def find(
    film: str,
    q: Annotated[str, Query(max_length=1000)],
    state: StateParam,
    top: Annotated[int, Query(ge=1, le=100)] = 12,
) -> SearchResult:
    """Moments that fit a text, in pictures, speech and on-screen text."""
    return search(state.catalog.open(film), q, top=top)


library_router = APIRouter(tags=["library"])
Where = Annotated[str, Query(max_length=1000)]


class LibraryHits(BaseModel):
    """A film and its moments, best first."""

    film: LibraryFilm
    moments: list[FoundMoment]


class LibraryFound(BaseModel):
    """What a search over the library found."""

    searched: int
    films: list[LibraryHits]


class LibraryState(BaseModel):
    """What the library knows about the films in the server's folders."""

    films: int
    """Files that can be searched and asked, at least in part."""
    ready: int
    """Files whose pictures, speech and on-screen text are all indexed."""
    listed: int
    """Files below the folders."""
    seconds: float
    folders: list[str]
    watching: bool
    busy: bool
    """Whether films are being looked for or indexed; otherwise it waits for new ones."""
    doing: IndexingProgress | None
    """What is being indexed."""
    failed: dict[str, str]
    """Films that could not be added, and why."""
    problem: str
    """The error that ended the watching; empty if there was none."""


@library_router.get("/library")
def library(state: StateParam) -> LibraryState:
    """How many films are known, and what is being indexed."""
    shown, watcher = state.library.films(), state.watcher
    known, ready = state.library.count()
    return LibraryState(
        films=known,
        ready=ready,
        listed=len(state.catalog.films()),
        seconds=sum(film.duration for film in shown.values()),
        folders=state.catalog.folder_names(),
        watching=watcher.on,
        busy=watcher.busy,
        doing=watcher.doing,
        failed=watcher.failed,
        problem=watcher.problem,
    )


@library_router.post("/library/watch")
def watch(on: Annotated[bool, Body(embed=True)], state: StateParam) -> LibraryState:
    """Add the films below the server's folders, and others as they appear; or stop doing so."""
    # neither changes anything if it is in that state already
    if on:
        state.watcher.start()
    else:
        state.watcher.stop()
    return library(state)


@library_router.get("/library/films")
def library_films(state: StateParam, where: Where = "") -> list[LibraryFilm]:
    """The films of the library that lie in the server's folders."""
    return list(state.library.films(where).values())


@library_router.get("/library/search")
def search_library(
    q: Annotated[str, Query(max_length=1000)],
    state: StateParam,
    where: Where = "",
    top: Annotated[int, Query(ge=1, le=50)] = 10,
) -> LibraryFound:
    """Moments in all films that fit a text; each can be played by its film's id and time."""
    result, shown = state.library.search(q, where, top)
    # by the id on this server: fingerprints and paths are not shown
    films = [
        LibraryHits(film=shown[hits.entry.fingerprint], moments=list(hits.moments))
        for hits in result.films
    ]
    return LibraryFound(searched=result.searched, films=films)


@library_router.post("/library/ask", status_code=202)
def ask_library(wanted: QuestionFields, state: StateParam) -> RunHandle:
    """Ask all films; the answer's citations name their films in ``sources``."""
    fields = {name: getattr(wanted, name) for name in QuestionFields.model_fields}
    return handle(state.pool.start(Ask(film="", **fields), kind="library"))
