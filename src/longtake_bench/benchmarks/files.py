"""What loaders share: reading annotation files and opening videos."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from longtake.config import Settings
from longtake.errors import ConfigError, MissingExtra
from longtake.footage.plain import CaptionedFootage
from longtake.footage.protocol import Footage
from longtake.perception.minilm import MiniLM
from longtake.runner.films import VIDEO_SUFFIXES, open_film


@contextmanager
def malformed_files(problem: str) -> Iterator[None]:
    """Turn the errors that malformed files cause inside the block into a ConfigError."""
    try:
        yield
    except (
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        OverflowError,
        RecursionError,
        csv.Error,
    ) as error:
        raise ConfigError(f"{problem} ({type(error).__name__}: {error})") from error


@dataclass
class Files:
    """Annotation files of a folder; the hash of each file that is read is kept for the spec."""

    folder: Path
    hashes: dict[str, str] = field(default_factory=dict)

    def json(self, name: str) -> Any:
        """Read a JSON file."""
        return json.loads(self._bytes(name))

    def lines(self, name: str) -> list[Any]:
        """Read a JSON Lines file."""
        return [json.loads(line) for line in self.words(name)]

    def rows(self, name: str) -> list[dict[str, str]]:
        """Read a CSV file with a header."""
        # "-sig" drops the byte order mark that spreadsheets write
        return list(csv.DictReader(self._bytes(name).decode("utf-8-sig").splitlines()))

    def parquet(self, name: str) -> list[dict[str, Any]]:
        """Read a Parquet file."""
        path = self.note(name)
        try:
            from pyarrow import ArrowException, parquet  # late: an extra
        except ImportError as error:
            raise MissingExtra("parquet", f"reading {name}") from error
        try:
            rows: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
        except ArrowException as error:
            raise ConfigError(f"{path}: not a Parquet file ({error})", key=str(path)) from error
        return rows

    def words(self, name: str) -> list[str]:
        """Read the lines of a text file that are not empty."""
        lines = self._bytes(name).decode("utf-8").splitlines()
        return [line.strip() for line in lines if line.strip()]

    def note(self, name: str) -> Path:
        """The path of a file that is read later; its hash is taken now."""
        self._bytes(name)
        return self.folder / name

    def has(self, name: str) -> bool:
        """Whether a file exists."""
        return (self.folder / name).is_file()

    def first(self, *names: str) -> str:
        """The first of these files that exists; the first name if none does."""
        return next(filter(self.has, names), names[0])

    def subfolder(self, *names: str) -> Path:
        """The first of these folders that exists; the first name if none does."""
        folders = [self.folder / name for name in names]
        return next((folder for folder in folders if folder.is_dir()), folders[0])

    def _bytes(self, name: str) -> bytes:
        path = self.folder / name
        try:
            data = path.read_bytes()
        except OSError as error:
            problem = f"{path}: cannot be read ({error.strerror})"
            raise ConfigError(problem, key=str(path)) from error
        self.hashes[name] = hashlib.sha256(data).hexdigest()
        return data


@dataclass(frozen=True)
class FilmSource:
    """Videos as files in a folder or its subfolders, by file name with or without the suffix."""

    folder: Path
    settings: Settings = field(default_factory=Settings)
    subtitles: Path | None = None
    """Folder of subtitle files."""
    subtitle_pattern: str = "{video}.srt"
    subtitle_begins: Mapping[str, float] = field(default_factory=dict)
    """The time in the subtitles at which a video begins, if it is a part of a longer one."""
    names: Mapping[str, str] = field(default_factory=dict)
    """File names of videos whose files are named otherwise."""

    def footage(self, video: str) -> Footage:
        """The film with that name."""
        path = self.path(video)
        begin = self.subtitle_begins.get(video, 0.0)
        subtitles = self._subtitles_of(path)
        film = open_film(path, self.settings, subtitles=subtitles, subtitles_begin=begin)
        # what an earlier run recognised must not change what this one is shown
        film.words.isolate()
        return film

    def path(self, video: str) -> Path:
        """The file of a video."""
        name = self.names.get(video, video)
        subfolders = self.folder.iterdir() if self.folder.is_dir() else ()
        for folder in (self.folder, *sorted(filter(Path.is_dir, subfolders))):
            for suffix in ("", *VIDEO_SUFFIXES):
                path = folder / f"{name}{suffix}"
                if path.is_file():
                    return path
        raise ConfigError(f"{self.folder / video}: no such video", key=video)

    def _subtitles_of(self, film: Path) -> Path | None:
        """The subtitle file of a film; some films of a benchmark have none."""
        if self.subtitles is None:
            return None
        path = self.subtitles / self.subtitle_pattern.format(video=film.stem)
        return path if path.is_file() else None


@dataclass(frozen=True)
class CaptionSource:
    """Videos given as captions alone, one per second, in one JSON file."""

    file: Path

    def footage(self, video: str) -> Footage:
        """The captions of the video with that name."""
        with malformed_files(f"{self.file}: not captions by video"):
            captions = self._captions
        if video not in captions:
            raise ConfigError(f"{self.file}: no captions of {video}", key=video)
        return CaptionedFootage(video, captions[video], self._sentences)

    @cached_property
    def _captions(self) -> dict[str, list[str]]:
        videos = json.loads(self.file.read_text(encoding="utf-8"))
        return {video: _in_order(captions) for video, captions in videos.items()}

    @cached_property
    def _sentences(self) -> MiniLM:
        return MiniLM()

    def __reduce__(self) -> Any:
        # a worker loads captions and models itself: sending them would be slower
        return CaptionSource, (self.file,)


def _in_order(captions: Mapping[str, str] | Sequence[str]) -> list[str]:
    """Captions by time: those of NExT-QA are keyed by second, those of EgoSchema are a list."""
    if isinstance(captions, Mapping):
        return [captions[second] for second in sorted(captions, key=int)]
    return list(captions)


def without_letter(option: str) -> str:
    """``B. Blue.`` as ``Blue.``: the letters of options are added when a question is shown."""
    head, dot, rest = option.partition(". ")
    return rest if dot and len(head) == 1 and head.isalpha() else option
