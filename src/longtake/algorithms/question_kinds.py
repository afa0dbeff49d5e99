"""Recognises from a question's words what it asks for.

These are read, each from a list of words or phrases:

- :func:`kind`: how one has to look for the answer (count, read, listen, order events, …);
- :func:`answer_type`: what the answer must be (a number, a colour, a name), and :func:`holds`,
  whether a text has one;
- :func:`negated`: whether the option that does *not* hold is asked for;
- :func:`asks_for_account`, :func:`asks_about_all`, :func:`said_when`: whether several sentences,
  the gist of the film, or the moment at which something is said is asked for;
- :func:`asks_for_every` and :func:`may_ask_for_every`: whether all occurrences are asked for.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

from longtake.algorithms import lexical


def _words(*phrases: str) -> re.Pattern[str]:
    """Matches any of these words or phrases, regardless of case; each may be a pattern."""
    return re.compile(rf"\b(?:{'|'.join(phrases)})\b", re.IGNORECASE)


COUNTING = _words("how many", "how often", "number of", "count")
ORDER = _words(
    *("before", "after", "when", "first", "last", "finally", "next", "earlier", "later"),
    *("order", "sequence", "chronological"),
)
READING = _words(
    *("text", "signs?", "subtitles?", "captions?", "written", "writes?", "reads?", "words?"),
    *("letters?", "titles?", "labels?", "logos?", "scoreboard"),
)
HEARING = _words(
    *("says?", "said", "tells?", "told", "hear", "hears", "heard", "sounds?", "music", "songs?"),
    *("sings?", "voice", "speaks?", "spoken", "talks?", "mentions?", "mentioned", "narrator"),
    "audio",
)
WHOLE = re.compile(
    r"\b(?:mostly|mainly|overall|in general|main|theme|topic|purpose|summar\w+|gist)\b"
    r"|\babout\s*\?",
    re.IGNORECASE,
)
# "Who leaves?" asks for one thing; "the man who leaves" must be found before the rest
NESTED = re.compile(r"(?<=\w )(?:who|whom|whose|that|which|where)\b", re.IGNORECASE)
STRETCH = _words("minutes?", "at the (?:beginning|start|end)", "half")
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


@lru_cache(maxsize=1024)
def kind(text: str) -> str:
    """The kind of a question, :data:`PLAIN` if none of :data:`KINDS` matches."""
    for name, pattern in KINDS.items():
        if pattern.search(text):
            return name
    return PLAIN


# "which" must come first: "Why does the man not eat?" asks for what is so
_NEGATED = re.compile(
    r"\bwhich\b[^?.]*?(?:\bnot\b|n['’]t\b|\bnever\b|\bincorrect\b|\bfalse\b|\buntrue\b)"
    r"|\bexcept\b",
    re.IGNORECASE,
)
# in capitals it is the point of the question, wherever it stands
_NOT_IN_CAPITALS = re.compile(r"\bNOT\b")


def negated(text: str) -> bool:
    """Return whether the question asks for the option that does *not* hold: "… is NOT shown?"."""
    return bool(_NEGATED.search(text) or _NOT_IN_CAPITALS.search(text))


_ACCOUNT = _words(
    *(r"summar\w*", "describe", r"explain\w*", r"discuss\w*", "why", "reasons?", "opinions?"),
    *("attitudes?", "views?", "ideas?", "think", "thought", "feel", "felt", r"disagree\w*"),
    *(r"propos\w*", r"suggest\w*", r"recommend\w*", r"conclu\w*", r"decid\w*", r"evaluat\w*"),
    r"(?:say|said|says|talk\w*|speak|mention\w*|tell|told) (?:\w+ )?(?:about|on|of|regarding)",
    "how (?:did|do|does|was|were|would|should|is|are|will|can|could)",
)
_SAID_WHEN = re.compile(
    r"^(?:when|at (?:what|which) (?:time|point|minute|moment))\b.*?\b"
    r"(?:says?|said|mention\w*|talk\w*|speaks?|spoke|tells?|told|asks?|asked|explain\w*)\b"
    r"\s*(?:that|about|of|for)?\b(?P<what>.*)",
    re.IGNORECASE,
)
_MENTIONED_WHEN = re.compile(
    r"^when (?:is|are|was|were) (?:the (?:word|term|phrase|name)s? )?(?P<what>.+?)"
    r" (?:(?:first|last) )?(?:mentioned|said|named|discussed|spoken of|talked about)\b",
    re.IGNORECASE,
)
_GENERIC = frozenset(
    [
        *("film", "video", "clip", "movie", "talk", "lecture", "meeting", "recording", "story"),
        *("main", "theme", "topic", "subject", "purpose", "gist", "point", "idea", "whole"),
        *("entire", "overall", "mostly", "mainly", "summarize", "summarise", "summary", "happens"),
        *("happen", "describe", "explain", "tell", "say", "said", "discuss", "discussed", "please"),
    ]
)
"""Words of questions that name nothing in particular."""


def asks_for_account(text: str) -> bool:
    """Whether a question asks for more than one fact: reasons, opinions, what was discussed."""
    return _ACCOUNT.search(text) is not None


def asks_about_all(text: str) -> bool:
    """Whether a question asks what the film as a whole is about."""
    words = set(lexical.content_words(text))
    return WHOLE.search(text) is not None and not words - _GENERIC


def said_when(text: str) -> str:
    """What is said at the moment that a question asks for; empty if it asks for something else."""
    match = _MENTIONED_WHEN.match(text.strip()) or _SAID_WHEN.match(text.strip())
    return match["what"].strip(" ?.\"'“”") if match else ""


_EVERY = _words(
    "(?:every|each|all) (?:time|film|video|place|occurrence|scene|moment|mention)s?",
    "list (?:all|every|each|the)",
    "how (?:many|much) (?:films|videos|times)",
    "how often",
    "which (?:films|videos)",
    "in (?:all|how many) (?:the )?(?:films|videos)",
)
_MAYBE_EVERY = _words(
    *("every", "each", "all", "any", "list", "count", "many", "often", "times", "films", "videos")
)


def asks_for_every(text: str) -> bool:
    """Whether a question to a library asks for every occurrence."""
    return _EVERY.search(text) is not None


def may_ask_for_every(text: str) -> bool:
    """Whether a model that takes the question to ask for every occurrence may be right."""
    return _MAYBE_EVERY.search(text) is not None


AnswerType = Literal["number", "colour", "name"]

CERTAIN: frozenset[AnswerType] = frozenset({"number", "colour"})
"""Types that every answer to the question must hold.

