"""The user's library, as far as a server may show it: films below its folders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from pydantic import BaseModel

from longtake.errors import ConfigError
from longtake.events import Sink
from longtake.footage.protocol import Footage
from longtake.library import Entry, Found, Library, LibraryAnswer, ask_library
from longtake.server.films import FilmCatalog, NoSuchFilm, film_id
from longtake.server.journal import Scope, Source
from longtake.server.options import ServeOptions
from longtake.session.asking import Session
from longtake.stopping import Stop
from longtake.types import Question, Result


class LibraryFilm(BaseModel):
    """A film of the library, by its id on this server."""

    id: str
    name: str
    duration: float
    date: str
    place: str
    tags: list[str]


class Across(BaseModel):
    """What a question to the library gave, besides its answer."""

    sources: tuple[Source, ...]
    scope: Scope


class ServedLibrary:
    """Searches and asks the films of the library that a server may show."""

    def __init__(self, options: ServeOptions, catalog: FilmCatalog) -> None:
        self._options, self._catalog = options, catalog

    @cached_property
    def library(self) -> Library:
        """The user's library; opened on first use."""
        return Library(settings=self._options.settings, opener=self.open)

    def films(self, where: str = "") -> dict[str, LibraryFilm]:
        """Films by fingerprint; the user's library may know others that must not be shown."""
        listed = {file.id for file in self._catalog.films()}
        shown = {}
        for entry in self.library.entries(where):
            for path in entry.paths:
                identity = film_id(path.resolve())
                if identity in listed:
                    shown[entry.fingerprint] = _film(entry, identity)
                    break
        return shown

    def known(self) -> int:
        """How many of the server's files are films of the library; copies count each."""
        listed = {file.id for file in self._catalog.films()}
        entries = self.library.entries()
        return len(listed & {film_id(path.resolve()) for each in entries for path in each.paths})

    def open(self, entry: Entry) -> Footage:
        """A film to be asked, from where this server may open it."""
        for path in entry.paths:
            try:
                return self._catalog.open(film_id(path.resolve()))
            except NoSuchFilm:
                continue  # the same film may lie inside the folders and outside
        raise NoSuchFilm(entry.name)

    def search(self, text: str, where: str, top: int) -> tuple[Found, dict[str, LibraryFilm]]:
        """Moments that fit a text, and the films they are in."""
        shown = self.films(where)
        return self.library.search(text, films=top, among=shown), shown

    def check(self, where: str) -> None:
        """Raise if a filter cannot be read."""
        self.library.entries(where)

    def ask(
        self,
        session: Session,
        question: Question,
        method: str,
        *,
        where: str,
        sinks: Sequence[Sink],
        stop: Stop,
    ) -> tuple[Result, Across]:
        """Answer a question from whichever films hold the answer."""
        shown = self.films(where)
        if not shown:
            raise ConfigError("the library knows none of these films yet; watch the folders first")
        found = ask_library(
            self.library, session, question, method, among=shown, sinks=sinks, stop=stop
        )
        evidence = tuple(cited.evidence for cited in found.cited)
        result = Result(replace(found.answer, evidence=evidence), found.usage, method)
        return result, Across(sources=_sources(found, shown), scope=_scope(found))


def _film(entry: Entry, identity: str) -> LibraryFilm:
    return LibraryFilm(
        id=identity,
        name=entry.name,
        duration=entry.duration,
        date=entry.date,
        place=entry.place,
        tags=list(entry.tags),
    )


def _sources(found: LibraryAnswer, shown: dict[str, LibraryFilm]) -> tuple[Source, ...]:
    films = [shown[cited.film.fingerprint] for cited in found.cited]
    return tuple(Source(film=film.id, name=film.name) for film in films)


def _scope(found: LibraryAnswer) -> Scope:
    return Scope(
        searched=found.searched,
        candidates=found.candidates,
        looked_at=len(found.films),
        every=found.every,
    )
