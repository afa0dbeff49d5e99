"""Options and output that the commands on libraries share."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import click

from longtake.cli.options import FOLDER, F, add_options
from longtake.config import Settings
from longtake.library import Entry, Library

T = TypeVar("T")

where_option = click.option(
    "--where",
    default="",
    metavar="FILTER",
    help='Only these films, as in "tag=lecture and year>=2025"; fields: tag, name, path, place, '
    "date, year, minutes.",
)


def library_option(command: F) -> F:
    """Add ``--library`` and ``--backend``; the command gets ``folder`` and ``backend``."""
    options = [
        click.option(
            "--library",
            "folder",
            type=FOLDER,
            metavar="DIR",
            help="The library's folder.  [default: 'library' in the cache]",
        ),
        click.option(
            "--backend",
            default="",
            metavar="NAME",
            help="Its index: embedded, or lancedb (extra: library).  [default: the existing one]",
        ),
    ]
    return add_options(command, options)


def open_library(folder: Path | None, backend: str, settings: Settings) -> Library:
    """The library that the options name."""
    return Library(folder, settings, backend=backend)


def entry_data(entry: Entry) -> dict[str, Any]:
    """A film for ``--json``."""
    return {
        "fingerprint": entry.fingerprint,
        "name": entry.name,
        "path": str(entry.path),
        "missing": entry.missing,
        "duration": entry.duration,
        "date": entry.date or None,
        "place": entry.place or None,
        "tags": list(entry.tags),
        "problem": entry.problem or None,
    }