A passage that names nobody does not say who, but names are hard to recognise: they only make a
passage more promising.
"""

# the first that matches counts: "what is the number of the user" asks for a number
_ANSWER_TYPES: dict[AnswerType, re.Pattern[str]] = {
    "colour": _words(r"(?:what|which)\s+colou?rs?"),
    "number": _words(
        r"how\s+(?:many|much|old|tall|heavy|far)",
        r"(?:what|which)\s+year",
        r"(?:number|percentage)\s+of",
    ),
    "name": _words(
        *("who", "whom", "whose", "where", "name", "named"),
        r"(?:what|which)\s+(?:city|town|country|state|company|person|band|foundation)",
    ),
}
_NUMBER = re.compile(
    r"\d|\b(?:zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen"
    r"|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million|billion"
    r"|dozens?|half|once|twice|none|nothing|nobody|free|no)\b",
    re.IGNORECASE,
)
_COLOUR = _words(
    *("black", "white", "gr[ea]y", "red", "green", "blue", "yellow", "orange", "purple", "violet"),
    *("pink", "brown", "beige", "turquoise", "teal", "cyan", "magenta", "silver", "gold", "golden"),
    *("colou?rless", "transparent"),
)
_SENTENCE = re.compile(r"[.!?:/]\s+")
_WORD = re.compile(r"[^\W\d_]+")


def answer_type(question: str) -> AnswerType | None:
    """What the answer to a question must be; ``None`` if its words do not tell."""
    for name, pattern in _ANSWER_TYPES.items():
        if pattern.search(question):
            return name
    return None


def holds(wanted: AnswerType, text: str) -> bool:
    """Whether a text holds a thing of that type."""
    if wanted == "number":
        return _NUMBER.search(text) is not None
    if wanted == "colour":
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
        # a rarer capitalised word may be a name
        if has_capital and lexical.idf(word.lower()) >= 1.2:
            return True
    return False
