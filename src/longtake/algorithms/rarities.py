"""A table from words to rarities that is searched as it lies in a file.

Turning three hundred thousand words into a dictionary takes longer than a question may; finding a
few of them in three megabytes takes a millisecond each. A line holds the words of one rarity::

    1.25 harbour lantern …
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_PLAIN = re.compile(r"[a-z]+(?:'[a-z]+)?")


def is_plain(word: str) -> bool:
    """Whether a word can be in a packed table: lower-case English letters, as in ``you're``."""
    return _PLAIN.fullmatch(word) is not None


def pack(groups: Iterable[tuple[float, Iterable[str]]]) -> bytes:
    """The table of some groups of plain words, each with its rarity."""
    # every word stands between two spaces, the last of a line as well
    lines = [f"{rarity!r} {' '.join(words)} \n" for rarity, words in groups]
    return "".join(lines).encode()


def find(packed: bytes, word: str) -> float | None:
    """The rarity of a plain word; ``None`` if it is not in the table."""
    place = packed.find(f" {word} ".encode())
    if place < 0:
        return None
    start = packed.rfind(b"\n", 0, place) + 1
    return float(packed[start : packed.index(b" ", start)])
