"""Adding films to a library: recognise files, index them part by part, watch folders, rebuild.

A film's name, date, place and tags come from its metadata, its file name and its folders. What none
of these says stays empty.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Literal, TypeAlias

from filelock import FileLock, Timeout

from longtake.config import MediaSettings
from longtake.errors import LongtakeError, MediaError, MissingExtra, RunError
from longtake.index.film import Film
from longtake.index.layers import Advance, ignore
from longtake.index.source import fingerprint
from longtake.index.store import private_folder
from longtake.index.tasks import TASKS, tasks
from longtake.library.catalog import Entry, Facts
from longtake.library.collection import Library
from longtake.runner.films import open_film, open_store
from longtake.video.container import FileVersion, FoundFile, file_version, films_in, open_container
from longtake.video.subtitles import sidecar

State: TypeAlias = Literal["new", "known", "moved", "changed", "copy"]


@dataclass(frozen=True)
class SurveyedFile:
    """A file as the survey found it."""

    path: Path
    state: State
    entry: Entry


@dataclass(frozen=True)
class AddProgress:
    """How far adding has come."""

    film: Entry
    part: str
    job: int
    """Number of this job, from 1."""
    jobs: int
    left: float | None
    """Seconds that the rest will take at the speed so far; ``None`` until every part was measured
    once."""


@dataclass
class AddReport:
    """What adding did."""

    surveyed: list[SurveyedFile] = field(default_factory=list)
    failed: list[tuple[Path, str]] = field(default_factory=list)
    indexed: list[str] = field(default_factory=list)
    """Fingerprints of the films that got new rows."""
    dropped: list[str] = field(default_factory=list)
    """Films whose layers had to go to keep the cache below its limit; they can be searched on."""

    def count(self, state: State) -> int:
        """Files in a state."""
        return sum(each.state == state for each in self.surveyed)


@dataclass
class _Pace:
    """Seconds of work per second of film, by part."""

    work: dict[str, float] = field(default_factory=dict)
    film: dict[str, float] = field(default_factory=dict)

    def note(self, part: str, seconds: float, duration: float) -> None:
        self.work[part] = self.work.get(part, 0.0) + seconds
        self.film[part] = self.film.get(part, 0.0) + duration

    def left(self, jobs: Sequence[tuple[Entry, str]]) -> float | None:
        total = 0.0
        for entry, part in jobs:
            if not self.film.get(part):
                return None
            total += entry.duration * self.work[part] / self.film[part]
        return total


class Adder:
    """Adds films; ``on_survey`` and ``on_job`` hear about every file and every job.

    Files that are not ``allowed`` are left alone.
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
        self._pace = _Pace()
        self._evicted = time.monotonic()

    def add(self, paths: Sequence[Path], *, failed: Mapping[Path, str] | None = None) -> AddReport:
        """Add the films at some paths and below some folders.

        Films that have ``failed`` already, while a cluster indexed them, are not tried again.
        """
        failed = failed or {}
        self.report.failed += failed.items()
        # the catalogue is read once: asking it for every file would make a large folder slow
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

    def survey(self, place: FoundFile, known: object = None) -> SurveyedFile:
        """Recognise one file and enter it into the catalogue."""
        catalogue = self.library.catalogue
        version = _version(place.path)
        before = getattr(known, "fingerprint", "")
        same = before and getattr(known, "version", None) == version
        mark = before if same else fingerprint(place.path)
        entry = catalogue.entry(mark)
        state: State = "known"
        if entry is None:
            self._describe(place, mark, self._duration(place.path))
            state = "new"
        elif place.path not in entry.paths:
            state = "moved" if entry.missing else "copy"
        if entry is not None and state == "moved":
            # its name, and what its name and its folders say, moved with it
            self._describe(place, mark, entry.duration)
        if not same:
            state = self._place(place.path, mark, version, entry, state)
        if self.tags:
            catalogue.tag(mark, self.tags)
        entered = catalogue.entry(mark)
        assert entered is not None  # just described
        return SurveyedFile(place.path, state, entered)

    def index(self, entries: Sequence[Entry]) -> None:
        """Index what is missing of some films."""
        identity = self.library.identity()
        held = self.library.index.films()
        unique = {entry.fingerprint: entry for entry in entries}
        open_ones = [
            entry
            for entry in unique.values()
            if entry.complete != self._complete(identity, entry) or entry.fingerprint not in held
        ]
        jobs = self._jobs(open_ones)
        busy: list[tuple[Entry, str]] = []
        for number, (entry, part) in enumerate(jobs, start=1):
            left = self._pace.left(jobs[number - 1 :])
            progress = AddProgress(entry, part, number, len(jobs), left)
            if not self._job(entry, part, progress, wait=False):
                busy.append((entry, part))
        # by now the other process may be done with these; otherwise wait for it
        for number, (entry, part) in enumerate(busy, start=1):
            self._job(entry, part, AddProgress(entry, part, number, len(busy), None), wait=True)
        for entry in open_ones:
            self._finish(entry, identity)
        # part by part means that rows were replaced more than once
        if self.library.index.dead() > 0.3:
            self.library.index.compact()

    def _jobs(self, entries: Sequence[Entry]) -> list[tuple[Entry, str]]:
        """Every film part by part, the cheapest part first."""
        parts = [part for part in TASKS if part in self.parts]
        # a folder can be searched by its subtitles long before its pictures are encoded
        return [(entry, part) for part in parts for entry in entries]

    def _job(self, entry: Entry, part: str, progress: AddProgress, *, wait: bool) -> bool:
        """Do one part of one film; returns ``False`` if another process works on the film."""
        try:
            with self._claimed(entry, wait=wait) as claimed:
                if not claimed:
                    return False
                self._build(entry, part, progress)
        except (MediaError, MissingExtra, RunError) as error:
            # the other films may be fine
            self.library.catalogue.failed(entry.fingerprint, str(error))
            self.report.failed.append((entry.path, str(error)))
        return True

    def _build(self, entry: Entry, part: str, progress: AddProgress) -> None:
        film = self._open(entry)
        if film is None:
            return
        task = next(task for task in tasks(film) if task.name == part)
        advance = self._on_job(progress)
        began = time.perf_counter()
        if not task.done():
            task.build(advance)
            self._pace.note(part, time.perf_counter() - began, entry.duration)
        if self.library.derive(entry, film):
            self.report.indexed.append(entry.fingerprint)
        self._evict(entry.fingerprint)

    def _open(self, entry: Entry) -> Film | None:
        """The film, unless its content changed since the survey: the next survey sees that."""
        film = open_film(entry.path, self.library.settings, senses=self.library.perception)
        if film.fingerprint != entry.fingerprint:
            return None
        film.video  # noqa: B018  makes its folder in the cache, which may have been cleared
        return film

    def _finish(self, entry: Entry, identity: str) -> None:
        """Mark a film as complete, so that the next run need not open it."""
        failed = {path for path, _ in self.report.failed}
        if entry.path in failed or set(self.parts) != set(TASKS):
            return
        self.library.catalogue.complete(entry.fingerprint, self._complete(identity, entry))

    def _complete(self, identity: str, entry: Entry) -> str:
        # subtitles beside a film may appear or change without the film
        beside = sidecar(entry.path)
        return identity if beside is None else f"{identity}:{file_version(beside)[2:]}"

    def _place(
        self, path: Path, mark: str, version: FileVersion, entry: Entry | None, state: State
    ) -> State:
        """Enter where a film lies, and clear away what it replaces."""
        catalogue = self.library.catalogue
        replaced = catalogue.place(path, mark, version)
        if state == "moved" and entry is not None:
            for old in entry.paths:
                catalogue.forget_file(old)
        if not replaced:
            return state
        # the same name with another content: what the user said about it still holds
        catalogue.tag(mark, catalogue.given_tags(replaced))
        self.library.remove([replaced])
        return "changed"

    def _describe(self, place: FoundFile, mark: str, duration: float) -> None:
        facts = read_facts(place.path, duration, place.root, self.library.settings.media)
        self.library.catalogue.describe(mark, facts)

    def _duration(self, path: Path) -> float:
        # opening a film stores its packet table, which indexing needs anyway
        film = open_film(path, self.library.settings, senses=self.library.perception)
        return film.duration

    def _evict(self, keep: str) -> None:
        # not after every job: finding the size of the cache walks through all of it
        if time.monotonic() - self._evicted < 60.0:
            return
        self._evicted = time.monotonic()
        store = open_store(self.library.settings)
        self.report.dropped += [use.name for use in store.evict(keep=keep)]

    @contextmanager
    def _claimed(self, entry: Entry, *, wait: bool) -> Iterator[bool]:
        """Hold a film; yields whether it could be had. A process that dies releases its films."""
        folder = private_folder(self.library.folder / "locks")
        lock = FileLock(folder / entry.fingerprint, mode=0o600)
        try:
            lock.acquire(timeout=-1 if wait else 0)
        except Timeout:
            yield False
            return
        try:
            yield True
        finally:
            lock.release()


