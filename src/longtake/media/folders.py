"""Finds the films in folders."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from longtake.errors import MediaError

_NAMES = """
    3g2 3gp asf av1 avi divx dv f4v flv h264 hevc ivf m2ts m4v mkv mov mp4 mpeg mpg mts mxf nut ogm
    ogv rm rmvb ts vob webm wmv wtv
"""
SUFFIXES = frozenset(f".{name}" for name in _NAMES.split())
"""Names of files that are taken for films; a file that is named outright may have any name."""


class Place(NamedTuple):
    """A file, and the folder in which it was found."""

    path: Path
    root: Path | None
    """``None`` if the file itself was named."""


def films_in(paths: Sequence[Path]) -> Iterator[Place]:
    """The films below the given folders, and the given files, each once.

    Hidden files and folders are left out, and links to folders are not followed.
    """
    seen: set[Path] = set()
    for given in paths:
        path = given.absolute()
        if path.is_dir():
            places: Iterator[Place] = (Place(each, path) for each in _below(path))
        elif path.exists():
            places = iter([Place(path, None)])
        else:
            raise MediaError(given, "not_found", "no such file or folder")
        for place in places:
            if place.path not in seen:
                seen.add(place.path)
                yield place


def _below(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        # sorted in place, which also decides the order of the walk
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(parent) / name
            if path.suffix.casefold() in SUFFIXES and not name.startswith("."):
                yield path
