"""Adding films to a library: recognise files, index them part by part, watch folders, rebuild.

A film's name, date, place and tags come from its metadata, its file name and its folders.
"""

from __future__ import annotations

import os
import re
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Literal, TypeAlias

from filelock import FileLock, Timeout

from longtake.errors import LongtakeError, MediaError, MissingExtra, RunError
from longtake.index.layers import Advance, ignore
from longtake.index.source import fingerprint
from longtake.index.store import private_folder
from longtake.index.tasks import TASKS, tasks
from longtake.library.catalog import Entry, Facts, KnownFile
from longtake.library.collection import Library
from longtake.runner.films import open_film, open_store
from longtake.video.container import FileVersion, FoundFile, file_version, films_in, open_container
from longtake.video.subtitles import sidecar

State: TypeAlias = Literal["new", "known", "moved", "changed", "copy"]


@dataclass(frozen=True)
class SurveyedFile:
    """A film file and its state in the library."""

    path: Path
    state: State
    entry: Entry


@dataclass(frozen=True)
class AddProgress:
    """The progress of adding films."""

    film: Entry
    part: str
    job: int
    """Number of this job, from 1."""
    jobs: int
    left: float | None
    """Estimated seconds left; ``None`` until every part was measured once."""


@dataclass
class AddReport:
    """The outcome of adding films."""

    surveyed: list[SurveyedFile] = field(default_factory=list)
    failed: list[tuple[Path, str]] = field(default_factory=list)
    indexed: list[str] = field(default_factory=list)
    """Fingerprints of the films with new rows in the index."""
    dropped: list[str] = field(default_factory=list)
    """Films whose layers were removed from the full cache; they can still be searched."""


