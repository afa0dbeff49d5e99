"""Runs on disk: what was asked, how it ended, and the trace.

::

    <data>/runs/<id>/run.json       what was asked and how it ended, replaced as a whole
    <data>/runs/<id>/trace.jsonl    the events, appended as they happen
    <data>/pictures/<digest>.jpg    frames shown to models, each once

Ids begin with the time, so that names in order are runs in order.
"""

from __future__ import annotations

import logging
import re
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError, computed_field

from longtake._util import write_atomically
from longtake.agents.answer import Claim, claims
from longtake.config import BudgetSettings
from longtake.errors import ConfigError, RunError
from longtake.index.store import private_folder
from longtake.runner.assignment import DEFAULT_METHOD
from longtake.runner.rendering import outcome, sureness
from longtake.tracing.events import Event, Sink
from longtake.types import Answer, QuestionKind, Usage

RunState: TypeAlias = Literal["queued", "running", "done", "failed", "cancelled", "broken"]
Kind: TypeAlias = Literal["ask", "index", "library", "extract", "pull"]
"""A question to a film, the indexing of a film, a question to the library, a table, or the download
of a model."""
ENDED = ("done", "failed", "cancelled", "broken")
_ID = re.compile(r"\d{8}T\d{6}-[0-9a-f]{12}")
_DIGEST = re.compile(r"[0-9a-f]{16,128}")


log = logging.getLogger("longtake.serve")


class JournalUnwritable(RunError):
    """A run cannot be stored, for example because the disk is full."""


MAX_QUESTION = 8000
"""Letters of a question, or of a schema."""


class QuestionFields(BaseModel):
    """A question, and how to answer it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    question: str = Field(min_length=1, max_length=MAX_QUESTION)
    where: str = Field(default="", max_length=1000)
    """Which films of the library are asked, as ``library ask --in`` takes it; empty: all."""
    options: tuple[str, ...] = Field(default=(), max_length=26)
    kind: QuestionKind | None = None
    """What it asks for, as ``--as`` takes it; null: as its wording suggests."""
    method: str = DEFAULT_METHOD
    models: tuple[str, ...] = ()
    """Models by role, as ``--model`` takes them; empty: the server's."""
    budget: BudgetSettings = BudgetSettings()
    seed: int = 0
    fresh: bool = False
    """Do not reuse earlier replies."""
    carried: str = Field(default="", max_length=20_000)
    """Earlier questions and answers that this one refers to."""


class Ask(QuestionFields):
    """A question about a film, or about all of them."""

    film: str = Field(max_length=64)
    """The film's id; empty if the library is asked."""
    index_first: bool = True
    """Index the film's pictures before the question, with progress, if that was not done yet."""


class CitedFilm(BaseModel):
    """The film that a citation is in."""

    film: str
    """Its id."""
    name: str


class Scope(BaseModel):
    """How far a question to the library went."""

    searched: int
    candidates: int
    """Films that the search proposed."""
    looked_at: int
    every: bool
    """Whether every occurrence was asked for."""


class RunRecord(BaseModel):
    """A run without its trace."""

    id: str
    kind: Kind = "ask"
    ask: Ask
    film_name: str = ""
    group: str = ""
    """Shared by the runs of one comparison."""
    state: RunState = "queued"
    created: float
    """Unix time."""
    started: float | None = None
    ended: float | None = None
    answer: Answer | None = None
    sources: tuple[CitedFilm, ...] = ()
    """The film of each citation, if the library was asked."""
    scope: Scope | None = None
    usage: Usage = Usage()
    error: str = ""
    unseen: tuple[str, ...] = ()
    """What was not looked at, in words."""
    calibrated: bool = False
    """Whether the answer's confidence is a measured probability."""

    @computed_field
    def outcome(self) -> str:
        """What the answer's status means, in a sentence; empty if all is well."""
        return outcome(self.answer, self.usage) if self.answer else ""

    @computed_field
    def support(self) -> str:
        """How far the answer can be trusted, in words."""
        return sureness(self.answer, calibrated=self.calibrated) if self.answer else ""

    @computed_field
    def claims(self) -> tuple[Claim, ...]:
        """The sentences of the answer with the places of their citations."""
        return claims(self.answer) if self.answer else ()


