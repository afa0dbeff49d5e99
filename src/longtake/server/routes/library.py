"""The library: search over all films that this server may show."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel

from longtake.library import Entry, Moment
from longtake.server.films import film_id
from longtake.server.state import Shared, State

router = APIRouter(tags=["library"])


class LibraryFilm(BaseModel):
    """A film of the library, by its id on this server."""

    id: str
    name: str
    duration: float
    date: str
    place: str
    tags: list[str]


class LibraryHits(BaseModel):
    """A film and its moments, best first."""

    film: LibraryFilm
    moments: list[Moment]


class LibraryFound(BaseModel):
    """What a search over the library found."""

    searched: int
    films: list[LibraryHits]


@router.get("/library/films")
def films(state: Shared, where: Annotated[str, Query(max_length=1000)] = "") -> list[LibraryFilm]:
    """The films of the library that lie below the server's folders."""
    return list(_shown(state, where).values())


@router.get("/library/search")
def search(
    q: Annotated[str, Query(max_length=1000)],
    state: Shared,
    where: Annotated[str, Query(max_length=1000)] = "",
    top: Annotated[int, Query(ge=1, le=50)] = 10,
) -> LibraryFound:
    """Moments in all films that fit a text; each can be played by its film's id and time."""
    allowed = _shown(state, where)
    found = state.library.search(q, films=top, among=allowed)
    hits = [
        LibraryHits(film=allowed[each.entry.fingerprint], moments=list(each.moments))
        for each in found.films
    ]
    return LibraryFound(searched=found.searched, films=hits)


def _shown(state: State, where: str) -> dict[str, LibraryFilm]:
    """Films by fingerprint; the user's library may know others that this server must not show."""
    listed = {file.id for file in state.shelf.films()}
    shown = {}
    for entry in state.library.entries(where):
        served = [film_id(path.resolve()) for path in entry.paths]
        here = [identity for identity in served if identity in listed]
        if here:
            shown[entry.fingerprint] = _film(entry, here[0])
    return shown


def _film(entry: Entry, identity: str) -> LibraryFilm:
    return LibraryFilm(
        id=identity,
        name=entry.name,
        duration=entry.duration,
        date=entry.date,
        place=entry.place,
        tags=list(entry.tags),
    )
