"""Finding a phrase in text that was read or heard imperfectly.

On-screen text loses its spaces and a letter here and there ("ALLRIGHTS RESERVED"), speech loses endings. So
both sides are squeezed to letters and digits, and the best-matching stretch of the text is scored.
"""

from __future__ import annotations

import unicodedata

EXACT = 1.0
SHORTEST = 3
"""A phrase with fewer letters matches only itself as a whole word: two letters are in everything."""


def squeeze(text: str) -> str:
    """Letters and digits only, lower case, accents and width variants removed: ``Café №7`` is ``cafeno7``."""
    plain = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in plain if letter.isalnum())


def match(phrase: str, text: str) -> float:
    """How well ``text`` holds ``phrase``, 0 to 1: ``1 − edits ÷ length``.

    Verbatim up to case, spaces and marks is 1. Edits are insertions, deletions and substitutions between the
    squeezed phrase and the stretch of the squeezed text that fits it best (Sellers 1980).
    """
    needle, hay = squeeze(phrase), squeeze(text)
    if not needle or not hay:
        return 0.0
    if len(needle) < SHORTEST:
        return EXACT if needle in {squeeze(word) for word in text.split()} else 0.0
    if needle in hay:
        return EXACT
    return max(0.0, 1 - _edits(needle, hay) / len(needle))


def _edits(needle: str, hay: str) -> int:
    """Fewest edits between ``needle`` and any stretch of ``hay``."""
    column = list(range(len(needle) + 1))
    fewest = column[-1]
    for letter in hay:
        diagonal, column[0] = column[0], 0  # a stretch may begin anywhere
        for row, wanted in enumerate(needle, start=1):
            here = min(diagonal + (letter != wanted), column[row] + 1, column[row - 1] + 1)
            diagonal, column[row] = column[row], here
        fewest = min(fewest, column[-1])
    return fewest


def place(phrase: str, text: str) -> float:
    """Where in ``text`` the phrase begins, as a share of its letters, 0 to 1; 0 where it cannot be told.

    Of a phrase that is not there verbatim, its longest word that is there tells.
    """
    hay = squeeze(text)
    words = sorted(map(squeeze, phrase.split()), key=len, reverse=True)
    for needle in (squeeze(phrase), *words):
        if len(needle) >= SHORTEST and (begin := hay.find(needle)) >= 0:
            return begin / len(hay)
    return 0.0
