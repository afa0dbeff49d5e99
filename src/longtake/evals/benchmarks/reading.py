"""What the loaders share: files by name, and where videos come from."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from longtake.config import Settings, cache_folder
from longtake.errors import ConfigError
from longtake.footage.captioned import CaptionedFootage
from longtake.footage.protocol import Footage
from longtake.perception.minilm import MiniLM
from longtake.perception.senses import Senses
from longtake.session.films import open_film
from longtake.types import LETTERS

VIDEO_SUFFIXES = (".mp4", ".mkv", ".webm", ".avi", ".mov")


@dataclass
class Files:
    """Annotation files of one folder; remembers the hash of each that is read."""

    folder: Path
    hashes: dict[str, str] = field(default_factory=dict)

    def json(self, name: str) -> Any:
        """A JSON file."""
        return json.loads(self._bytes(name))

    def lines(self, name: str) -> list[Any]:
        """A JSON-lines file."""
        return [
            json.loads(line)
            for line in self._bytes(name).decode("utf-8").splitlines()
            if line.strip()
        ]

    def rows(self, name: str) -> list[dict[str, str]]:
        """A CSV file with a header."""
        return list(csv.DictReader(self._bytes(name).decode("utf-8-sig").splitlines()))

    def words(self, name: str) -> list[str]:
        """A list, one a line."""
        return [
            line.strip() for line in self._bytes(name).decode("utf-8").splitlines() if line.strip()
        ]

    def note(self, name: str) -> Path:
        """A file that somebody else will read; its hash is remembered now."""
        self._bytes(name)
        return self.folder / name

    def has(self, name: str) -> bool:
        """Whether a file is there."""
        return (self.folder / name).is_file()

    def _bytes(self, name: str) -> bytes:
        path = self.folder / name
        try:
            data = path.read_bytes()
        except OSError as error:
            raise ConfigError(
                f"{path}: cannot be read ({error.strerror})", key=str(path)
            ) from error
        self.hashes[name] = hashlib.sha256(data).hexdigest()
        return data


@dataclass(frozen=True)
class FilmSource:
    """Videos as files in a folder, by name with or without their suffix."""

    folder: Path
    settings: Settings = field(default_factory=Settings)
    subtitles: Path | None = None
    """Folder of subtitle files, ``<video>.srt`` or as the benchmark names them."""
    subtitle_pattern: str = "{video}.srt"
    subtitle_begins: Mapping[str, float] = field(default_factory=dict)
    """Where a video is a piece of a longer one whose subtitles came with it: the time in them at which it begins."""

    def footage(self, video: str) -> Footage:
        """The film of that name."""
        candidates = [
            self.folder / video,
            *(self.folder / f"{video}{suffix}" for suffix in VIDEO_SUFFIXES),
        ]
        path = next((p for p in candidates if p.is_file()), None)
        if path is None:
            raise ConfigError(f"{self.folder / video}: no such video", key=video)
        lines = (
            self.subtitles / self.subtitle_pattern.format(video=path.stem)
            if self.subtitles
            else None
        )
        begin = self.subtitle_begins.get(video, 0.0)
        return open_film(
            path,
            self.settings,
            subtitles=lines if lines and lines.is_file() else None,
            subtitles_begin=begin,
        )


@dataclass(frozen=True)
class CaptionSource:
    """Videos known by their captions alone, one a second, from one JSON file."""

    file: Path

    def footage(self, video: str) -> Footage:
        """The captions of that video."""
        if video not in self._captions:
            raise ConfigError(f"{self.file}: no captions of {video}", key=video)
        return CaptionedFootage(video, self._captions[video], self._sentences)

    @cached_property
    def _captions(self) -> dict[str, list[str]]:
        found = json.loads(self.file.read_text(encoding="utf-8"))
        # NExT-QA's are keyed by second, EgoSchema's are a list
        return {
            video: [c[k] for k in sorted(c, key=int)] if isinstance(c, dict) else list(c)
            for video, c in found.items()
        }

    @cached_property
    def _sentences(self) -> MiniLM:
        settings = Settings()
        return Senses(settings.perception, cache_folder(settings)).sentences

    def __reduce__(self) -> Any:
        # what was loaded stays behind when a source travels to a worker
        return CaptionSource, (self.file,)


def letter(index: int) -> str:
    """The letter of option ``index``, counted from 0."""
    return LETTERS[index]


def without_letter(option: str) -> str:
    """``B. Blue.`` as ``Blue.``: benchmarks that letter their options get ours instead."""
    head, dot, rest = option.partition(". ")
    return rest if dot and len(head) == 1 and head.isalpha() else option
