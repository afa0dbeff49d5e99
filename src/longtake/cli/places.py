"""Where outputs may go: never over an input, and never over a file that is something else."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from longtake.errors import ConfigError


@dataclass(frozen=True)
class Kind:
    """A kind of output, by the first bytes of the files that may be written again."""

    name: str
    begins: tuple[bytes, ...]


TRACE = Kind("a trace", (b'{"longtake_trace"',))
PAGE = Kind("a report", (b"<!doctype html>",))
TEAM = Kind("a team that select wrote", (b"# Chosen by longtake select",))
PICTURE = Kind("a PNG", (b"\x89PNG",))
NEW = Kind("empty", ())
"""Written only where nothing is yet."""

_PLOTS = {
    ".png": (b"\x89PNG",),
    ".jpg": (b"\xff\xd8",),
    ".jpeg": (b"\xff\xd8",),
    ".pdf": (b"%PDF",),
    ".svg": (b"<?xml",),
    ".svgz": (b"\x1f\x8b",),
    ".ps": (b"%!PS",),
    ".eps": (b"%!PS",),
    ".gif": (b"GIF8",),
    ".tif": (b"II*", b"MM\0*"),
    ".tiff": (b"II*", b"MM\0*"),
    ".webp": (b"RIFF",),
}


def plot_kind(path: Path) -> Kind:
    """Return the kind of plot that the suffix of a path stands for."""
    # an existing file with any other suffix is never overwritten
    return Kind(f"a {path.suffix[1:]} plot", _PLOTS.get(path.suffix.lower(), ()))


def check_place(path: Path, kind: Kind, *, inputs: Iterable[Path | None] = ()) -> None:
    """Raise if an output cannot be written or would destroy something; called before any work.

    ``inputs`` are the files that the command reads, and its other outputs.
    """
    folder = path.absolute().parent
    if not folder.is_dir():
        raise ConfigError(f"{path}: there is no folder {folder}")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise ConfigError(f"{path}: cannot be written")
    for other in inputs:
        if other is not None and _same_file(path, other):
            raise ConfigError(f"{path}: is also {other}, which it would overwrite")
    if path.is_file() and not _begins(path, kind):
        raise ConfigError(f"{path}: exists and is not {kind.name}; choose another file")


def _same_file(one: Path, two: Path) -> bool:
    """Whether two paths name one file, by whatever links."""
    if one.exists() and two.exists():
        return one.samefile(two)
    return one.resolve() == two.resolve()


def _begins(path: Path, kind: Kind) -> bool:
    """Whether a file is empty or begins as its kind does."""
    try:
        with path.open("rb") as file:
            head = file.read(64)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from error
    return not head or head.startswith(kind.begins)
