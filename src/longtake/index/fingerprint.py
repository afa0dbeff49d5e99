"""A film's identity: its content, not its name or location."""

from __future__ import annotations

import hashlib
from pathlib import Path

from longtake.media.container import check_plain_file

PIECE = 2**20
"""Bytes hashed at the head, middle and tail."""


def fingerprint(path: Path, *, full: bool = False) -> str:
    """Hash of the size, head, middle and tail of a file; of every byte with ``full``.

    A film that is moved or renamed keeps its store; a film edited in place gets a new one. Two
    films of equal size that differ only between the hashed pieces share a fingerprint; ``full``
    tells them apart at the cost of reading the whole file.
    """
    size = check_plain_file(path)
    # the size and the kind of hash go in too, so the two kinds never collide
    hasher = hashlib.blake2b(f"{'full' if full else 'parts'}:{size}:".encode(), digest_size=16)
    with path.open("rb") as file:
        if full or size <= 3 * PIECE:
            while piece := file.read(PIECE):
                hasher.update(piece)
        else:
            for offset in (0, size // 2, size - PIECE):
                file.seek(offset)
                hasher.update(file.read(PIECE))
    return hasher.hexdigest()