def new_id() -> str:
    """An id for a run; later ids sort after earlier ones."""
    return f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{secrets.token_hex(6)}"


class Journal:
    """The folder of runs."""

    def __init__(self, data: Path) -> None:
        self._runs = private_folder(private_folder(data) / "runs")
        self._pictures = private_folder(data / "pictures")
        self._unwritten: dict[str, RunRecord] = {}
        self._lock = threading.Lock()

    def write(self, record: RunRecord) -> None:
        """Replace what is known about a run; raises :class:`JournalUnwritable`."""
        # outside the block: an error here is a bug, not a full disk
        data = record.model_dump_json().encode()
        try:
            folder = private_folder(self._folder(record.id))
            write_atomically(folder / "run.json", data)
        except OSError as error:
            raise JournalUnwritable(f"the server cannot store runs ({error.strerror})") from error

    def write_end(self, record: RunRecord) -> None:
        """Write how a run ended; if the disk is full, this is retried when the next run ends."""
        with self._lock:
            # in the order in which the runs ended
            self._unwritten[record.id] = record
            try:
                for waiting in list(self._unwritten.values()):
                    self.write(waiting)
                    del self._unwritten[waiting.id]
            except JournalUnwritable:
                # until then, viewers read the record from memory
                log.exception("%d ended runs are not stored yet", len(self._unwritten))

    def read(self, run: str) -> RunRecord | None:
        """One run; ``None`` if there is none of that id, or its file is damaged."""
        if not _ID.fullmatch(run):
            return None
        unwritten = self._unwritten.get(run)
        if unwritten is not None:
            return unwritten
        try:
            return RunRecord.model_validate_json((self._folder(run) / "run.json").read_bytes())
        except (OSError, ValidationError, ConfigError):
            return None

    def newest(
        self, *, film: str = "", group: str = "", kind: str = "", before: str = ""
    ) -> Iterator[RunRecord]:
        """Runs, newest first, of one film, one comparison or one kind."""
        names = [path.name for path in self._runs.iterdir() if _ID.fullmatch(path.name)]
        # ids begin with the time, so the order of names is that of time
        for name in sorted(names, reverse=True):
            if before and name >= before:
                continue
            # a damaged file must not hide the other runs
            record = self.read(name)
            if record is None:
                continue
            asked = ((film, record.ask.film), (kind, record.kind), (group, record.group))
            if all(not wanted or wanted == given for wanted, given in asked):
                yield record

    def trace(self, run: str) -> Path:
        """The trace of a run, which need not exist yet."""
        return self._folder(run) / "trace.jsonl"

    def delete(self, run: str) -> None:
        """Remove a run; pictures stay, since other runs may share them."""
        with self._lock:
            self._unwritten.pop(run, None)
        shutil.rmtree(self._folder(run), ignore_errors=True)

    def mark_broken(self) -> None:
        """Mark runs that an earlier server left unfinished."""
        why = "the server stopped while this run was under way"
        for record in self.newest():
            if record.state not in ENDED:
                self.write(record.model_copy(update={"state": "broken", "error": why}))

    def picture(self, digest: str) -> Path | None:
        """A stored picture."""
        # the pattern allows neither slashes nor dots
        path = self._pictures / f"{digest}.jpg"
        return path if _DIGEST.fullmatch(digest) and path.is_file() else None

    def keep_picture(self, digest: str, jpeg: Callable[[], bytes]) -> None:
        """Store a picture unless it is there."""
        if self.picture(digest) is None and _DIGEST.fullmatch(digest):
            # not synced: a picture lost in a power cut can be decoded again
            draft = self._pictures / f".{digest}.{threading.get_ident()}"
            draft.write_bytes(jpeg())
            draft.replace(self._pictures / f"{digest}.jpg")

    def _folder(self, run: str) -> Path:
        # it becomes part of a path
        if not _ID.fullmatch(run):
            raise ValueError(f"not the id of a run: {run!r}")
        return self._runs / run


class PictureSink(Sink):
    """Stores pictures beside the runs, so that events only name them."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def handle(self, event: Event) -> None:
        """Ignore the event."""

    def picture(self, digest: str, jpeg: Callable[[], bytes]) -> None:
        """Store a picture."""
        self._journal.keep_picture(digest, jpeg)
