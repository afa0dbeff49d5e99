"""The library: search and ask all films that this server may show, and watch its folders."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict

from longtake.library import FoundMoment
from longtake.server.journal import Ask, QuestionFields
from longtake.server.library import IndexingProgress, LibraryFilm
from longtake.server.routes.runs import RunHandle, handle
from longtake.server.state import ServerState, StateParam

router = APIRouter(tags=["library"])
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
    """What the library knows of the films below the server's folders."""

    films: int
    """Files that can be searched and asked."""
    listed: int
    """Files below the folders."""
    seconds: float
    folders: list[str]
    watching: bool
    busy: bool
    """Whether films are being looked for or indexed, rather than awaited."""
    doing: IndexingProgress | None
    """What is being indexed."""
    failed: dict[str, str]
    """Films that could not be added, and why."""
    problem: str
    """What ended the watching, if it ended by itself."""


class WatchRequest(BaseModel):
    """Whether the folders are to be watched."""

    model_config = ConfigDict(extra="forbid")

    on: bool


@router.get("/library")
def library(state: StateParam) -> LibraryState:
    """How many films are known, and what is being indexed."""
    return _state(state)


@router.post("/library/watch")
def watch(wanted: WatchRequest, state: StateParam) -> LibraryState:
    """Add the films below the server's folders, and others as they appear; or stop doing so."""
    # both are harmless if it is so already
    if wanted.on:
        state.watcher.start()
    else:
        state.watcher.stop()
    return _state(state)


@router.get("/library/films")
def films(state: StateParam, where: Where = "") -> list[LibraryFilm]:
    """The films of the library that lie below the server's folders."""
    return list(state.library.films(where).values())


@router.get("/library/search")
def search(
    q: Annotated[str, Query(max_length=1000)],
    state: StateParam,
    where: Where = "",
    top: Annotated[int, Query(ge=1, le=50)] = 10,
) -> LibraryFound:
    """Moments in all films that fit a text; each can be played by its film's id and time."""
    result, shown = state.library.search(q, where, top)
    # by the id on this server: fingerprints and paths are not shown
    hits = [
        LibraryHits(film=shown[each.entry.fingerprint], moments=list(each.moments))
        for each in result.films
    ]
    return LibraryFound(searched=result.searched, films=hits)


@router.post("/library/ask", status_code=202)
def ask(wanted: QuestionFields, state: StateParam) -> RunHandle:
    """Ask all films; the answer's citations name their films in ``sources``."""
    fields = {name: getattr(wanted, name) for name in QuestionFields.model_fields}
    return handle(state.pool.start(Ask(film="", **fields), kind="library"))


def _state(state: ServerState) -> LibraryState:
    # two figures: files that are there, and those of them that can be asked
    shown, watcher = state.library.films(), state.watcher
    return LibraryState(
        films=state.library.known(),
        listed=len(state.catalog.films()),
        seconds=sum(film.duration for film in shown.values()),
        folders=state.catalog.folder_names(),
        watching=watcher.on,
        busy=watcher.busy,
        doing=watcher.doing,
        failed=watcher.failed,
        problem=watcher.problem,
    )
