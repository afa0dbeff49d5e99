"""The part of the user's library that a server may show: the films in its folders.

:class:`ServedLibrary` searches and asks them; :class:`Watcher` adds films as they appear.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from pydantic import BaseModel

from longtake._util.cancellation import Cancelled, Stop, leave_behind
from longtake.errors import ConfigError, LongtakeError, MediaError
from longtake.footage.protocol import Footage
from longtake.index.layers import Advance
from longtake.library import (
    Adder,
    AddProgress,
    AddReport,
    Entry,
    Library,
    LibrarySearchResult,
    ask_library,
)
from longtake.library.add import EVERY, SurveyedFile, watch
from longtake.runner.session import Session
from longtake.server.films import NoSuchFilm, ServedFilms, film_id, reason_of
from longtake.server.journal import CitedFilm, Scope
from longtake.server.options import ServeOptions
from longtake.tracing.events import Sink
from longtake.types import Question, Result


class LibraryFilm(BaseModel):
    """A film of the library, by its id on this server."""

    id: str
    name: str
    duration: float
    date: str
    place: str
    tags: tuple[str, ...]


class ServedLibrary:
    """Searches and asks the films of the library that a server may show."""

    def __init__(self, options: ServeOptions, catalog: ServedFilms) -> None:
        self._options, self._catalog = options, catalog

    @cached_property
    def library(self) -> Library:
        """The user's library, opened on first use."""
        return Library(settings=self._options.settings, opener=self.open)

    def films(self, where: str = "") -> dict[str, LibraryFilm]:
        """Films by fingerprint; the user's library may know others that must not be shown."""
        return {
            entry.fingerprint: LibraryFilm.model_validate({**vars(entry), "id": files[0]})
            for entry, files in self._served(where)
        }

    def count(self) -> tuple[int, int]:
        """How many files of this server the library knows, and how many are fully indexed."""
        identity, known, ready = self.library.identity(), 0, 0
        for entry, files in self._served():
            # copies of a film are counted separately
            known += len(files)
            # with other settings, it has to be indexed again
            if entry.complete.startswith(identity):
                ready += len(files)
        return known, ready

    def _served(self, where: str = "") -> Iterator[tuple[Entry, list[str]]]:
        """Entries of which this server has files, with the ids of these files."""
        listed = {file.id for file in self._catalog.films()}
        for entry in self.library.entries(where):
            files = [film_id(path) for path in entry.paths]
            shown = [file for file in dict.fromkeys(files) if file in listed]
            if shown:
                yield entry, shown

    def enter(self, path: Path) -> None:
        """Add an indexed film, so that it can be searched and asked with the others."""
        Adder(self.library, allowed=self._catalog.allowed).add([path])

    def open(self, entry: Entry) -> Footage:
        """The film of an entry, from a place where this server may open it."""
        for path in entry.paths:
            try:
                return self._catalog.open(film_id(path))
            except NoSuchFilm:
                continue  # the same film may lie in several places
        raise NoSuchFilm(entry.name)

    def search(
        self, text: str, where: str, top: int
    ) -> tuple[LibrarySearchResult, dict[str, LibraryFilm]]:
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
    ) -> tuple[Result, tuple[CitedFilm, ...], Scope]:
        """An answer from the films that hold it, the film of each citation, and the scope."""
        shown = self.films(where)
        # a search in nothing would answer that nothing fits
        if not shown:
            raise ConfigError("the library knows none of these films yet; watch the folders first")
        across = ask_library(
            self.library, session, question, method, among=shown, sinks=sinks, stop=stop
        )
        evidence = tuple(cited.evidence for cited in across.cited)
        result = Result(replace(across.answer, evidence=evidence), across.usage, method)
        films = [shown[cited.film.fingerprint] for cited in across.cited]
        sources = tuple(CitedFilm(film=film.id, name=film.name) for film in films)
        scope = Scope(
            searched=across.searched,
            candidates=across.candidates,
            looked_at=len(across.films),
            every=across.every,
        )
        return result, sources, scope


log = logging.getLogger("longtake.serve")


class IndexingProgress(BaseModel):
    """The part of a film that is being indexed."""

    film: str
    part: str
    share: float = 0.0
    """How much of this part is done, 0 to 1."""
    job: int
    jobs: int
    left: float | None
    """Seconds that the rest will take; ``None`` until that is known."""


class Watcher:
    """A thread that watches the folders between :meth:`start` and :meth:`stop`."""

    def __init__(
        self, library: Callable[[], Library], catalog: ServedFilms, every: float = EVERY
    ) -> None:
        self._library, self._catalog, self._every = library, catalog, every
        self._lock = threading.Lock()
        self._stop: Stop | None = None
        self.busy = False
        """Whether films are being looked for or indexed; otherwise it waits for new ones."""
        self.doing: IndexingProgress | None = None
        """What is being indexed."""
        self.failed: dict[str, str] = {}
        """Names of the films that could not be added, and why."""
        self.problem = ""
        """The error that ended the watching; empty if there was none."""

    @property
    def on(self) -> bool:
        """Whether the folders are being watched."""
        return self._stop is not None

    def start(self) -> None:
        """Begin, unless it has begun."""
        with self._lock:
            if self._stop is not None:
                return
            self._stop = stop = Stop()
            self.busy, self.problem = True, ""
        thread = threading.Thread(target=self._run, args=[stop], name="watcher", daemon=True)
        # it may be decoding a film when the process ends
        leave_behind(thread)
        thread.start()

    def stop(self) -> None:
        """End it; the thread itself ends at its next check, between two frames."""
        with self._lock:
            stop, self._stop = self._stop, None
            self.busy, self.doing = False, None
        if stop is not None:
            stop.set()

    def _run(self, stop: Stop) -> None:
        try:
            with stop.in_force():
                watch(
                    self._catalog.folders(),
                    lambda: self._add(stop),
                    every=self._every,
                    sleep=stop.wait,
                )
        except Cancelled:
            pass  # by stop()
        except LongtakeError as error:
            self._end(stop, str(error))
        except Exception as error:  # a bug here must be shown, not end the thread unseen
            log.exception("watching failed")
            self._end(stop, reason_of(error))

    def _end(self, stop: Stop, problem: str) -> None:
        with self._lock:
            # it may have been stopped and started again meanwhile
            if self._stop is stop:
                self._stop, self.problem = None, problem
                self.busy, self.doing = False, None

    def _add(self, stop: Stop) -> AddReport:
        def surveyed(_: SurveyedFile | MediaError) -> None:
            stop.check()

        # a new one for every round: folders and settings may have changed
        self.busy = True
        adder = Adder(
            self._library(),
            allowed=self._catalog.allowed,
            on_survey=surveyed,
            on_job=lambda progress: self._advance(stop, progress),
        )
        # a drive that is not mounted now may be there in the next round
        report = adder.add([folder for folder in self._catalog.folders() if folder.exists()])
        self.failed = {path.name: why for path, why in report.failed}
        self.busy, self.doing = False, None
        # films that were found must be listed at once
        self._catalog.refresh()
        return report

    def _advance(self, stop: Stop, progress: AddProgress) -> Advance:
        stop.check()
        doing = IndexingProgress(
            film=progress.film.name,
            part=progress.part,
            job=progress.job,
            jobs=progress.jobs,
            left=progress.left,
        )
        self.doing = doing

        def advance(share: float) -> None:
            stop.check()
            doing.share = round(share, 4)

        return advance
