"""Replaces a file as a whole, so that a failure leaves what was there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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