def rebuild(library: Library, advance: Advance = ignore) -> list[str]:
    """Make a library again from what is there, whatever is damaged; returns what was lost.

    Films that a damaged catalogue forgot are entered again where the cache last saw them. The index
    is deleted and derived from the films' layers.
    """
    try:
        indexed = set(library.index.films())
    except LongtakeError:
        indexed = set()  # damaged
    lost = []
    if aside := library.catalogue.set_aside_if_damaged():
        lost.append(f"{aside}: the damaged catalogue, with the tags that you gave")
    known = {entry.fingerprint for entry in library.catalogue.entries()}
    lost += _enter_again(library, indexed - known)
    library.delete_index()
    entries = library.catalogue.entries()
    for number, entry in enumerate(entries, start=1):
        try:
            library.derive(entry)
        except LongtakeError as error:
            lost.append(f"{error}; search no longer finds the film")
        advance(number / len(entries))
    return lost


def _enter_again(library: Library, fingerprints: Collection[str]) -> list[str]:
    """Enter films of the index into the catalogue; returns what cannot be entered."""
    uses = open_store(library.settings).films()
    places = {use.fingerprint: Path(use.path) for use in uses if use.path}
    adder, lost = Adder(library), []
    for identity in sorted(fingerprints):
        path = places.get(identity)
        try:
            if path is None:
                raise RunError(f"{identity}: nothing tells where this film is; add it again")
            adder.survey(FoundFile(path, None))
        except LongtakeError as error:
            lost.append(str(error))
    return lost


