"""Recognises what a question asks for from its words."""

from __future__ import annotations

import re
from functools import lru_cache

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
WHOLE = re.compile(
    r"\b(?:mostly|mainly|overall|in general|main|theme|topic|purpose|summar\w+|gist)\b"
    r"|\babout\s*\?",
    re.IGNORECASE,
)
# "Who leaves?" asks for one thing; "the man who leaves" must be found before the rest
NESTED = re.compile(r"(?<=\w )(?:who|whom|whose|that|which|where)\b", re.IGNORECASE)
STRETCH = re.compile(r"\bminutes?\b|\bat the (?:beginning|start|end)\b|\bhalf\b", re.IGNORECASE)
KINDS = {
    "counting": COUNTING,
    "whole": WHOLE,
    "stretch": STRETCH,
    "reading": READING,
    "hearing": HEARING,
    "order": ORDER,
    "nested": NESTED,
}
"""What a question can ask for; the first that matches is its kind (:func:`kind`)."""
PLAIN = "plain"
"""The kind of all other questions."""
# "which" must come first: "Why does the man not eat?" asks for what is so
_NEGATED = re.compile(
    r"\bwhich\b[^?.]*?(?:\bnot\b|n['’]t\b|\bnever\b|\bincorrect\b|\bfalse\b|\buntrue\b)"
    r"|\bexcept\b",
    re.IGNORECASE,
)
# in capitals it is the point of the question, wherever it stands
_SHOUTED = re.compile(r"\bNOT\b")


@lru_cache(maxsize=1024)
def kind(text: str) -> str:
    """The kind of a question, :data:`PLAIN` if none of :data:`KINDS` matches."""
    for name, pattern in KINDS.items():
        if pattern.search(text):
            return name
    return PLAIN


def negated(text: str) -> bool:
    """Return whether the question asks for the option that does *not* hold: "… is NOT shown?"."""
    return bool(_NEGATED.search(text) or _SHOUTED.search(text))