class Adder:
    """Adds films; ``on_survey`` and ``on_job`` are called for every file and every job.

    Files that are not ``allowed`` are ignored.
    """

    def __init__(
        self,
        library: Library,
        *,
        tags: Sequence[str] = (),
        parts: Sequence[str] = TASKS,
        allowed: Callable[[Path], bool] = lambda _: True,
        on_survey: Callable[[SurveyedFile | MediaError], None] = lambda _: None,
        on_job: Callable[[AddProgress], Advance] = lambda _: ignore,
    ) -> None:
        self.library, self.tags, self.parts = library, tags, parts
        self._allowed, self._on_survey, self._on_job = allowed, on_survey, on_job
        self.report = AddReport()
        # by part: seconds of work, and seconds of film
        self._worked, self._covered = defaultdict[str, float](float), defaultdict[str, float](float)
        self._evicted = time.monotonic()

    def add(self, paths: Sequence[Path], *, failed: Mapping[Path, str] | None = None) -> AddReport:
        """Add films, and films below folders.

        Films that ``failed`` before, while a cluster indexed them, are not tried again.
        """
        failed = failed or {}
        self.report.failed += failed.items()
        # read once, since a query for every file would be slow
        known = self.library.catalogue.files()
        for place in films_in(paths):
            if place.path in failed or not self._allowed(place.path):
                continue
            try:
                surveyed = self.survey(place, known.get(place.path))
            except MediaError as error:
                self._on_survey(error)
                self.report.failed.append((place.path, str(error)))
                continue
            self.report.surveyed.append(surveyed)
            self._on_survey(surveyed)
        self.index([each.entry for each in self.report.surveyed])
        return self.report

    def survey(self, place: FoundFile, known: KnownFile | None = None) -> SurveyedFile:
        """Identify a file and enter it into the catalogue; ``known`` is what is there about it."""
        try:
            os.fspath(place.path).encode()
        except UnicodeEncodeError as error:
            # the catalogue keeps paths as text
            raise MediaError(place.path, "unreadable", "rename it: not valid UTF-8") from error
        catalogue = self.library.catalogue
        version = _version(place.path)
        same = known is not None and known.version == version
        mark = known.fingerprint if known is not None and same else fingerprint(place.path)
        entry = catalogue.entry(mark)
        state: State = "known"
        if entry is None:
            # opening a film stores its packet table, which indexing needs anyway
            film = open_film(place.path, self.library.settings, senses=self.library.perception)
            self._describe(place, mark, film.duration)
            state = "new"
        elif place.path not in entry.paths:
            state = "moved" if entry.missing else "copy"
        if entry is not None and state == "moved":
            # the name and the tags from folders may have changed
            self._describe(place, mark, entry.duration)
        if not same:
            state = self._place(place.path, mark, version, entry, state)
        if self.tags:
            catalogue.tag(mark, self.tags)
        entered = catalogue.entry(mark)
        assert entered is not None
        return SurveyedFile(place.path, state, entered)

    def index(self, entries: Sequence[Entry]) -> None:
        """Index what is missing of some films."""
        identity = self.library.identity()
        indexed = self.library.index.films()
        incomplete = []
        for entry in {entry.fingerprint: entry for entry in entries}.values():
            done = entry.complete == self._complete(identity, entry)
            if not done or entry.fingerprint not in indexed:
                incomplete.append(entry)
        # the quickest part of all films first: subtitles can be searched long before pictures
        parts = [part for part in TASKS if part in self.parts]
        jobs = [(entry, part) for part in parts for entry in incomplete]
        busy: list[tuple[Entry, str]] = []
        for number, (entry, part) in enumerate(jobs, start=1):
            left = self._seconds_left(jobs[number - 1 :])
            if not self._job(AddProgress(entry, part, number, len(jobs), left), wait=False):
                busy.append((entry, part))
        # by now the other process may be done with these; otherwise wait for it
        for number, (entry, part) in enumerate(busy, start=1):
            self._job(AddProgress(entry, part, number, len(busy), None), wait=True)
        for entry in incomplete:
            self._finish(entry, identity)
        # each part replaced the rows of a film
        if self.library.index.dead() > 0.3:
            self.library.index.compact()

    def _seconds_left(self, jobs: Sequence[tuple[Entry, str]]) -> float | None:
        """The time for some jobs at the speed so far; ``None`` if a part was not measured yet."""
        total = 0.0
        for entry, part in jobs:
            if not self._covered[part]:
                return None
            total += entry.duration * self._worked[part] / self._covered[part]
        return total

    def _job(self, progress: AddProgress, *, wait: bool) -> bool:
        """Index one part of a film; return ``False`` if another process works on the film."""
        entry = progress.film
        # a process that dies releases its locks
        folder = private_folder(self.library.folder / "locks")
        lock = FileLock(folder / entry.fingerprint, mode=0o600)
        try:
            with lock.acquire(timeout=-1 if wait else 0):
                self._build(progress)
        except Timeout:
            return False
        except (MediaError, MissingExtra, RunError) as error:
            # the other films may be fine
            self.library.catalogue.failed(entry.fingerprint, str(error))
            self.report.failed.append((entry.path, str(error)))
        return True

    def _build(self, progress: AddProgress) -> None:
        entry, part = progress.film, progress.part
        film = open_film(entry.path, self.library.settings, senses=self.library.perception)
        # changed since the survey; the next survey will notice
        if film.fingerprint != entry.fingerprint:
            return
        film.video  # noqa: B018  creates its folder in the cache, which may have been cleared
        task = next(task for task in tasks(film) if task.name == part)
        advance = self._on_job(progress)
        began = time.perf_counter()
        if not task.done():
            task.build(advance)
            self._worked[part] += time.perf_counter() - began
            self._covered[part] += entry.duration
        if self.library.derive(entry, film):
            self.report.indexed.append(entry.fingerprint)
        self._evict(entry.fingerprint)

    def _finish(self, entry: Entry, identity: str) -> None:
        """Mark a film as complete, so that the next run does not open it."""
        failed = {path for path, _ in self.report.failed}
        if entry.path in failed or set(self.parts) != set(TASKS):
            return
        self.library.catalogue.complete(entry.fingerprint, self._complete(identity, entry))

    def _complete(self, identity: str, entry: Entry) -> str:
        # subtitles beside a film may change without the film
        beside = sidecar(entry.path)
        return identity if beside is None else f"{identity}:{file_version(beside)[2:]}"

    def _place(
        self, path: Path, mark: str, version: FileVersion, entry: Entry | None, state: State
    ) -> State:
        """Enter the path of a film, and remove the film that it replaces."""
        catalogue = self.library.catalogue
        replaced = catalogue.place(path, mark, version)
        if state == "moved" and entry is not None:
            for old in entry.paths:
                catalogue.forget_file(old)
        if not replaced:
            return state
        # the user's tags stay with the file name
        catalogue.tag(mark, catalogue.given_tags(replaced))
        self.library.remove([replaced])
        return "changed"

    def _describe(self, place: FoundFile, mark: str, duration: float) -> None:
        with open_container(place.path, self.library.settings.media) as container:
            metadata = {key.casefold(): value for key, value in container.metadata.items()}
        facts = facts_from(place.path, metadata, duration, place.root)
        self.library.catalogue.describe(mark, facts)

    def _evict(self, keep: str) -> None:
        # at most once a minute, since measuring the cache walks through all of it
        if time.monotonic() - self._evicted < 60.0:
            return
        self._evicted = time.monotonic()
        store = open_store(self.library.settings)
        self.report.dropped += [use.name for use in store.evict(keep=keep)]


