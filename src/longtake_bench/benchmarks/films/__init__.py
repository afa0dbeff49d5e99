"""Questions about real films: some that words in the film answer, others that only eyes could.

They were written by looking at the films, before any method was run on them. The films themselves
are not part of longtake; ``films.toml`` says where each one can be found, and any file in the data
folder with the right content is used, whatever its name.

A question is of one of three kinds. ``words``: speech or on-screen text answers it, and an answer
is right if it holds one of the accepted phrases. ``sight`` and ``absent``: only the pictures answer
it, or nothing does; without a model that sees, the right outcome is an abstention.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from longtake.config import Settings
from longtake.errors import ConfigError
from longtake.footage.protocol import Footage
from longtake.index.source import fingerprint
from longtake.runner.films import open_film
from longtake.types import Question, Segment
from longtake_bench.benchmarks import (
    NOT_TOLD,
    Benchmark,
    BenchmarkInfo,
    BenchmarkQuestion,
    LabelledQuestion,
)

SPLITS = ("dev", "test", "all")
OPTIONS = {
    "split": "dev (thresholds are chosen on it), test (default) or all",
    "films": "all (default), or present: leave out questions about films that are not there",
}


@dataclass(frozen=True)
class FilmFiles:
    """Films by name, as files that were found by their content."""

    paths: Mapping[str, Path]
    settings: Settings = field(default_factory=Settings)

    def footage(self, video: str) -> Footage:
        """The film with that name."""
        return open_film(self.paths[video], self.settings)


def load(folder: Path, options: Mapping[str, str]) -> Benchmark:
    """The questions of a split, and the films they are about."""
    split, which = options.get("split", "test"), options.get("films", "all")
    if split not in SPLITS:
        raise ConfigError(f"films: split must be one of {', '.join(SPLITS)}, not {split}")
    if which not in ("all", "present"):
        raise ConfigError(f"films: films must be all or present, not {which}")
    rows = [row for row in questions() if split in (row["split"], "all")]
    wanted = {row["film"] for row in rows}
    known = [film for film in films() if film["name"] in wanted]
    paths = find_films(folder, known)
    missing = [film for film in known if film["name"] not in paths]
    if missing and (which == "all" or not paths):
        raise ConfigError(_where_from(folder, missing))
    items = [_item(row) for row in rows if row["film"] in paths]
    hashes = {film["name"]: film["fingerprint"] for film in known if film["name"] in paths}
    hashes["questions.jsonl"] = hashlib.sha256(_text("questions.jsonl").encode()).hexdigest()
    return Benchmark("films", items, FilmFiles(paths), hashes, {"split": split})


def questions() -> list[dict[str, Any]]:
    """All questions, with what scoring needs."""
    return [json.loads(line) for line in _text("questions.jsonl").splitlines()]


def films() -> list[dict[str, Any]]:
    """What is known about the films."""
    return list(tomllib.loads(_text("films.toml"))["film"])


def find_films(folder: Path, known: Sequence[Mapping[str, Any]]) -> dict[str, Path]:
    """The files of a folder and its subfolders that are these films, by the films' names."""
    by_size: dict[int, list[Mapping[str, Any]]] = {}
    for film in known:
        by_size.setdefault(film["bytes"], []).append(film)
    paths = {}
    for path in sorted(folder.rglob("*")):
        # the size is checked first, so that no other file is read
        candidates = by_size.get(path.stat().st_size, []) if path.is_file() else []
        for film in candidates:
            if fingerprint(path) == film["fingerprint"]:
                paths[film["name"]] = path
    return paths


def _item(row: Mapping[str, Any]) -> LabelledQuestion:
    accepted = tuple(row["accept"])
    return LabelledQuestion(
        BenchmarkQuestion(row["id"], row["film"], Question(row["question"])),
        accepted[0] if accepted else NOT_TOLD,
        {"kind": row["kind"]},
        # what only eyes can find is not to be cited by those who only read
        tuple(Segment(start, end) for start, end in row["evidence"]) if accepted else (),
        accepted[1:],
    )


def _text(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")


def _where_from(folder: Path, missing: Sequence[Mapping[str, Any]]) -> str:
    listed = "; ".join(f"{film['name']}: {film['origin']}" for film in missing)
    return f"{folder} lacks films (--of films=present leaves them out): {listed}"


ABOUT = BenchmarkInfo(
    "Questions about real films that words answer, or only eyes",
    "films that ship inside packages; a run without them says where each is from",
    "the films, under any name",
    "Apache-2.0 (questions); each film has its own",
    load=load,
    options=OPTIONS,
)