EVERY = 5.0
"""Seconds between looks."""
Snapshot: TypeAlias = dict[Path, FileVersion]


def _version(path: Path) -> FileVersion:
    """The version of a film by its change time: its modification time can be set to any value."""
    version = file_version(path)
    with suppress(FileNotFoundError):
        return version._replace(modified=path.stat().st_ctime_ns)
    return version


def snapshot(paths: Sequence[Path]) -> Snapshot:
    """The films below some folders as they are now; folders that are gone are left out."""
    there = [path for path in paths if path.exists()]
    return {place.path: _version(place.path) for place in films_in(there)}


def watch(
    library: Library,
    paths: Sequence[Path],
    add: Callable[[], AddReport],
    *,
    on_round: Callable[[AddReport], None] = lambda _: None,
    every: float = EVERY,
    sleep: Callable[[float], None] = time.sleep,
    rounds: int | None = None,
) -> None:
    """Add what is there, then whatever appears or changes, until interrupted.

    ``rounds`` ends it after so many looks, for tests.
    """
    # looked at first: a film that appears while the others are added is new in the next round
    done = before = snapshot(paths)
    on_round(add())
    looked = 0
    while rounds is None or looked < rounds:
        sleep(every)
        looked += 1
        now = snapshot(paths)
        # two looks that agree: whoever is copying files here has finished
        if now == before and now != done:
            library.catalogue.watch(path.absolute() for path in paths if path.is_dir())
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


def read_facts(
    path: Path, duration: float, root: Path | None = None, limits: MediaSettings | None = None
) -> Facts:
    """What is known about a film; folders below ``root`` become tags."""
    with open_container(path, limits) as container:
        metadata = {key.casefold(): value for key, value in container.metadata.items()}
    return facts_from(path, metadata, duration, root)


def facts_from(
    path: Path, metadata: Mapping[str, str], duration: float, root: Path | None = None
) -> Facts:
    """The same from metadata that were read before; their keys are in lower case."""
    title = " ".join(metadata.get("title", "").split())[:200]
    named = date_in_name(path.stem)
    recorded = next((day for key in _DATES if (day := _date(metadata.get(key, "")))), "")
    place = next((metadata[key].strip() for key in _PLACES if metadata.get(key)), "")
    tags = [*tags_in_name(path.stem), *_folder_tags(path, root)]
    for key in _TAGS:
        tags += re.split(r"[;,/]", metadata.get(key, ""))
    clean = dict.fromkeys(tag.strip().casefold() for tag in tags if tag.strip())
    # people who put a date into a name mean it; a container's date may be that of a conversion
    return Facts(title or path.stem, duration, named or recorded, _position(place), tuple(clean))


def date_in_name(name: str) -> str:
    """``2025-03-14`` in ``VID_20250314_101112``; a month or a year if that is all there is."""
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


def tags_in_name(name: str) -> list[str]:
    """``#talk`` and ``[raw]`` in a file name."""
    return [*_HASHTAG.findall(name), *_BRACKETS.findall(name)]


def _folder_tags(path: Path, root: Path | None) -> list[str]:
    """The names of the folder that was added and of those between it and the film."""
    if root is None:
        return []
    below = path.parent.relative_to(root).parts
    names = [root.name, *below]
    # a folder that is only a date is no subject
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