def rebuild(library: Library, advance: Advance = ignore) -> list[str]:
    """Repair a library, whatever is damaged; return what was lost.

    Films that a damaged catalogue lost are entered again at their last path in the cache. The index
    is derived anew from the films' layers.
    """
    try:
        indexed = set(library.index.films())
    except LongtakeError:
        indexed = set()  # damaged
    lost = []
    if aside := library.catalogue.set_aside_if_damaged():
        lost.append(f"tags that you gave; they are in the damaged catalogue, {aside}")
    known = {entry.fingerprint for entry in library.catalogue.entries()}
    lost += _enter_again(library, indexed - known)
    library.delete_index()
    entries = library.catalogue.entries()
    for number, entry in enumerate(entries, start=1):
        try:
            library.derive(entry)
        except LongtakeError as error:
            lost.append(f"{error}; the film cannot be searched")
        advance(number / len(entries))
    return lost


def _enter_again(library: Library, fingerprints: Collection[str]) -> list[str]:
    """Enter films of the index into the catalogue; return what cannot be entered."""
    uses = open_store(library.settings).films()
    places = {use.fingerprint: Path(use.path) for use in uses if use.path}
    adder, lost = Adder(library), []
    for identity in sorted(fingerprints):
        path = places.get(identity)
        try:
            if path is None:
                raise RunError(f"{identity}: the path of this film is unknown; add it again")
            adder.survey(FoundFile(path, None))
        except LongtakeError as error:
            lost.append(str(error))
    return lost


EVERY = 5.0
"""Seconds between looks at watched folders."""


def _version(path: Path) -> FileVersion:
    """The version of a film by its change time, since its modification time can be set freely."""
    version = file_version(path)
    # it may be gone, or a link to itself
    with suppress(OSError):
        return version._replace(modified=path.stat().st_ctime_ns)
    return version


def _snapshot(paths: Sequence[Path]) -> dict[Path, FileVersion]:
    """The films below some folders as they are now; missing folders are skipped."""
    there = [path for path in paths if path.exists()]
    return {place.path: _version(place.path) for place in films_in(there)}


