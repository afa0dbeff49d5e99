"""Helpers without a domain: safe text, atomic files, clock times, process pools, stop flags."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def visible(text: str) -> str:
    """Return the text with control characters escaped; line breaks are kept.

    A file name must not move the cursor, change colours or fake a line of output.
    """
    return "".join(_shown(character) for character in text)


def _shown(character: str) -> str:
    if character.isprintable() or character == "\n":
        return character
    return character.encode("unicode_escape").decode()


def on_one_line(text: str) -> str:
    """Return the same without line breaks, runs of spaces joined."""
    return visible(" ".join(text.split()))


def disk_is_full(error: BaseException) -> bool:
    """Whether an error says that there is no room to write."""
    if isinstance(error, sqlite3.Error):
        return getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
    full = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    return isinstance(error, OSError) and error.errno in full


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a draft beside ``path``, with its suffix; it takes the name when the block succeeds.

    Links are followed. A device, or a file in a read-only folder, is written directly.
    """
    target = path.resolve()
    direct = target.exists() and not (target.is_file() and os.access(target.parent, os.W_OK))
    if direct:
        yield target
        return
    draft = target.with_name(f".{target.stem}.{os.getpid()}{target.suffix}")
    try:
        yield draft
        if target.exists():
            shutil.copymode(target, draft)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file's content, or leave it unchanged on failure."""
    import tempfile  # late: most commands write nothing

    prefix = f".{path.name}."
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=prefix, delete=False) as file:
        draft = Path(file.name)
    try:
        write_synced(draft, data)
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def write_synced(path: Path, data: bytes) -> None:
    """Write a file, which is on disk when this returns."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def version_of(package: str) -> str:
    """The version of an installed package; raises ``PackageNotFoundError`` if it is not there."""
    from importlib.metadata import version  # late: slow to import

    return version(package)
