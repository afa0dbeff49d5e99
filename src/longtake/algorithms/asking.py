"""Recognises what a question asks for from its words."""

from __future__ import annotations

import re

COUNTING = re.compile(r"\bhow many\b|\bhow often\b|\bnumber of\b|\bcount\b", re.IGNORECASE)
ORDER = re.compile(
    r"\b(?:before|after|when|first|last|finally|next|earlier|later|order|sequence|chronological)\b",
    re.IGNORECASE,
)
READING = re.compile(
    r"\b(?:text|signs?|subtitles?|captions?|written|writes?|reads?|words?|letters?|titles?"
    r"|labels?|logos?|scoreboard)\b",
    re.IGNORECASE,
)
HEARING = re.compile(
    r"\b(?:says?|said|tells?|told|hear|hears|heard|sounds?|music|songs?|sings?|voice|speaks?"
    r"|spoken|talks?|mentions?|mentioned|narrator|audio)\b",
    re.IGNORECASE,
)
# "which" must come first: "Why does the man not eat?" asks for what is so
_NEGATED = re.compile(
    r"\bwhich\b[^?.]*?(?:\bnot\b|n['’]t\b|\bnever\b|\bincorrect\b|\bfalse\b|\buntrue\b)"
    r"|\bexcept\b",
    re.IGNORECASE,
)
# in capitals it is the point of the question, wherever it stands
_SHOUTED = re.compile(r"\bNOT\b")


def negated(text: str) -> bool:
    """Return whether the question asks for the option that does *not* hold: "… is NOT shown?"."""
    return bool(_NEGATED.search(text) or _SHOUTED.search(text))
