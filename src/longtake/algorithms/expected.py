"""What kind of thing a question asks for, and whether a text holds one.

A passage that names nobody does not say who. For numbers and colours this is certain enough to turn
an answer down; for names it only makes a passage more promising, since names are hard to recognise.
"""

from __future__ import annotations

import re
from typing import Literal

from longtake.algorithms import lexical

Kind = Literal["number", "colour", "name"]

CERTAIN: frozenset[Kind] = frozenset({"number", "colour"})
"""Kinds that every answer to the question must hold."""
RARE = 1.2
"""Weight (:func:`~longtake.algorithms.lexical.idf`) from which a capitalised word may be a name."""

# the first that matches counts: "what is the number of the user" asks for a number
_ASKED: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("colour", re.compile(r"\b(?:what|which)\s+colou?rs?\b", re.IGNORECASE)),
    (
        "number",
        re.compile(
            r"\bhow\s+(?:many|much|old|tall|heavy|far)\b|\b(?:what|which)\s+year\b"
            r"|\b(?:number|percentage)\s+of\b",
            re.IGNORECASE,
        ),
    ),
    (
        "name",
        re.compile(
            r"\b(?:who|whom|whose|where|name|named)\b"
            r"|\b(?:what|which)\s+(?:city|town|country|state|company|person|band|foundation)\b",
            re.IGNORECASE,
        ),
    ),
)
_NUMBER = re.compile(
    r"\d|\b(?:zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen"
    r"|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million|billion"
    r"|dozens?|half|once|twice|none|nothing|nobody|free|no)\b",
    re.IGNORECASE,
)
_COLOUR = re.compile(
    r"\b(?:black|white|gr[ea]y|red|green|blue|yellow|orange|purple|violet|pink|brown|beige"
    r"|turquoise|teal|cyan|magenta|silver|gold|golden|colou?rless|transparent)\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"[.!?:/]\s+")
_WORD = re.compile(r"[^\W\d_]+")


def expected(question: str) -> Kind | None:
    """The kind of thing that a question asks for; ``None`` if its words do not tell."""
    for kind, pattern in _ASKED:
        if pattern.search(question):
            return kind
    return None


def holds(kind: Kind, text: str) -> bool:
    """Whether a text holds a thing of that kind."""
    if kind == "number":
        return _NUMBER.search(text) is not None
    if kind == "colour":
        return _COLOUR.search(text) is not None
    return any(_names(sentence) for sentence in _SENTENCE.split(text))


def _names(sentence: str) -> bool:
    """Whether a sentence holds a rare capitalised word; its first word has a capital anyway.

    A line that consists of capitalised words, as in credits, may begin with a name.
    """
    words = _WORD.findall(sentence)
    titled = [word[0].isupper() and len(word) > 1 for word in words]
    first = 0 if len(words) > 1 and all(titled) else 1
    for word, has_capital in zip(words[first:], titled[first:], strict=True):
        if has_capital and lexical.idf(word.lower()) >= RARE:
            return True
    return False