def watch(
    paths: Sequence[Path],
    add: Callable[[], AddReport],
    *,
    on_round: Callable[[AddReport], None] = lambda _: None,
    every: float = EVERY,
    sleep: Callable[[float], None] = time.sleep,
    rounds: int | None = None,
) -> None:
    """Add the films, then those that appear or change, until interrupted.

    ``rounds`` limits the number of looks, for tests.
    """
    # before adding, so that films which appear meanwhile are new in the next round
    done = before = _snapshot(paths)
    on_round(add())
    looked = 0
    while rounds is None or looked < rounds:
        sleep(every)
        looked += 1
        now = _snapshot(paths)
        # two equal looks: nobody is still copying files
        if now == before and now != done:
            on_round(add())
            done = now
        before = now


_DAY = re.compile(r"(?<!\d)((?:19|20)\d\d)[-_.]?(0[1-9]|1[0-2])[-_.]?(0[1-9]|[12]\d|3[01])(?!\d)")
_MONTH = re.compile(r"(?<!\d)((?:19|20)\d\d)[-_.](0[1-9]|1[0-2])(?![-_.]?\d)")
_YEAR = re.compile(r"(?<![\dp])((?:19|20)\d\d)(?![\dp])")
_HASHTAG = re.compile(r"#(\w[\w-]*)")
_BRACKETS = re.compile(r"\[([^\]\[]{1,40})\]")
_POSITION = re.compile(r"([+-]\d+(?:\.\d+)?)([+-]\d+(?:\.\d+)?)")
_DATES = ("date", "creation_time", "com.apple.quicktime.creationdate", "year")
_PLACES = ("location", "com.apple.quicktime.location.iso6709", "location-eng")
_TAGS = ("genre", "keywords")
EPOCHS = ("1904-01-01", "1970-01-01")
"""Days that recorders write if they do not know the date."""


def facts_from(
    path: Path, metadata: Mapping[str, str], duration: float, root: Path | None = None
) -> Facts:
    """Facts from metadata with lower-case keys; folders below ``root`` become tags."""
    title = " ".join(metadata.get("title", "").split())[:200]
    named = date_in_name(path.stem)
    recorded = next((day for key in _DATES if (day := _date(metadata.get(key, "")))), "")
    place = next((metadata[key].strip() for key in _PLACES if metadata.get(key)), "")
    # "#talk" and "[raw]" in the file name
    tags = [*_HASHTAG.findall(path.stem), *_BRACKETS.findall(path.stem), *_folder_tags(path, root)]
    for key in _TAGS:
        tags += re.split(r"[;,/]", metadata.get(key, ""))
    clean = dict.fromkeys(tag.strip().casefold() for tag in tags if tag.strip())
    # the date in a file name is more reliable: that of a container may be of a conversion
    return Facts(title or path.stem, duration, named or recorded, _position(place), tuple(clean))


def date_in_name(name: str) -> str:
    """``2025-03-14`` in ``VID_20250314_101112``; only a month or a year if there is no day."""
    if match := _DAY.search(name):
        year, month, day = map(int, match.groups())
        try:
            return date(year, month, day).isoformat()
        except ValueError:
            return ""  # 2025-02-31 is no date
    if match := _MONTH.search(name):
        return f"{match[1]}-{match[2]}"
    match = _YEAR.search(name)
    return match[1] if match else ""


def _folder_tags(path: Path, root: Path | None) -> list[str]:
    """The names of the folder that was added and of those between it and the film."""
    if root is None:
        return []
    names = [root.name, *path.parent.relative_to(root).parts]
    # the name of a folder may be a date
    return [name for name in names if name and not re.fullmatch(r"[\d\W_]+", name)]


def _date(text: str) -> str:
    day = date_in_name(text[:10])
    return "" if day in EPOCHS else day


def _position(place: str) -> str:
    """``+48.8577+002.295/`` as ``48.8577, 2.295``; names of places stay as they are."""
    match = _POSITION.match(place)
    if match is None:
        return place
    return f"{float(match[1]):g}, {float(match[2]):g}"
